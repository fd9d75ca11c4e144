/*
 * The number of processors for a rank. mpirun may bind each rank to its own processors or let all
 * ranks of a machine share them. So the number of processors on which a rank may run is divided by
 * the number of ranks of its machine with the same set of processors.
 */
#include "mpi/group.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int sharers(const cpu_set_t *own, const cpu_set_t *all, int ranks)
{
    int same = 0;
    for (int i = 0; i < ranks; i++)
        same += CPU_EQUAL(own, &all[i]);
    return same;
}

int processors_of(MPI_Comm comm)
{
    MPI_Comm machine;
    cpu_set_t own;
    int ranks = 1, share = 1;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) != MPI_SUCCESS)
        return 1;
    MPI_Comm_size(machine, &ranks);
    cpu_set_t *all = calloc((size_t)ranks, sizeof *all);
    if (all && MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, machine) ==
                   MPI_SUCCESS)
        share = CPU_COUNT(&own) / sharers(&own, all, ranks);
    free(all);
    MPI_Comm_free(&machine);
    return share > 1 ? share : 1;
}
