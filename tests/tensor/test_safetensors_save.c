#include "tensor/file.h"
#include "tests/support/test.h"
#include "tests/support/trace.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

static const char *const metadata[][2] = {{"step", "1"}, {"b", "text"}};

static bool save(const char *path, double value)
{
    sb_tensor *weight = sb_tensor_full(SB_F32, SB_SHAPE(150, 200), value);
    sb_tensor *ids = sb_tensor_full(SB_I32, SB_SHAPE(3), value);
    sb_named_tensor item[] = {{"ids", ids}, {"weight", weight}};
    bool ok = weight && ids && sb_safetensors_save(path, 2, item, 2, metadata);
    sb_tensor_release(ids);
    sb_tensor_release(weight);
    return ok;
}

/* The value with which the file was saved; NaN if it is incomplete. */
static double saved_value(const char *path)
{
    sb_safetensors *file = sb_safetensors_open(path);
    sb_tensor *weight = sb_safetensors_tensor(file, "weight");
    sb_tensor *ids = sb_safetensors_tensor(file, "ids");
    double value = weight && ids ? sb_tensor_get(weight, 0) : NAN;
    for (int64_t i = 0; i < sb_tensor_size(weight); i++)
        value = sb_tensor_get(weight, i) == value ? value : NAN;
    if (sb_tensor_get(ids, 2) != value)
        value = NAN;
    sb_tensor_release(ids);
    sb_tensor_release(weight);
    sb_safetensors_close(file);
    return value;
}

static bool save_and_read(void *path)
{
    sb_safetensors *file = save(path, 3) ? sb_safetensors_open(path) : NULL;
    sb_tensor *t = file ? sb_safetensors_tensor(file, "weight") : NULL;
    bool ok = t && sb_tensor_get(t, 29999) == 3;
    sb_tensor_release(t);
    sb_safetensors_close(file);
    return ok;
}

TEST(safetensors_save, each_allocation_may_fail)
{
    char path[256];
    snprintf(path, sizeof path, "%s", test_temporary("a.safetensors"));
    cr_expect(test_each_allocation_fails(save_and_read, path) >= 20);
}

TEST(safetensors_save, equal_arguments_give_equal_bytes)
{
    const char *a = test_temporary("a"), *b = test_temporary("b");
    cr_assert(save(a, 2) && save(b, 2), "%s", sb_error());
    size_t size_a, size_b;
    char *bytes_a = file_text("test", a, 1 << 20, &size_a);
    char *bytes_b = file_text("test", b, 1 << 20, &size_b);
    cr_expect(bytes_a && bytes_b && size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0);
    memory_free(bytes_a);
    memory_free(bytes_b);
}

TEST(safetensors_save, all_tensors_are_aligned)
{
    const char *path = test_temporary("a.safetensors");
    sb_tensor *flag = KEPT(sb_tensor_scalar(SB_BOOL, 1)), *x = KEPT(sb_tensor_scalar(SB_F32, 1)),
              *y = KEPT(sb_tensor_scalar(SB_F64, 1));
    sb_named_tensor item[] = {{"a", flag}, {"b", x}, {"c", y}, {"d", flag}, {"e", y}};
    cr_assert(sb_safetensors_save(path, 5, item, 1, metadata), "%s", sb_error());
    size_t size;
    char *bytes = file_text("test", path, 4096, &size);
    uint64_t length;
    cr_assert(bytes != NULL);
    memcpy(&length, bytes, 8);
    cr_expect(length % 8 == 0);
    cr_expect(strstr(bytes + 8, "\"c\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}"));
    cr_expect(strstr(bytes + 8, "\"e\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]}"));
    cr_expect(strstr(bytes + 8, "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]}"));
    cr_expect(
        strstr(bytes + 8, "\"d\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[21,22]}"));
    memory_free(bytes);
}

TEST(safetensors_save, on_a_full_disk_the_old_checkpoint_stays)
{
    const char *path = test_temporary("a.safetensors");
    cr_assert(save(path, 1), "%s", sb_error());
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit, small;
    cr_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = (struct rlimit){100000, limit.rlim_max};
    cr_assert(setrlimit(RLIMIT_FSIZE, &small) == 0);
    bool saved = save(path, 2);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_expect(!saved);
    EXPECT_ERROR("safetensors_save: cannot write \"");
    EXPECT_ERROR("File too large");
    cr_expect(saved_value(path) == 1);
}

static int save_traced(const void *path)
{
    return save(path, 2) ? 0 : 1;
}

CPU_TEST(safetensors_save, a_process_killed_at_any_system_call_leaves_the_old_or_the_new_checkpoint)
{
    char path[256];
    snprintf(path, sizeof path, "%s", test_temporary("a.safetensors"));
    int left[3] = {0};
    for (int at = 0;; at++) {
        cr_assert(save(path, 1), "after a kill at call %d: %s", at - 1, sb_error());
        struct trace trace = trace_run(save_traced, path, TRACE_KILL, at, 0);
        if (!trace.possible)
            cr_skip_test("no permission to trace a process");
        double value = saved_value(path);
        cr_assert(value == 1 || value == 2, "after call %d: %s", at, sb_error());
        left[(int)value]++;
        if (!trace.killed)
            break;
    }
    cr_expect(left[1] > 8 && left[2] > 2, "%d old, %d new", left[1], left[2]);
}
