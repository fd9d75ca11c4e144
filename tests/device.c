#include "tests/device.h"
#include <criterion/criterion.h>
#include <stdlib.h>

const sb_device *device_cuda(void)
{
    setenv("SOFTBACK_CUDA", "emulated", 0);
    return sb_device_cuda();
}

void device_needed(void)
{
    if (!device_cuda())
        cr_skip_test("%s", sb_error());
}
