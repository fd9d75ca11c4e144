/* Tensors, shapes and errors. */
#include "tensor/failure.h"
#include "tests/support/test.h"
#include <pthread.h>

static const sb_dtype dtypes[] = {SB_F32, SB_F64, SB_BF16, SB_I32, SB_BOOL, SB_DUAL};

TEST(tensor, constructors_fill_every_dtype)
{
    for (int i = 0; i < SB_DTYPES; i++) {
        sb_tensor *zeros = KEPT(sb_tensor_zeros(dtypes[i], SB_SHAPE(2, 3)));
        sb_tensor *ones = KEPT(sb_tensor_full(dtypes[i], SB_SHAPE(2, 3), 1));
        sb_tensor *values =
            KEPT(sb_tensor_from_doubles(dtypes[i], SB_SHAPE(2, 3), (double[]){1, 0, 1, 1, 0, 0}));
        sb_tensor *scalar = KEPT(sb_tensor_scalar(dtypes[i], 1));
        MUST(zeros && ones && values && scalar);
        for (int k = 0; k < 6; k++)
            cr_expect(sb_tensor_get(zeros, k) == 0 && sb_tensor_get(ones, k) == 1 &&
                      sb_tensor_get(values, k) == (k == 0 || k == 2 || k == 3));
        cr_expect(sb_tensor_value(scalar) == 1 && sb_tensor_rank(scalar) == 0);
    }
}

TEST(tensor, from_copies_elements_of_the_dtype)
{
    float f32[] = {1.5f, -2};
    double f64[] = {1.5, -2};
    uint16_t bf16[] = {0x3fc0, 0xc000};
    int32_t i32[] = {7, INT32_MIN};
    uint8_t yes[] = {1, 0};
    double dual[] = {1.5, 0x1p-600, -2, 0}; /* a tangent follows each value */
    const void *data[] = {f32, f64, bf16, i32, yes, dual};
    const double expected[6][2] = {{1.5, -2},      {1.5, -2}, {1.5, -2},
                                   {7, INT32_MIN}, {1, 0},    {1.5, -2}};
    for (int i = 0; i < SB_DTYPES; i++) {
        sb_tensor *t = KEPT(sb_tensor_from(dtypes[i], SB_SHAPE(2), data[i]));
        cr_expect(sb_tensor_get(t, 0) == expected[i][0] && sb_tensor_get(t, 1) == expected[i][1]);
        cr_expect(t->data != data[i]);
    }
}

static void count_release(void *context)
{
    ++*(int *)context;
}

CPU_TEST(tensor, wrap_shares_memory_and_releases_it_once)
{
    double values[] = {1, 2, 3, 4, 5, 6};
    int released = 0;
    sb_tensor *t = MUST(sb_tensor_wrap(SB_F64, SB_SHAPE(2, 3), values, count_release, &released));
    cr_expect(sb_tensor_data(t) == values);
    values[4] = 7;
    cr_expect(sb_tensor_get(t, 4) == 7 && sb_tensor_set(t, 0, 9) && values[0] == 9);
    sb_tensor *row = tensor_view("test", t, 3, 1, (int64_t[]){3});
    sb_tensor_release(t);
    cr_expect(released == 0 && sb_tensor_get(row, 1) == 7); /* the view still needs it */
    sb_tensor_release(row);
    cr_expect(released == 1);
    sb_tensor_release(sb_tensor_wrap(SB_F64, SB_SHAPE(6), values, NULL, NULL));
    cr_expect(values[0] == 9);
}

CPU_TEST(tensor, wrap_refuses_null_and_unaligned_data)
{
    float values[3] = {0};
    int released = 0;
    REFUSED("tensor_wrap: data is NULL",
            sb_tensor_wrap(SB_F32, SB_SHAPE(2), NULL, count_release, &released));
    cr_expect(!sb_tensor_wrap(SB_F32, SB_SHAPE(2), (char *)values + 1, count_release, &released));
    EXPECT_ERROR("tensor_wrap: the address of data is not a multiple of 4, as f32 needs; "
                 "copy it with sb_tensor_from()");
    REFUSED("tensor_wrap: dimension 0 of (-2) is negative",
            sb_tensor_wrap(SB_F32, SB_SHAPE(-2), values, count_release, &released));
    cr_expect(released == 0);
}

