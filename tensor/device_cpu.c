#include "tensor/memory.h"
#include "tensor/storage.h"
#include <string.h>

static bool copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return true;
}

static bool zero(void *to, size_t bytes)
{
    memset(to, 0, bytes);
    return true;
}

static bool synchronize(void)
{
    return true;
}

const sb_device *sb_device_cpu(void)
{
    static const sb_device cpu = {.kind = DEVICE_CPU,
                                  .name = "cpu",
                                  .description = "the processor",
                                  .pool = &memory_host,
                                  .upload = copy,
                                  .download = copy,
                                  .copy = copy,
                                  .zero = zero,
                                  .synchronize = synchronize,
                                  .poison = pool_poison_host};
    return &cpu;
}
