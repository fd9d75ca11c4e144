#include "ops/cast.h"
#include "tests/support/values.h"

TEST(cast, reals_round_and_whole_numbers_are_exact)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = constant(SB_F64, SB_SHAPE(4), NUMBERS(0.1, -0.0, 1e300, NAN));
    sb_tensor *y = sb_cast(x, SB_F32);
    MUST(y && sb_tensor_dtype(y) == SB_F32);
    expect_numbers(y, NUMBERS((float)0.1, 0, INFINITY, NAN));
    cr_expect(signbit(sb_tensor_get(y, 1)), "the sign of zero stays");
    expect_numbers(sb_cast(y, SB_F64), NUMBERS((float)0.1, 0, INFINITY, NAN));
    sb_tensor *ids = constant(SB_I32, SB_SHAPE(3), NUMBERS(-7, 0, 2147483647));
    expect_numbers(sb_cast(ids, SB_F64), NUMBERS(-7, 0, 2147483647));
    expect_numbers(sb_cast(ids, SB_F32), NUMBERS(-7, 0, 2147483648));
    expect_numbers(sb_cast(ids, SB_BOOL), NUMBERS(1, 0, 1));
    sb_tensor *flags = constant(SB_BOOL, SB_SHAPE(2), NUMBERS(1, 0));
    expect_numbers(sb_cast(flags, SB_I32), NUMBERS(1, 0));
    expect_numbers(sb_cast(flags, SB_F32), NUMBERS(1, 0));
}

/* Halfway between two numbers of bf16 for a float, but not for a double or an integer. */
TEST(cast, wide_numbers_are_rounded_to_bf16_once)
{
    static const double from[] = {1 + 0x1p-8 + 0x1p-40,
                                  1 + 0x1p-8 - 0x1p-40,
                                  1 + 3 * 0x1p-8 - 0x1p-40,
                                  -1 - 0x1p-8 - 0x1p-40,
                                  1 + 0x1p-8,
                                  -0.0,
                                  0x1.fep127 + 0x1p119,
                                  0x1.fep127 + 0x1p119 - 0x1p80,
                                  1e300,
                                  0x1.01p-130 + 0x1p-160};
    static const double to[] = {1 + 0x1p-7, 1,        1 + 0x1p-7, -1 - 0x1p-7, 1,
                                -0.0,       INFINITY, 0x1.fep127, INFINITY,    0x1p-130};
    enum { N = sizeof from / sizeof *from };
    static const int32_t whole[] = {(1 << 30) + (1 << 22) + 1, (1 << 30) + (1 << 22) - 1, 7};
    static const double rounded[] = {0x1.02p30, 0x1p30, 7};
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(N), from));
    sb_tensor *y = sb_cast(x, SB_BF16),
              *written = sb_tape_own(sb_tensor_from_doubles(SB_BF16, SB_SHAPE(N), from));
    for (int i = 0; i < N; i++) {
        const double got = sb_tensor_get(y, i);
        cr_expect(got == to[i] && signbit(got) == signbit(to[i]), "%a becomes %a, not %a", from[i],
                  got, to[i]);
        cr_expect(sb_tensor_get(written, i) == to[i], "%a is written as %a", from[i],
                  sb_tensor_get(written, i));
    }
    y = sb_cast(sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(3), whole)), SB_BF16);
    for (int i = 0; i < 3; i++)
        cr_expect(sb_tensor_get(y, i) == rounded[i], "%d becomes %a", whole[i],
                  sb_tensor_get(y, i));
    /* a gradient of 1 and one of 2^-8 + 2^-40 */
    sb_tensor *leaf = sb_tape_own(sb_tensor_from_doubles(SB_BF16, SB_SHAPE(1), (double[]){1}));
    sb_tensor_requires_grad(leaf);
    sb_tensor *small = sb_scale(sb_cast(leaf, SB_F64), 0x1p-8 + 0x1p-40);
    MUST(sb_backward(sb_sum(sb_add(small, sb_cast(leaf, SB_F64)), SB_ALL, false)));
    cr_expect(sb_tensor_value(sb_tensor_grad(leaf)) == 1 + 0x1p-7);
}