TEST(tensor, a_tensor_has_its_dtype_shape_and_device)
{
    sb_tensor *t = sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3, 4));
    cr_expect(sb_tensor_rank(t) == 3 && sb_tensor_size(t) == 24);
    cr_expect(sb_tensor_dim(t, 0) == 2 && sb_tensor_dim(t, -1) == 4 && sb_tensor_dim(t, -3) == 2);
    cr_expect(sb_tensor_dim(t, 3) == 0 && sb_tensor_dim(t, -4) == 0);
    cr_expect(sb_tensor_dtype(t) == SB_F32 && sb_tensor_device(t) == sb_device_in_use());
    cr_expect((uintptr_t)t->data % 64 == 0);
    cr_expect(!t->requires_grad && !sb_tensor_grad(t));
    sb_tensor_release(t);
    cr_expect(sb_tensor_rank(NULL) == 0 && sb_tensor_dim(NULL, 0) == 0);
    cr_expect(sb_tensor_size(NULL) == 0 && sb_tensor_dtype(NULL) == SB_F32);
    cr_expect(!sb_tensor_device(NULL) && !sb_tensor_grad(NULL));
}

TEST(tensor, tensors_may_have_six_axes_or_be_empty)
{
    sb_tensor *six = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(2, 1, 2, 1, 2, 1), 5));
    cr_expect(sb_tensor_size(six) == 8 && sb_tensor_get(six, 7) == 5);
    sb_tensor *empty = KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(3, 0)));
    double nothing = 7;
    cr_expect(sb_tensor_size(empty) == 0 && empty->data != NULL);
    cr_expect(sb_tensor_read(empty, &nothing) && sb_tensor_write(empty, &nothing) && nothing == 7);
    cr_expect(isnan(sb_tensor_get(empty, 0)));
    EXPECT_ERROR("get: (3, 0) has no elements");
}

static bool build(void *unused)
{
    (void)unused;
    sb_tensor *t = sb_tensor_full(SB_F32, SB_SHAPE(30, 40), 1);
    sb_tensor *view = t ? tensor_view("test", t, 3, 1, (int64_t[]){5}) : NULL;
    char *text = view ? sb_tensor_text(view) : NULL;
    sb_tensor_release(t);
    sb_tensor_release(view);
    sb_free(text);
    return text != NULL;
}

TEST(tensor, lack_of_memory_is_reported)
{
    cr_expect(test_each_allocation_fails(build, NULL) >= 4);
    pool_fail_after(1, false); /* the handle is allocated, the data fails */
    cr_expect(!sb_tensor_zeros(SB_F32, SB_SHAPE(30, 40)));
    pool_fail_after(-1, false);
    EXPECT_ERROR(on_device("tensor: out of memory for (30, 40) of f32, 4800 bytes on cpu"));
}

