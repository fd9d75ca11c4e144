#include "ops/packed_weights.h"
#include "tests/support/compare.h"

/* x W' + b, `times` times, on tapes inside one whose context has packed weights, if it `keeps`; the
   last result. */
static sb_tensor *multiply(bool keeps, int times, sb_tensor *x, sb_tensor *weight, sb_tensor *bias)
{
    sb_tensor *y = NULL;
    struct packed_weights *packed = keeps ? packed_weights_new(SB_WEIGHTS_AS_STORED) : NULL;
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < times; i++) {
        sb_tape_begin(&tape, SB_NO_RECORD);
        y = retained(sb_linear_activation(x, weight, bias, SB_ACTIVATION_GELU));
        cr_expect(sb_tape_end(&tape) && y, "%s", sb_error());
    }
    sb_tape_end(&around);
    packed_weights_free(packed);
    return y;
}

static void expect_same_bits(sb_dtype dtype, int64_t rows, int64_t in, int64_t out)
{
    sb_tensor *x = test_leaf(dtype, 1, SB_SHAPE(rows, in));
    sb_tensor *weight = test_leaf(dtype, 2, SB_SHAPE(out, in));
    sb_tensor *bias = test_leaf(dtype, 3, SB_SHAPE(out));
    sb_tensor *plain = multiply(false, 1, x, weight, bias);
    sb_tensor *packed = multiply(true, 3, x, weight, bias);
    cr_expect(test_same_bits(plain, packed), "%s: (%lld, %lld) times (%lld, %lld)'",
              sb_dtype_name(dtype), (long long)rows, (long long)in, (long long)out, (long long)in);
}

/* Rows above and below the number from which strips are used, depths of several blocks, columns
   that do not fill vectors; for each instruction set. */
CPU_TEST(packed_weights, results_have_the_same_bits)
{
    static const int64_t rows[] = {1, 3, 5, 70}, in[] = {1, 17, 256, 300, 1000},
                         out[] = {1, 31, 64, 200};
    const enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (int i = 0; i < 4 * 5 * 4 * 2 && kernel_use_cpu_set(set); i++)
            expect_same_bits(i % 2 ? SB_F64 : SB_F32, rows[i / 2 % 4], in[i / 8 % 5],
                             out[i / 40 % 4]);
    kernel_use_cpu_set(usual);
}

/* Another tensor than a parameter may be replaced, or have another value, before its next use. */
CPU_TEST(packed_weights, only_parameters_are_packed)
{
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){1, 10}));
    sb_tensor *weight = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){0, 1}));
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    TAPE_WITH(SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < 4; i++) {
        sb_tensor_set(weight, 0, i);
        cr_expect(sb_tensor_value(sb_linear(x, weight, NULL)) == 10 + i);
    }
    packed_weights_free(packed);
}

static int64_t live_bytes(void)
{
    return memory_in_use().live_bytes;
}

/* A weight that is used once costs nothing. */
CPU_TEST(packed_weights, weights_are_packed_at_their_second_use)
{
    const int64_t n = 64, bytes = n * n * (int64_t)sizeof(float);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(1, n)),
              *weight = test_leaf(SB_F32, 2, SB_SHAPE(n, n));
    const int64_t before = live_bytes();
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int use = 1; use <= 3; use++) {
        sb_tape_begin(&tape, SB_NO_RECORD);
        cr_expect(sb_linear(x, weight, NULL) != NULL);
        cr_expect(sb_tape_end(&tape));
        cr_expect((live_bytes() - before >= bytes) == (use > 1), "use %d: %lld bytes", use,
                  (long long)(live_bytes() - before));
    }
    cr_expect(sb_tape_end(&around));
    packed_weights_free(packed);
    cr_expect(live_bytes() == before);
}

/* A recording tape is for training, which changes weights. */
CPU_TEST(packed_weights, a_recording_tape_does_not_pack_weights)
{
    sb_tensor *x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){1, 10}));
    sb_tensor *weight = KEPT(
        sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), (double[]){0, 1})));
    struct packed_weights *packed = packed_weights_new(SB_WEIGHTS_AS_STORED);
    sb_tape around, tape;
    sb_tape_begin_with(&around, SB_NO_RECORD, &(sb_context){.packed = packed});
    for (int i = 0; i < 3; i++) {
        sb_tensor_set(weight, 0, i);
        sb_tape_begin(&tape, SB_RECORD);
        cr_expect(sb_tensor_value(sb_linear(x, weight, NULL)) == 10 + i);
        cr_expect(sb_tape_end(&tape));
    }
    cr_expect(sb_tape_end(&around));
    packed_weights_free(packed);
}
