/* The world: opens the MPI plug-in when mpirun has started several ranks. */
#include "communicator_abi.h"
#include "tensor/plugin_file.h"
#include "tensor/ranks.h"
#include <stdlib.h>

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

static const struct communicator_plugin *open_plugin(void)
{
    static const struct communicator_host host = {SOFTBACK_COMMUNICATOR_ABI, sb_fail};
    const char *name = getenv("SOFTBACK_MPI");
    communicator_open *open = NULL;
    void *library = plugin_file_open("mpi", name && name[0] ? name : "libsoftback_mpi.so",
                                     "softback_communicator", &open);
    const struct communicator_plugin *opened = library ? open(&host) : NULL;
    if (library && !opened)
        plugin_file_close(library);
    return opened;
}

sb_communicator *sb_communicator_world(void)
{
    if (!has_company())
        return communicator_new(NULL, NULL);
    const struct communicator_plugin *plugin = open_plugin();
    struct group *group = plugin ? plugin->open() : NULL;
    sb_communicator *world = group ? communicator_new(plugin, group) : NULL;
    if (group && !world)
        plugin->close(group);
    return world;
}
