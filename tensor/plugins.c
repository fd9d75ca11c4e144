/* Plug-ins: shared libraries that are opened at run time, for CUDA devices and for MPI. */
#include "abi.h"
#include "communicator_abi.h"
#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/plugin.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the library or program that contains this function, ending in a slash, or "". */
static void own_folder(size_t size, char *folder)
{
    Dl_info about;
    struct link_map *map = NULL;
    folder[0] = '\0';
    if (!dladdr1((void *)(uintptr_t)own_folder, &about, (void **)&map, RTLD_DL_LINKMAP) || !map)
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

/*
 * Opens a plug-in and stores the address of its function `symbol` in *function. A name without a
 * slash is searched for in the folder of the library or program that contains this function, then
 * on the system's library path. Returns NULL, with a message that begins with `who`, on failure.
 */
static void *plugin_file_open(const char *who, const char *name, const char *symbol, void *function)
{
    char path[4096];
    own_folder(sizeof path, path);
    strncat(path, name, sizeof path - strlen(path) - 1);
    const bool beside = !strchr(name, '/') && access(path, R_OK) == 0;
    void *library = dlopen(beside ? path : name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sb_fail("%s: cannot open the plug-in %s: %s", who, name, dlerror());
    void *found = dlsym(library, symbol);
    memcpy(function, &found,
           sizeof found); /* ISO C has no conversion from data pointers to function pointers */
    if (found)
        return library;
    sb_fail("%s: %s is not a softback plug-in: it has no %s", who, name, symbol);
    dlclose(library);
    return NULL;
}

/* ---- the CUDA device: its plug-in is found and opened once, at the first call ---- */

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

static const struct plugin *open_cuda(void)
{
    static struct plugin_host host = {SOFTBACK_ABI, sb_fail, failure_count, take, give, 0};
    const char *name = getenv("SOFTBACK_CUDA");
    if (!name || !name[0])
        name = "libsoftback_cuda.so";
    else if (strcmp(name, "emulated") == 0)
        name = "libsoftback_cuda_emulated.so";
    host.device = chosen;
    plugin_open *open = NULL;
    void *library = plugin_file_open("cuda", name, "softback_plugin", &open);
    const struct plugin *opened = library ? open(&host) : NULL;
    if (library && !opened)
        dlclose(library);
    return opened;
}

static void look_for_it(void)
{
    looked = true;
    plugin = open_cuda();
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

/* ---- the world: the MPI plug-in is opened when mpirun has started several ranks ---- */

/* Environment variables that Open MPI, MPICH and Slurm set in the processes that they start. Each
   is the number of ranks, except PMIX_RANK, from which the number is not known. */
static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

/* Whether there may be other ranks. */
static bool has_company(void)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const char *value = getenv(signs[i]);
        if (value && value[0])
            return i == 2 || atoi(value) > 1;
    }
    return false;
}

static const struct communicator_plugin *open_world(void)
{
    static const struct communicator_host host = {SOFTBACK_COMMUNICATOR_ABI, sb_fail};
    const char *name = getenv("SOFTBACK_MPI");
    communicator_open *open = NULL;
    void *library = plugin_file_open("mpi", name && name[0] ? name : "libsoftback_mpi.so",
                                     "softback_communicator", &open);
    const struct communicator_plugin *opened = library ? open(&host) : NULL;
    if (library && !opened)
        dlclose(library);
    return opened;
}

sb_communicator *sb_communicator_world(void)
{
    if (!has_company())
        return communicator_new(NULL, NULL);
    const struct communicator_plugin *mpi = open_world();
    struct group *group = mpi ? mpi->open() : NULL;
    sb_communicator *world = group ? communicator_new(mpi, group) : NULL;
    if (group && !world)
        mpi->close(group);
    return world;
}
