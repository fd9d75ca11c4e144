#include "tensor/failure.h"
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

static _Atomic(const sb_device *) in_use; /* NULL: the CPU */

void sb_use_device(const sb_device *device)
{
    in_use = device;
}

const sb_device *sb_device_in_use(void)
{
    const sb_device *device = in_use;
    return device ? device : sb_device_cpu();
}

const char *sb_device_name(const sb_device *device)
{
    return device ? device->name : "no device";
}

const char *sb_device_description(const sb_device *device)
{
    return device ? device->description : "no device";
}

bool sb_device_synchronize(const sb_device *device)
{
    if (!device)
        return fail_null("device_synchronize", "device");
    return device->synchronize();
}

sb_memory sb_device_memory(const sb_device *device)
{
    if (!device)
        return (sb_memory){0};
    struct pool *pool = device->pool;
    pool_lock(pool);
    const sb_memory memory = {pool->live_blocks, pool->live_bytes, pool->peak_bytes,
                              pool->system_calls};
    pool_unlock(pool);
    return memory;
}

void sb_device_reset_peak(const sb_device *device)
{
    if (!device)
        return;
    pool_lock(device->pool);
    device->pool->peak_bytes = device->pool->live_bytes;
    pool_unlock(device->pool);
}

void sb_device_trim(const sb_device *device)
{
    if (device)
        pool_trim(device->pool);
}

void sb_free(void *memory)
{
    memory_free(memory);
}
