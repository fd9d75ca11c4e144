#include "tests/support/device.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const sb_device *opened;
static int64_t uses;

const sb_device *device_cuda(void)
{
    setenv("SOFTBACK_CUDA", "emulated", 0);
    uses++;
    opened = sb_device_cuda();
    if (opened)
        opened->pool->poison = opened->poison;
    return opened;
}

const sb_device *device_opened(void)
{
    return opened;
}

int64_t device_uses(void)
{
    return uses;
}

bool device_of_run(void)
{
    const char *name = getenv("SOFTBACK_TEST_DEVICE");
    return name && strcmp(name, "cuda") == 0;
}

void device_needed(void)
{
    if (!device_of_run())
        cr_skip_test("a test of the CUDA device");
    cr_assert(device_cuda(), "%s", sb_error());
}

void on_the_cpu(void)
{
    sb_use_device(NULL);
}

bool test_slow_device(void)
{
    return strstr(sb_device_description(sb_device_in_use()), "emulated") != NULL;
}

bool test_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/* The plug-in is that of the device's functions; NULL if it does not count work. */
static emulator_work_now *work_counter(void)
{
    Dl_info plugin;
    const sb_device *cuda = sb_device_cuda();
    void *library = NULL, *function;
    emulator_work_now *now = NULL;
    if (cuda && dladdr((void *)(uintptr_t)cuda->synchronize, &plugin))
        library = dlopen(plugin.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    function = library ? dlsym(library, "softback_emulator_work") : NULL;
    memcpy(&now, &function, sizeof now);
    if (library)
        dlclose(library);
    return now;
}

struct emulator_work device_work(void)
{
    emulator_work_now *now = work_counter();
    if (!now)
        cr_skip_test("only the emulator counts work");
    return now();
}

int64_t device_requests(void)
{
    emulator_work_now *now = opened ? work_counter() : NULL;
    const struct emulator_work work = now ? now() : (struct emulator_work){0};
    return now ? work.queued + work.waits + work.uploaded + work.downloaded : -1;
}

bool test_kernel_set(enum kernel_set set)
{
    const bool on_cpu = sb_device_in_use() == sb_device_cpu();
    return on_cpu ? kernel_use_cpu_set(set) : set == KERNELS_CPU;
}

struct sets sets_up_to(enum kernel_set last)
{
    return (struct sets){.last = last, .usual = kernel_cpu_set()};
}

bool next_set(struct sets *s)
{
    for (s->set = s->begun ? s->set + 1 : KERNELS_CPU; s->set <= s->last; s->set++)
        if (test_kernel_set(s->set))
            return s->begun = true;
    kernel_use_cpu_set(s->usual);
    return false;
}

sb_memory memory_in_use(void)
{
    return sb_device_memory(sb_device_in_use());
}

int64_t live_blocks(void)
{
    const sb_device *cuda = device_opened();
    return memory_pool()->live_blocks + (cuda ? cuda->pool->live_blocks : 0);
}
