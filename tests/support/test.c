#include "tests/support/test.h"
#include "autograd/node.h"
#include <pthread.h>
#include <stdio.h>

static int64_t live_at_begin;
static bool cpu_test, open_at_begin; /* whether the CUDA device was open, */
static int64_t uses_at_begin;        /* how often tests had asked for it, */
static int64_t requests_at_begin;    /* and what for; -1: it is not the device of the run */
static char folder[64];

static void use_device(void)
{
    if (!device_of_run())
        return;
    MUST(device_cuda() != NULL);
    sb_use_device(device_cuda());
    requests_at_begin = device_requests();
}

static void count_blocks(void)
{
    uses_at_begin = device_uses();
    memory_pool()->poison = pool_poison_host;
    live_at_begin = live_blocks();
}

void test_begin(void)
{
    cpu_test = false;
    requests_at_begin = -1;
    use_device();
    count_blocks();
}

void test_begin_on_the_cpu(void)
{
    if (device_of_run())
        cr_skip_test("a test of the CPU");
    cpu_test = true;
    requests_at_begin = -1;
    open_at_begin = device_cuda_sought();
    count_blocks();
}

/* Opening a device takes longer than most tests: so a test for which that is needless is found, and
   one that does it in passing. */
static void expect_device_as_needed(void)
{
    if (device_uses() > uses_at_begin)
        return; /* it asked for the device itself */
    cr_expect(!cpu_test || device_cuda_sought() == open_at_begin,
              "a CPU_TEST opens the CUDA device: make it a TEST");
    cr_expect(requests_at_begin < 0 || device_requests() > requests_at_begin,
              "the test asks nothing of the CUDA device: make it a CPU_TEST");
}

/* ---- what belongs to the test ---- */

static struct kept {
    void *object;
    void (*free)(void *object);
} * kept;
static int kept_count, kept_room;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER; /* ranks of a test are threads */

void kept_object(void *object, void (*free_object)(void *))
{
    MUST(object);
    pthread_mutex_lock(&keeping);
    if (kept_count == kept_room) {
        kept_room = 2 * kept_room + 64;
        kept = realloc(kept, (size_t)kept_room * sizeof *kept);
        cr_assert(kept != NULL);
    }
    kept[kept_count].object = object;
    kept[kept_count++].free = free_object;
    pthread_mutex_unlock(&keeping);
}

#define KEPT_DEFINITION(type, free)                                                                \
    static void kept_##type##_free(void *object)                                                   \
    {                                                                                              \
        sb_##type##_##free(object);                                                                \
    }                                                                                              \
    sb_##type *kept_##type(sb_##type *object)                                                      \
    {                                                                                              \
        kept_object(object, kept_##type##_free);                                                   \
        return object;                                                                             \
    }
KEPT_TYPES(KEPT_DEFINITION)

char *kept_text(char *text)
{
    kept_object(text, memory_free);
    return text;
}

int32_t *kept_ids(int32_t *ids)
{
    kept_object(ids, memory_free);
    return ids;
}

double *kept_numbers(double *numbers)
{
    return kept_memory(numbers);
}

void *kept_memory(void *memory)
{
    kept_object(memory, free);
    return memory;
}

sb_tensor *retained(sb_tensor *t)
{
    return t ? KEPT(sb_tensor_retain(t)) : NULL;
}

static void free_kept(void)
{
    while (kept_count > 0) {
        kept_count--;
        kept[kept_count].free(kept[kept_count].object);
    }
    free(kept);
    kept = NULL;
    kept_room = 0;
}

void test_nothing_live(void)
{
    free_kept();
    cr_expect(tape_open() == NULL, "a tape is open at the end of the test");
    cr_expect(live_blocks() == live_at_begin, "%lld blocks are live at the end of the test",
              (long long)(live_blocks() - live_at_begin));
    expect_device_as_needed();
    const sb_device *cuda = device_opened();
    cr_expect(!cuda || sb_device_memory(cuda).live_blocks == 0,
              "%lld blocks of the device are live at the end of the test",
              (long long)sb_device_memory(cuda).live_blocks);
}

/* The copies of test_data; each begins with a pointer to the previous one. */
enum { HEADER = 64 }; /* keeps the alignment of tensors */
static void **copies;

static void free_copies(void)
{
    while (copies) {
        void **before = *copies;
        free(copies);
        copies = before;
    }
}

/* Also after a test that was aborted. */
void test_end(void)
{
    kept_count = 0;
    free_copies();
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (folder[0])
        cr_expect(system(command) == 0);
    folder[0] = '\0';
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] == '1';
}

bool test_long(void)
{
    return is_set("SOFTBACK_TEST_LONG");
}

bool test_slow(void)
{
    return test_sanitized() || test_slow_device();
}

bool test_brief(void)
{
    return test_slow() && !test_long();
}

int test_some(int n)
{
    const int share = !test_slow() ? 1 : test_sanitized() && test_slow_device() ? 40 : 8;
    return (n + share - 1) / share;
}

static bool run_is(enum slow_run run)
{
    switch (run) {
    case EMULATED:
        return test_slow_device();
    case SANITIZED:
        return test_sanitized();
    case EMULATED_SANITIZED:
        return test_sanitized() && test_slow_device();
    default:
#ifdef __SANITIZE_THREAD__
        return true;
#else
        return false;
#endif
    }
}

void too_slow(enum slow_run run, const char *reason)
{
    if (run_is(run) && !test_long())
        cr_skip_test("too slow here: %s", reason);
}

const char *test_path(const char *file)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", TEST_FOLDER, file);
    return path;
}

const char *test_temporary(const char *file)
{
    char path[256];
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/softback-XXXXXX",
                 base && strlen(base) < 40 ? base : P_tmpdir);
        cr_assert(mkdtemp(folder) != NULL);
    }
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return kept_memory(strdup(path));
}

