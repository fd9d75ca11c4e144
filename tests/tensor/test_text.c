#include "tests/support/test.h"
#include <criterion/redirect.h>
#include <stdio.h>

static void expect_text(sb_tensor *t, const char *expected)
{
    char *text = sb_tensor_text(t);
    cr_expect(text && strcmp(text, expected) == 0, "the text is\n%s", text);
    sb_free(text);
    sb_tensor_release(t);
}

TEST(text, tensors_show_dtype_shape_and_elements)
{
    expect_text(sb_tensor_scalar(SB_F32, 0.5), "f32 () 0.5");
    expect_text(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){1, -2, 1 / 3.0}),
                "f64 (3) [1 -2 0.33333]");
    expect_text(
        sb_tensor_from_doubles(SB_I32, SB_SHAPE(3), (double[]){INT32_MIN, INT32_MAX, 123456}),
        "i32 (3) [-2147483648 2147483647 123456]");
    expect_text(sb_tensor_from_doubles(SB_I32, SB_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}),
                "i32 (2, 3)\n[[1 2 3]\n [4 5 6]]");
    expect_text(sb_tensor_full(SB_BOOL, SB_SHAPE(2, 1, 2), 1),
                "bool (2, 1, 2)\n[[[1 1]]\n [[1 1]]]");
    expect_text(sb_tensor_full(SB_F32, SB_SHAPE(2), NAN), "f32 (2) [nan nan]");
    expect_text(sb_tensor_zeros(SB_F32, SB_SHAPE(0)), "f32 (0) []");
}

TEST(text, the_middle_of_a_long_axis_is_omitted)
{
    double values[11] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    expect_text(sb_tensor_from_doubles(SB_F32, SB_SHAPE(9), values), "f32 (9) [0 1 2 3 4 5 6 7 8]");
    expect_text(sb_tensor_from_doubles(SB_F32, SB_SHAPE(11), values),
                "f32 (11) [0 1 2 3 ... 7 8 9 10]");
    expect_text(sb_tensor_zeros(SB_F32, SB_SHAPE(10, 1)),
                "f32 (10, 1)\n[[0]\n [0]\n [0]\n [0]\n ...\n [0]\n [0]\n [0]\n [0]]");
}

CPU_TEST(text, null_is_refused)
{
    cr_expect(!sb_tensor_text(NULL));
    EXPECT_ERROR("tensor_text: t is NULL");
}

TEST(text, printing_null_shows_the_last_error)
{
    cr_redirect_stdout();
    sb_tensor *t = sb_tensor_full(SB_F32, SB_SHAPE(2), 3);
    sb_tensor_print(t);
    sb_tensor_release(t);
    sb_fail("softmax: no tape is open");
    sb_tensor_print(NULL);
    fflush(stdout);
    cr_assert_stdout_eq_str("f32 (2) [3 3]\n(no tensor) softmax: no tape is open\n");
}
