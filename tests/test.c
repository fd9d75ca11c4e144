#include "tests/test.h"
#include "tests/device.h"
#include "autograd/node.h"
#include "tensor/random.h"
#include <stdio.h>
#include <unistd.h>

static int64_t live_at_begin;
static char folder[64];

/* SOFTBACK_TEST_DEVICE=cuda runs the claims there. */
static void use_device(void)
{
    const char *name = getenv("SOFTBACK_TEST_DEVICE");
    if (!name || strcmp(name, "cuda") != 0)
        return;
    cr_assert(device_cuda() != NULL, "%s", sb_error());
    sb_use_device(device_cuda());
}

void test_begin(void)
{
    use_device();
    memory_pool()->poison = pool_poison_host;
    live_at_begin = memory_pool()->live_blocks;
}

void test_nothing_live(void)
{
    cr_expect(tape_open() == NULL, "a tape is open at the end of the test");
    cr_expect(memory_pool()->live_blocks == live_at_begin,
              "%lld blocks are live at the end of the test",
              (long long)(memory_pool()->live_blocks - live_at_begin));
}

/* Also after a test that was given up. */
void test_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (folder[0])
        cr_expect(system(command) == 0);
}

bool test_long(void)
{
    const char *value = getenv("SOFTBACK_TEST_LONG");
    return value && value[0] == '1';
}

const char *test_path(const char *file)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", TEST_FOLDER, file);
    return path;
}

const char *test_temporary(const char *file)
{
    static char path[4][256];
    static int next;
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/softback-XXXXXX",
                 base && strlen(base) < 40 ? base : P_tmpdir);
        cr_assert(mkdtemp(folder) != NULL);
    }
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, file);
    return path[next];
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

double test_relative(const sb_tensor *a, const sb_tensor *b)
{
    if (!a || !b || !shape_equal(a->rank, a->dim, b->rank, b->dim))
        return INFINITY;
    int64_t n = tensor_size(a);
    double *x = malloc((size_t)(2 * n + 1) * sizeof *x);
    cr_assert(x && sb_tensor_read(a, x) && sb_tensor_read(b, x + n), "%s", sb_error());
    double relative = test_relative_arrays(n, x, x + n);
    free(x);
    return relative;
}

sb_tensor *test_leaf(sb_dtype dtype, uint64_t seed, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    sb_tensor *t = sb_tensor_zeros(dtype, rank, dim);
    for (int64_t i = 0, n = sb_tensor_size(t); i < n; i++)
        sb_put(t, i, 4 * sb_random_uniform(&random) - 2);
    return t ? sb_requires_grad(t) : NULL;
}

static int sweep(bool (*body)(void *context), void *context, bool for_good)
{
    for (int allocation = 0; allocation < 100000; allocation++) {
        int64_t live = memory_pool()->live_blocks;
        pool_fail_after(allocation, for_good);
        bool ok = body(context);
        pool_fail_after(-1, false);
        cr_assert(tape_open() == NULL, "a tape stays open when allocation %d fails", allocation);
        cr_assert(memory_pool()->live_blocks == live, "%lld blocks leak when allocation %d fails%s",
                  (long long)(memory_pool()->live_blocks - live), allocation,
                  for_good ? " for good" : "");
        if (ok)
            return allocation;
        cr_assert(strstr(sb_error(), "memory"), "allocation %d fails with \"%s\"", allocation,
                  sb_error());
    }
    cr_assert_fail("the body never succeeds");
    return -1;
}

int test_each_allocation_fails(bool (*body)(void *context), void *context)
{
    sweep(body, context, true);
    return sweep(body, context, false);
}
