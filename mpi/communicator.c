/* The MPI plug-in: the part of MPI that softback needs. */
#include "communicator_abi.h"
#include "mpi/group.h"
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a transfer holds a request");

static const struct communicator_host *host;
static bool own_mpi; /* initialised by this plug-in, which must finalise it */

bool mpi_ok(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &length);
    return host->fail("mpi: %s: %s", what, text);
}

bool mpi_fail(const char *message)
{
    return host->fail("mpi: %s", message);
}

/* ---- groups ---- */

static int sharers(const cpu_set_t *own, const cpu_set_t *all, int ranks)
{
    int same = 0;
    for (int i = 0; i < ranks; i++)
        same += CPU_EQUAL(own, &all[i]);
    return same;
}

/*
 * The number of processors for a rank. mpirun may bind each rank to its own processors or let all
 * ranks of a machine share them. So the number of processors on which a rank may run is divided by
 * the number of ranks of its machine with the same set of processors.
 */
static int processors_of(MPI_Comm comm)
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

/* Takes ownership of the communicator. */
static struct group *group_of(MPI_Comm comm, bool world)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return host->fail("mpi: out of memory");
    group->comm = comm;
    group->world = world;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &group->sizes.rank);
    MPI_Comm_size(comm, &group->sizes.size);
    group->sizes.processors = processors_of(comm);
    return group;
}

static struct group *open_world(void)
{
    int begun, ended, level;
    MPI_Comm comm;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (ended)
        return host->fail("mpi: MPI was finalised already; it cannot start again in this process");
    if (!begun &&
        !mpi_ok("it cannot begin", MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level)))
        return NULL;
    own_mpi = !begun;
    return mpi_ok("duplicating the world", MPI_Comm_dup(MPI_COMM_WORLD, &comm))
               ? group_of(comm, true)
               : NULL;
}

static struct group *split(struct group *group, int color, int key)
{
    MPI_Comm comm;
    return mpi_ok("splitting", MPI_Comm_split(group->comm, color, key, &comm))
               ? group_of(comm, false)
               : NULL;
}

static void close_group(struct group *group)
{
    const bool world = group->world;
    if (world) {
        MPI_Barrier(group->comm); /* from now on no rank waits for another */
        heartbeat_end();
    }
    MPI_Comm_free(&group->comm);
    free(group);
    if (world && own_mpi)
        MPI_Finalize();
}

static struct group_sizes sizes(const struct group *group)
{
    return group->sizes;
}

/* ---- messages ---- */

static bool fits(size_t bytes)
{
    return bytes <= INT_MAX ||
           host->fail("mpi: a message of %zu bytes exceeds the range of int", bytes);
}

static void note(struct transfer *transfer, MPI_Request request)
{
    memcpy(&transfer->word, &request, sizeof request);
}

static bool send(struct group *group, const void *data, size_t bytes, int to, int tag,
                 struct transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const bool ok = fits(bytes) && mpi_ok("sending", MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag,
                                                               group->comm, &request));
    note(transfer, request);
    return ok;
}

static bool receive(struct group *group, void *room, size_t bytes, int from, int tag,
                    struct transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const bool ok = fits(bytes) && mpi_ok("receiving", MPI_Irecv(room, (int)bytes, MPI_BYTE, from,
                                                                 tag, group->comm, &request));
    note(transfer, request);
    return ok;
}

static bool complete(struct transfer *transfer, bool *done)
{
    MPI_Request request;
    int flag = 0;
    memcpy(&request, &transfer->word, sizeof request);
    const bool ok = mpi_ok("a message", done ? MPI_Test(&request, &flag, MPI_STATUS_IGNORE)
                                             : MPI_Wait(&request, MPI_STATUS_IGNORE));
    note(transfer, request);
    if (done)
        *done = flag;
    return ok;
}

static bool broadcast(struct group *group, void *data, size_t bytes, int root)
{
    return fits(bytes) &&
           mpi_ok("a broadcast", MPI_Bcast(data, (int)bytes, MPI_BYTE, root, group->comm));
}

static bool barrier(struct group *group)
{
    return mpi_ok("a barrier", MPI_Barrier(group->comm));
}

/* The launcher may close a rank's stderr before it has read all of it, so the last words get time.
 */
void job_abort(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* ---- opening ---- */

static const struct communicator_plugin plugin = {
    .open = open_world,
    .split = split,
    .close = close_group,
    .sizes = sizes,
    .send = send,
    .receive = receive,
    .complete = complete,
    .broadcast = broadcast,
    .barrier = barrier,
    .watch = heartbeat_begin,
    .abort = job_abort,
};

communicator_open softback_communicator;

__attribute__((visibility("default"))) const struct communicator_plugin *
softback_communicator(const struct communicator_host *given)
{
    if (given->abi != SOFTBACK_COMMUNICATOR_ABI)
        return given->fail("mpi: the plug-in belongs to another build of softback");
    host = given;
    return &plugin;
}