TEST(tensor, doubles_are_converted_to_the_dtype)
{
    static const struct {
        sb_dtype dtype;
        double given, held;
    } cases[] = {{SB_F32, 0.1, (double)0.1f},
                 {SB_F32, INFINITY, INFINITY},
                 {SB_F64, 0.1, 0.1},
                 {SB_I32, 2.9, 2},
                 {SB_I32, -2.9, -2},
                 {SB_I32, 1e10, INT32_MAX},
                 {SB_I32, -INFINITY, INT32_MIN},
                 {SB_I32, NAN, 0},
                 {SB_BOOL, 0, 0},
                 {SB_BOOL, 1, 1},
                 {SB_BOOL, -0.5, 1},
                 {SB_BOOL, -0.0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_tensor *t = KEPT(sb_tensor_zeros(cases[i].dtype, SB_SHAPE(3)));
        cr_expect(sb_tensor_set(t, 1, cases[i].given));
        cr_expect(sb_tensor_get(t, 1) == cases[i].held, "case %zu", i);
        cr_expect(sb_tensor_get(t, 0) == 0 && sb_tensor_get(t, 2) == 0, "other elements change");
    }
}

TEST(tensor, reading_and_writing_reach_every_element)
{
    enum { N = 5000 };
    for (int i = 0; i < SB_DTYPES; i++) {
        double in[N], out[N + 1];
        for (int k = 0; k < N; k++)
            in[k] = dtypes[i] == SB_BOOL ? k % 3 == 0 : k % 251 - 7;
        sb_tensor *t = KEPT(sb_tensor_zeros(dtypes[i], SB_SHAPE(N)));
        out[N] = -1;
        cr_expect(sb_tensor_write(t, in) && sb_tensor_read(t, out));
        cr_expect(memcmp(in, out, sizeof in) == 0 && out[N] == -1);
        cr_expect(sb_tensor_get(t, 4097) == in[4097]);
    }
    REFUSED("tensor_read: t is NULL", sb_tensor_read(NULL, NULL));
    sb_tensor *t = KEPT(sb_tensor_scalar(SB_F32, 1));
    REFUSED("tensor_write: values is NULL", sb_tensor_write(t, NULL));
}

TEST(tensor, a_tensor_lives_as_long_as_it_has_owners)
{
    int64_t live = live_blocks();
    sb_tensor *t = sb_tensor_scalar(SB_F64, 4);
    cr_expect(sb_tensor_retain(t) == t);
    sb_tensor_release(t);
    cr_expect(sb_tensor_value(t) == 4);
    sb_tensor_release(t);
    cr_expect(live_blocks() == live);
    sb_tensor_release(NULL);
    cr_expect(!sb_tensor_retain(NULL));
}

static void *retain_and_release(void *t)
{
    for (int i = 0; i < 20000; i++) {
        sb_tensor_retain(t);
        sb_tensor_release(t);
    }
    return NULL;
}

TEST(tensor, threads_may_share_a_tensor)
{
    sb_tensor *t = KEPT(sb_tensor_scalar(SB_F64, 4));
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        cr_assert(pthread_create(&thread[i], NULL, retain_and_release, t) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    cr_expect(t->refs == 1 && sb_tensor_value(t) == 4);
}

TEST(tensor, a_view_shares_data_and_keeps_it_alive)
{
    sb_tensor *t = sb_tensor_from_doubles(SB_F32, SB_SHAPE(6), (double[]){0, 1, 2, 3, 4, 5});
    sb_tensor *view = tensor_view("test", t, 2, 2, (int64_t[]){2, 2});
    sb_tensor *inner = KEPT(tensor_view("test", view, 1, 1, (int64_t[]){2}));
    cr_expect(inner->base == t, "a view of a view shares the owner's data");
    sb_tensor_set(t, 3, 30);
    cr_expect(sb_tensor_get(view, 1) == 30 && sb_tensor_get(inner, 0) == 30 &&
              sb_tensor_get(inner, 1) == 4);
    sb_tensor_release(t);
    sb_tensor_release(view);
    cr_expect(sb_tensor_get(inner, 0) == 30);
}

TEST(tensor, data_is_freed_with_its_last_holder)
{
    sb_tensor *t = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(1000), 3));
    sb_tensor *view = KEPT(tensor_view("test", t, 500, 1, (int64_t[]){10}));
    int64_t full = memory_in_use().live_bytes;
    tensor_free_data(t);
    tensor_free_data(t);
    cr_expect(memory_in_use().live_bytes == full && sb_tensor_get(view, 9) == 3);
    cr_expect(isnan(sb_tensor_get(t, 0)) && !sb_tensor_data(t) && !sb_tensor_text(t));
    EXPECT_ERROR("tensor_text: an operation's output (1000): freed by backward");
    double values[1000];
    cr_expect(!sb_tensor_read(t, values) && !sb_tensor_write(t, values) && !sb_tensor_set(t, 0, 1));
    tensor_free_data(view);
    cr_expect(memory_in_use().live_bytes <= full - 8000);
    cr_expect(isnan(sb_tensor_get(view, 0)));
}

TEST(tensor, only_real_leaves_require_gradients)
{
    for (int i = 0; i < SB_DTYPES; i++) {
        sb_tensor *t = KEPT(sb_tensor_zeros(dtypes[i], SB_SHAPE(2)));
        cr_expect((sb_tensor_requires_grad(t) == t) == sb_dtype_is_real(dtypes[i]));
        cr_expect(t->requires_grad == sb_dtype_is_real(dtypes[i]));
    }
    EXPECT_ERROR("requires_grad: (2) of bool: only real tensors have gradients");
    REFUSED("requires_grad: t is NULL", sb_tensor_requires_grad(NULL));
    sb_tensor *made = KEPT(sb_tensor_scalar(SB_F32, 1));
    made->tape = 7;
    made->origin = "softmax";
    REFUSED("requires_grad: softmax output () is not a leaf", sb_tensor_requires_grad(made));
}

TEST(tensor, clearing_frees_an_own_gradient_and_keeps_a_flat_one)
{
    sb_tensor *t = test_leaf(SB_F32, 1, SB_SHAPE(2)),
              *flat = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(4)));
    t->grad = sb_tensor_full(SB_F32, SB_SHAPE(2), 3);
    cr_expect(!sb_tensor_grad(t), "a stale gradient is visible");
    t->grad_current = true;
    cr_expect(sb_tensor_get(sb_tensor_grad(t), 1) == 3);
    sb_tensor_clear_grad(t);
    cr_expect(!sb_tensor_grad(t) && !t->grad);
    t->grad = tensor_view("test", flat, 1, 1, (int64_t[]){2});
    t->grad_current = true;
    sb_tensor_clear_grad(t);
    cr_expect(!sb_tensor_grad(t) && t->grad);
    sb_tensor_clear_grad(NULL);
}