TEST(cast, values_out_of_an_integers_range_are_clamped_and_nan_becomes_0)
{
    TAPE(SB_NO_RECORD);
    for (sb_dtype real = SB_F32; real <= SB_F64; real++) {
        sb_tensor *x =
            constant(real, SB_SHAPE(7), NUMBERS(2.75, -2.75, 3e9, -3e9, INFINITY, -INFINITY, NAN));
        expect_numbers(sb_cast(x, SB_I32),
                       NUMBERS(2, -2, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0));
        expect_numbers(sb_cast(constant(real, SB_SHAPE(3), NUMBERS(0, 0.25, -1)), SB_BOOL),
                       NUMBERS(0, 1, 1));
    }
    sb_tensor *edge = constant(SB_F64, SB_SHAPE(4),
                               NUMBERS(2147483647.5, 2147483648, -2147483648.5, -2147483649));
    expect_numbers(sb_cast(edge, SB_I32), NUMBERS(INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN));
}

TEST(cast, the_gradient_is_cast_back_and_added)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tensor_requires_grad(constant(SB_F32, SB_SHAPE(2), NUMBERS(3, 4)));
    sb_tensor *y = sb_cast(x, SB_F64);
    sb_tensor *z = sb_cast(x, SB_F64);
    sb_tensor *same = sb_cast(sb_cast(x, SB_F32), SB_F64);
    sb_tensor *product = sb_multiply(sb_multiply(y, z), same);
    MUST(sb_backward(sb_sum(product, SB_ALL, false)));
    cr_expect(sb_tensor_dtype(sb_tensor_grad(x)) == SB_F32);
    expect_numbers(sb_tensor_grad(x), NUMBERS(27, 48)); /* 3 x^2 */
}

enum { TENSORS = 7 };

/* Forward and backward of the sum of squares of rounded tensors. */
static void cast_step(sb_tensor *const x[], bool together)
{
    sb_tensor *y[TENSORS], *sum = NULL;
    TAPE(SB_RECORD);
    for (int i = 0; i < TENSORS && !together; i++)
        y[i] = sb_cast(x[i], SB_BF16);
    MUST(!together || cast_all(TENSORS, x, y));
    for (int i = 0; i < TENSORS; i++) {
        sb_tensor *part = sb_sum(sb_multiply(y[i], y[i]), SB_ALL, false);
        sum = sum ? sb_add(sum, part) : part;
    }
    MUST(sb_backward(sum));
}

static void list_is_cast_as_its_tensors(void)
{
    const int64_t size[TENSORS] = {0, 1, 7, 8, 2048, 2049, 5000};
    sb_tensor *one[TENSORS], *all[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        one[i] = test_leaf(SB_F32, (uint64_t)i, 1, &size[i]);
        all[i] = test_leaf(SB_F32, (uint64_t)i, 1, &size[i]);
    }
    for (int step = 0; step < 2; step++) { /* the second adds to the gradients */
        cast_step(one, false);
        cast_step(all, true);
        for (int i = 0; i < TENSORS; i++)
            cr_expect(test_same_bits(sb_tensor_grad(one[i]), sb_tensor_grad(all[i])),
                      "step %d: the gradients of %lld numbers differ", step, (long long)size[i]);
    }
}

TEST(cast, a_list_of_tensors_is_cast_as_each_of_them)
{
    const enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_PLAIN; set++)
        if (test_kernel_set(set))
            list_is_cast_as_its_tensors();
    kernel_use_cpu_set(usual);
}

TEST(cast, no_gradient_passes_through_integers)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_cast(sb_cast(x, SB_I32), SB_F64);
    sb_tensor *z = sb_multiply(x, y);
    MUST(sb_backward(sb_sum(z, SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 4));
}

TEST(cast, the_same_dtype_shares_the_data)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_cast(x, SB_F64);
    cr_expect(y->data == x->data);
}

TEST(cast, every_element_of_long_and_empty_tensors_is_cast)
{
    TAPE(SB_NO_RECORD);
    enum { N = 40001 };
    static int32_t numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = i;
    sb_tensor *x = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(N), numbers));
    sb_tensor *back = sb_cast(sb_cast(x, SB_F64), SB_I32);
    cr_expect(!memcmp(test_data(back), numbers, sizeof numbers));
    expect_shape(sb_cast(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3))), SB_BOOL),
                 SB_SHAPE(0, 3));
}
