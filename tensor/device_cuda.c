/* The CUDA device: its plug-in is found and opened once, at the first call. */
#include "abi.h"
#include "tensor/failure.h"
#include "tensor/plugin.h"
#include "tensor/plugin_file.h"
#include "tensor/storage.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pool pool = {.lock = ATOMIC_FLAG_INIT};
static struct pool graphs_pool = {.lock = ATOMIC_FLAG_INIT};
static struct pool staging_pool = {.lock = ATOMIC_FLAG_INIT};
static struct sb_device cuda;
static const struct plugin *plugin;
static char reason[512];   /* why there is no CUDA device */
static _Atomic int chosen; /* the number of the GPU */
static _Atomic bool looked;

static void *take(size_t bytes)
{
    return pool_take(cuda.pool, bytes);
}

static void give(void *block, size_t bytes)
{
    pool_give(cuda.pool, block, bytes);
}

static void private_memory(bool on)
{
    cuda.pool = on ? &graphs_pool : &pool;
}

static const void *row(const char *operation, sb_dtype dtype)
{
    for (const struct plugin_row *const *r = plugin->rows; *r; r++)
        if (strcmp((*r)->operation, operation) == 0)
            return (*r)->row[dtype];
    return NULL;
}

/* The file that SOFTBACK_CUDA names, or the default plug-in. */
static const char *file_name(void)
{
    const char *name = getenv("SOFTBACK_CUDA");
    if (name && strcmp(name, "emulated") == 0)
        return "libsoftback_cuda_emulated.so";
    return name && name[0] ? name : "libsoftback_cuda.so";
}

static const struct plugin *open_plugin(void)
{
    static struct plugin_host host = {SOFTBACK_ABI, sb_fail, failure_count, take, give, 0};
    host.device = chosen;
    plugin_open *open = NULL;
    void *library = plugin_file_open("cuda", file_name(), "softback_plugin", &open);
    const struct plugin *opened = library ? open(&host) : NULL;
    if (library && !opened)
        plugin_file_close(library);
    return opened;
}

static void look_for_it(void)
{
    looked = true;
    plugin = open_plugin();
    if (!plugin) {
        snprintf(reason, sizeof reason, "%s", sb_error());
        return;
    }
    pool.system_take = plugin->system_take;
    pool.system_give = plugin->system_give;
    graphs_pool.system_take = plugin->system_take;
    graphs_pool.system_give = plugin->system_give;
    staging_pool.system_take = plugin->staging_take;
    staging_pool.system_give = plugin->staging_give;
    cuda = (struct sb_device){.kind = DEVICE_CUDA,
                              .name = "cuda",
                              .description = plugin->description,
                              .pool = &pool,
                              .staging = &staging_pool,
                              .upload = plugin->upload,
                              .download = plugin->download,
                              .copy = plugin->copy,
                              .zero = plugin->zero,
                              .synchronize = plugin->synchronize,
                              .enter = plugin->enter,
                              .row = row,
                              .graphs = POOL_CACHES ? &plugin->graphs : NULL,
                              .private_memory = private_memory,
                              .poison = plugin->poison};
}

bool sb_choose_cuda(int number)
{
    if (number < 0)
        return sb_fail("choose_cuda: %d is no number of a GPU; the first is 0", number);
    if (looked && number != chosen)
        return sb_fail("choose_cuda: this process uses GPU %d; choose another before its first use",
                       chosen);
    chosen = number;
    return true;
}

bool device_cuda_sought(void)
{
    return looked;
}

const sb_device *sb_device_cuda(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_it);
    return plugin ? &cuda : sb_fail("%s", reason);
}