CPU_TEST(tensor, dtypes_have_names_and_sizes)
{
    static const char *const names[] = {"f32", "f64", "bf16", "i32", "bool", "dual"};
    static const size_t bytes[] = {4, 8, 2, 4, 1, 16};
    for (int i = 0; i < SB_DTYPES; i++)
        cr_expect(strcmp(sb_dtype_name(dtypes[i]), names[i]) == 0 &&
                  sb_dtype_bytes(dtypes[i]) == bytes[i]);
    cr_expect(strcmp(sb_dtype_name((sb_dtype)9), "unknown dtype") == 0);
    cr_expect(sb_dtype_bytes((sb_dtype)-1) == 0 && !sb_dtype_is_real((sb_dtype)9));
}

CPU_TEST(tensor, a_device_counts_its_memory)
{
    const sb_device *cpu = sb_device_cpu();
    cr_expect(strcmp(sb_device_name(cpu), "cpu") == 0);
    cr_expect(strcmp(sb_device_name(NULL), "no device") == 0);
    sb_memory before = sb_device_memory(cpu);
    sb_device_reset_peak(cpu);
    sb_tensor *t = sb_tensor_zeros(SB_F32, SB_SHAPE(1024));
    sb_memory with = sb_device_memory(cpu);
    cr_expect(with.live_blocks == before.live_blocks + 2, "a handle and its data");
    cr_expect(with.live_bytes >= before.live_bytes + 4096);
    sb_tensor_release(t);
    sb_memory after = sb_device_memory(cpu);
    cr_expect(after.live_bytes == before.live_bytes && after.peak_bytes == with.live_bytes);
    sb_device_trim(cpu);
    cr_expect(sb_device_memory(cpu).live_blocks == before.live_blocks);
    cr_expect(sb_device_memory(NULL).live_bytes == 0);
    sb_device_reset_peak(NULL);
    sb_device_trim(NULL);
}

CPU_TEST(tensor, the_number_of_threads_is_at_least_one)
{
    int before = sb_threads();
    cr_expect(before >= 1 && sb_set_threads(2) && sb_threads() == 2);
    REFUSED("threads: 0 is not in 1..1024", sb_set_threads(0));
    cr_expect(sb_threads() == 2 && sb_set_threads(before));
}

/* ---- shape ---- */

CPU_TEST(shape, a_size_is_the_product_of_the_dimensions)
{
    cr_expect(shape_size(0, NULL) == 1, "a scalar has one element");
    cr_expect(shape_size(3, (int64_t[]){2, 3, 4}) == 24);
    cr_expect(shape_size(3, (int64_t[]){2, 0, 4}) == 0);
    cr_expect(shape_size(2, (int64_t[]){(int64_t)1 << 28, (int64_t)1 << 28}) == (int64_t)1 << 56);
}

CPU_TEST(shape, a_size_that_overflows_is_refused)
{
    cr_expect(shape_size(2, (int64_t[]){(int64_t)1 << 28, ((int64_t)1 << 28) + 1}) == -1);
    cr_expect(shape_size(2, (int64_t[]){INT64_MAX, INT64_MAX}) == -1);
    cr_expect(shape_size(3, (int64_t[]){INT64_MAX, 0, 2}) == -1, "a zero hides an overflow");
    cr_expect(shape_size(2, (int64_t[]){3, -1}) == -1);
}

CPU_TEST(shape, shapes_are_written_as_tuples)
{
    cr_expect(strcmp(shape_text(0, NULL).text, "()") == 0);
    cr_expect(strcmp(shape_text(3, (int64_t[]){2, 3, 4}).text, "(2, 3, 4)") == 0);
    int64_t longest[SB_MAX_RANK];
    for (int i = 0; i < SB_MAX_RANK; i++)
        longest[i] = INT64_MIN;
    struct shape_text shape = shape_text(SB_MAX_RANK, longest);
    cr_expect(shape.text[strlen(shape.text) - 1] == ')', "the longest text fits");
}

CPU_TEST(shape, equal_shapes_have_equal_ranks_and_dimensions)
{
    cr_expect(shape_equal(0, NULL, 0, NULL));
    cr_expect(shape_equal(2, (int64_t[]){2, 3}, 2, (int64_t[]){2, 3}));
    cr_expect(!shape_equal(2, (int64_t[]){2, 3}, 2, (int64_t[]){3, 2}));
    cr_expect(!shape_equal(2, (int64_t[]){2, 1}, 1, (int64_t[]){2}));
}