const char *on_device(const char *text)
{
    static char result[1024];
    size_t n = 0;
    for (const char *found; (found = strstr(text, "on cpu")); text = found + 6)
        n += (size_t)snprintf(result + n, sizeof result - n, "%.*son %s", (int)(found - text), text,
                              sb_device_name(sb_device_in_use()));
    snprintf(result + n, sizeof result - n, "%s", text);
    return result;
}

double test_relative_arrays(int64_t n, const double *a, const double *b)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) != isnan(b[i]))
            return INFINITY;
        if (isnan(a[i]) || a[i] == b[i])
            continue;
        worst = fmax(worst, fabs(a[i] - b[i]));
    }
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(b[i]));
    return worst == 0 ? 0 : worst / largest;
}

static double *numbers_new(const sb_tensor *t)
{
    double *numbers = calloc((size_t)sb_tensor_size(t) + 1, sizeof *numbers);
    MUST(numbers && sb_tensor_read(t, numbers));
    return numbers;
}

double *numbers_of(const sb_tensor *t)
{
    return KEPT(numbers_new(t));
}

double test_relative(const sb_tensor *a, const sb_tensor *b)
{
    if (!a || !b || !shape_equal(a->rank, a->dim, b->rank, b->dim))
        return INFINITY;
    double *x = numbers_new(a), *y = numbers_new(b);
    double relative = test_relative_arrays(tensor_size(a), x, y);
    free(x);
    free(y);
    return relative;
}

/* A copy of t's bytes with room for a pointer before it. */
static void **copy_new(const sb_tensor *t)
{
    MUST(t != NULL);
    const size_t bytes = HEADER + (tensor_bytes(t) + HEADER - 1) / HEADER * HEADER;
    char *copy = aligned_alloc(HEADER, bytes);
    MUST(copy && tensor_readable("test_data", t) &&
         t->device->download(copy + HEADER, t->data, tensor_bytes(t)));
    return (void **)(void *)copy;
}

void *test_data(const sb_tensor *t)
{
    void **copy = copy_new(t);
    *copy = copies;
    copies = copy;
    return (char *)copy + HEADER;
}

bool test_same_bits(const sb_tensor *a, const sb_tensor *b)
{
    if (!a || !b || a->dtype != b->dtype || !shape_equal(a->rank, a->dim, b->rank, b->dim))
        return false;
    void **x = copy_new(a), **y = copy_new(b);
    const bool same = memcmp((char *)x + HEADER, (char *)y + HEADER, tensor_bytes(a)) == 0;
    free(x);
    free(y);
    return same;
}

void test_tape_ends(sb_tape *tape)
{
    cr_expect(sb_tape_end(tape), "%s", sb_error());
}

void test_tape_fails(sb_tape *tape)
{
    cr_expect(!sb_tape_end(tape), "no operation on this tape fails");
}

sb_tensor *owned(sb_dtype dtype, int rank, const int64_t *dim, const double *values)
{
    return sb_tape_own(sb_tensor_from_doubles(dtype, rank, dim, values));
}

sb_tensor *take_grad(sb_tensor *x)
{
    sb_tensor *grad = retained(sb_tensor_grad(x));
    sb_tensor_clear_grad(x);
    return grad;
}

void release_all(int n, sb_tensor *const t[])
{
    for (int i = 0; i < n; i++)
        sb_tensor_release(t[i]);
}

double largest_of(const sb_tensor *t)
{
    double most = 0, *numbers = numbers_new(t);
    for (int64_t i = 0; i < sb_tensor_size(t); i++)
        most = isnan(numbers[i]) ? INFINITY : fmax(most, fabs(numbers[i]));
    free(numbers);
    return most;
}

sb_tensor *test_leaf(sb_dtype dtype, uint64_t seed, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    const int64_t n = shape_size(rank, dim);
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = 4 * sb_random_uniform(&random) - 2;
    sb_tensor *t = sb_tensor_from_doubles(dtype, rank, dim, values);
    free(values);
    return t ? KEPT(sb_tensor_requires_grad(t)) : NULL;
}

/* On a slow device only some of the allocations after the first ones fail. */
static int next_allocation(int allocation, bool for_good)
{
    return allocation + (test_slow() && allocation > 40 ? 11 + for_good : 1);
}

static int sweep(bool (*body)(void *context), void *context, bool for_good)
{
    for (int allocation = 0; allocation < 100000;
         allocation = next_allocation(allocation, for_good)) {
        int64_t live = live_blocks();
        pool_fail_after(allocation, for_good);
        const bool ok = body(context), failed = pool_has_failed();
        pool_fail_after(-1, false);
        cr_assert(tape_open() == NULL, "a tape stays open when allocation %d fails", allocation);
        cr_assert(live_blocks() == live, "%lld blocks leak when allocation %d fails%s",
                  (long long)(live_blocks() - live), allocation, for_good ? " for good" : "");
        if (ok && !failed)
            return allocation;
        cr_assert(ok || strstr(sb_error(), "memory"), "allocation %d fails with \"%s\"", allocation,
                  sb_error());
    }
    cr_assert_fail("the body fails even if no allocation does");
    return -1;
}

int test_each_allocation_fails(bool (*body)(void *context), void *context)
{
    sweep(body, context, true);
    return sweep(body, context, false);
}

bool test_same_files(const char *a, const char *b)
{
    FILE *one = fopen(a, "rb"), *two = fopen(b, "rb");
    cr_assert(one && two, "%s or %s cannot be opened", a, b);
    int x, y;
    do {
        x = fgetc(one);
        y = fgetc(two);
    } while (x == y && x != EOF);
    fclose(one);
    fclose(two);
    return x == y;
}
