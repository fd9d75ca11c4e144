/*
 * A device that a kernel has put out of order: every later call fails, and says so. A suite of its
 * own, since the process cannot use the device afterwards.
 */
#include "tests/support/test.h"

static bool softmax_fails(sb_tensor *x)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *y = sb_softmax(x);
    double numbers[4];
    const bool ok = y && sb_tensor_read(y, numbers);
    return !(sb_tape_end(&tape) && ok);
}

TEST(lost_device, is_told_from_an_ordinary_error_by_every_later_call)
{
    device_needed();
    sb_use_device(device_cuda());
    if (!test_slow_device())
        cr_skip_test("some real devices can read host memory");
    static float host[4];
    sb_tensor *x = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(4)));
    void *data = x->data;
    cr_expect(!device_cuda()->copy(NULL, NULL, 4));
    cr_expect(strstr(sb_error(), "invalid argument") && !strstr(sb_error(), "lost"), "%s",
              sb_error());
    cr_expect(!softmax_fails(x), "%s", sb_error());
    x->data = host;
    for (int again = 0; again < 3; again++) {
        cr_expect(softmax_fails(x));
        EXPECT_ERROR("the device is lost to this program");
        x->data = data;
    }
    cr_expect(!sb_tensor_zeros(SB_F32, SB_SHAPE(12345)), "memory that no cache holds");
    EXPECT_ERROR("the device is lost to this program");
}