/* The pairs are NumPy's own examples and its edge cases. */
CPU_TEST(shape, broadcasting_follows_numpy)
{
    static const struct {
        int rank_a, rank_b, rank; /* rank -1 if they do not broadcast */
        int64_t a[4], b[4], y[4];
    } cases[] = {
        {3, 1, 3, {256, 256, 3}, {3}, {256, 256, 3}},
        {4, 3, 4, {8, 1, 6, 1}, {7, 1, 5}, {8, 7, 6, 5}},
        {2, 1, 2, {5, 4}, {1}, {5, 4}},
        {3, 2, 3, {15, 3, 5}, {3, 1}, {15, 3, 5}},
        {0, 2, 2, {0}, {2, 3}, {2, 3}},
        {0, 0, 0, {0}, {0}, {0}},
        {2, 1, 2, {0, 1}, {4}, {0, 4}},
        {1, 1, 1, {0}, {1}, {0}},
        {1, 1, -1, {3}, {4}, {0}},
        {1, 1, -1, {0}, {3}, {0}},
        {2, 3, -1, {2, 1}, {8, 4, 3}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t y[SB_MAX_RANK];
        for (int swap = 0; swap < 2; swap++) {
            int rank = -1;
            bool fits = swap ? shape_broadcast(cases[i].rank_b, cases[i].b, cases[i].rank_a,
                                               cases[i].a, &rank, y)
                             : shape_broadcast(cases[i].rank_a, cases[i].a, cases[i].rank_b,
                                               cases[i].b, &rank, y);
            cr_expect(fits == (cases[i].rank >= 0), "case %zu", i);
            cr_expect(!fits || shape_equal(rank, y, cases[i].rank, cases[i].y), "case %zu", i);
        }
    }
}

CPU_TEST(shape, a_broadcast_axis_has_stride_zero)
{
    int64_t stride[4];
    shape_strides(2, (int64_t[]){3, 1}, 3, (int64_t[]){2, 3, 4}, stride);
    cr_expect(stride[0] == 0 && stride[1] == 1 && stride[2] == 0);
    shape_strides(3, (int64_t[]){2, 3, 4}, 3, (int64_t[]){2, 3, 4}, stride);
    cr_expect(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
    shape_strides(0, NULL, 2, (int64_t[]){2, 3}, stride);
    cr_expect(stride[0] == 0 && stride[1] == 0);
}

CPU_TEST(shape, negative_axes_count_from_the_last)
{
    cr_expect(shape_axis(3, 0) == 0 && shape_axis(3, 2) == 2);
    cr_expect(shape_axis(3, -1) == 2 && shape_axis(3, -3) == 0);
    cr_expect(shape_axis(3, 3) == -1 && shape_axis(3, -4) == -1 && shape_axis(0, 0) == -1);
}

/* ---- error ---- */

CPU_TEST(error, a_failure_leaves_its_message)
{
    cr_expect(strcmp(sb_error(), "") == 0, "nothing has failed yet");
    cr_expect(!sb_fail("test: %d is not %s", 7, "even"));
    cr_expect(strcmp(sb_error(), "test: 7 is not even") == 0);
    cr_expect(!sb_fail("again: %s", sb_error()), "the old message may be part of the new one");
    cr_expect(strcmp(sb_error(), "again: test: 7 is not even") == 0);
}

CPU_TEST(error, a_long_message_is_cut)
{
    sb_fail("%02000d", 7);
    cr_expect(strlen(sb_error()) == 1023);
}

CPU_TEST(error, a_watched_failure_sets_the_flag_and_keeps_the_first_message)
{
    bool failed = false, other = false;
    failure_watch(&failed);
    sb_fail("first");
    sb_fail("second");
    cr_expect(failed && strcmp(sb_error(), "first") == 0);
    failure_watch(&other);
    cr_expect(!other);
    sb_fail("third");
    cr_expect(other && strcmp(sb_error(), "third") == 0);
    failure_watch(NULL);
    sb_fail("fourth");
    cr_expect(strcmp(sb_error(), "fourth") == 0);
}

CPU_TEST(error, the_message_for_null_has_the_unread_failure_that_caused_it)
{
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0);
    sb_fail("exp: it broke");
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL, because exp: it broke") == 0);
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0, "it was read");
    failure_settled();
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0);
}
