/* The CUDA device: its plug-in is found and opened once, at the first call. */
#include "abi.h"
#include "tensor/plugin.h"
#include "tensor/storage.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pool pool = {.lock = ATOMIC_FLAG_INIT};
static struct pool graphs_pool = {.lock = ATOMIC_FLAG_INIT};
static struct sb_device cuda;
static const struct plugin *plugin;
static char reason[512]; /* why there is none */

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

/* The folder of the library or program that holds this function, with a slash at its end, or "". */
static void own_folder(size_t size, char *folder)
{
    Dl_info about;
    struct link_map *map = NULL;
    folder[0] = '\0';
    if (!dladdr1((void *)(uintptr_t)sb_device_cuda, &about, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return;
    if (map->l_name[0]) {
        snprintf(folder, size, "%s", map->l_name);
    } else { /* the program itself */
        ssize_t length = readlink("/proc/self/exe", folder, size - 1);
        folder[length > 0 ? length : 0] = '\0';
    }
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
}

/* What SOFTBACK_CUDA names, or else the library's own plug-in. */
static const char *file_name(void)
{
    const char *name = getenv("SOFTBACK_CUDA");
    if (name && strcmp(name, "emulated") == 0)
        return "libsoftback_cuda_emulated.so";
    return name && name[0] ? name : "libsoftback_cuda.so";
}

static void *open_library(const char *name)
{
    char path[4096];
    own_folder(sizeof path, path);
    strncat(path, name, sizeof path - strlen(path) - 1);
    bool beside = !strchr(name, '/') && access(path, R_OK) == 0;
    return dlopen(beside ? path : name, RTLD_NOW | RTLD_LOCAL);
}

static const struct plugin *open_plugin(void)
{
    static const struct plugin_host host = {SOFTBACK_ABI, sb_fail, take, give};
    const char *name = file_name();
    void *library = open_library(name);
    if (!library)
        return sb_fail("cuda: cannot open the plug-in %s: %s", name, dlerror());
    plugin_open *open = NULL;
    void *symbol = dlsym(library, "softback_plugin");
    memcpy(&open, &symbol, sizeof open); /* a data pointer is no function pointer in ISO C */
    const struct plugin *opened = open ? open(&host) : NULL;
    if (!open)
        sb_fail("cuda: %s is no plug-in of softback: it has no softback_plugin", name);
    if (!opened)
        dlclose(library);
    return opened;
}

static void look_for_it(void)
{
    plugin = open_plugin();
    if (!plugin) {
        snprintf(reason, sizeof reason, "%s", sb_error());
        return;
    }
    pool.system_take = plugin->system_take;
    pool.system_give = plugin->system_give;
    graphs_pool.system_take = plugin->system_take;
    graphs_pool.system_give = plugin->system_give;
    cuda = (struct sb_device){.kind = DEVICE_CUDA,
                              .name = "cuda",
                              .description = plugin->description,
                              .pool = &pool,
                              .upload = plugin->upload,
                              .download = plugin->download,
                              .copy = plugin->copy,
                              .zero = plugin->zero,
                              .synchronize = plugin->synchronize,
                              .row = row,
                              .graphs = POOL_CACHES ? &plugin->graphs : NULL,
                              .private_memory = private_memory,
                              .poison = plugin->poison};
}

const sb_device *sb_device_cuda(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_it);
    return plugin ? &cuda : sb_fail("%s", reason);
}
