/* The choice among several GPUs. A suite of its own, since a process uses one. */
#include "tests/support/test.h"
#include <pthread.h>

static void *run_softmax(void *ok_)
{
    bool *ok = ok_;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(4)));
    sb_tensor *y = sb_softmax(x);
    *ok = y && sb_tensor_get(y, 3) == 0.25;
    if (!*ok)
        cr_log_info("%s", sb_error());
    *ok = sb_tape_end(&tape) && *ok;
    return NULL;
}

CPU_TEST(device_choice, every_thread_uses_the_chosen_one)
{
    setenv("SOFTBACK_EMULATOR_DEVICES", "2", 1);
    setenv("SOFTBACK_CUDA", "emulated", 0);
    if (strcmp(getenv("SOFTBACK_CUDA"), "emulated") != 0)
        cr_skip_test("a machine may have one device only");
    cr_expect(!sb_choose_cuda(-1));
    EXPECT_ERROR("-1 is no number of a GPU; the first is 0");
    cr_assert(sb_choose_cuda(1));
    device_needed();
    cr_expect(!sb_choose_cuda(0));
    EXPECT_ERROR("this process uses GPU 1; choose another before its first use");
    cr_expect(sb_choose_cuda(1), "the same again");
    cr_expect(strstr(sb_device_description(device_cuda()), ", device 1 of 0 to 1"), "%s",
              sb_device_description(device_cuda()));
    sb_use_device(device_cuda());
    bool here = false, there = false;
    pthread_t thread;
    run_softmax(&here);
    cr_assert(pthread_create(&thread, NULL, run_softmax, &there) == 0);
    pthread_join(thread, NULL);
    cr_expect(here && there, "%d and %d", here, there);
    sb_use_device(NULL);
}
