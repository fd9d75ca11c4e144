/*
 * Heartbeats. MPI ends the job when a process dies, but not when one is stopped or its machine
 * fails: the other ranks would wait forever. So a thread on each rank sends a message to the next
 * rank at least once a second, also while the rank computes, and receives those of the previous
 * rank.
 */
#include "mpi/group.h"
#include "tensor/clock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static struct {
    MPI_Comm comm;
    int next, before;
    double limit; /* the longest silence in seconds */
    pthread_t thread;
    atomic_bool on;
} heart;

static void name_the_silent(void)
{
    fprintf(stderr, "softback: rank %d has been silent for %g seconds; the job ends\n",
            heart.before, heart.limit);
    fflush(stderr);
    job_abort();
}

/* ---- the thread ---- */

enum { BEAT, FAREWELL };

struct talk {
    char sign[2]; /* the two messages, BEAT and FAREWELL */
    MPI_Request sent, received;
    char heard; /* the last message received */
};

/* Sends a beat unless the last one is still pending: a stopped rank receives none. */
static void beat(struct talk *t)
{
    int over = 1;
    MPI_Test(&t->sent, &over, MPI_STATUS_IGNORE);
    if (over)
        MPI_Isend(&t->sign[BEAT], 1, MPI_BYTE, heart.next, 0, heart.comm, &t->sent);
}

static void listen(struct talk *t)
{
    MPI_Irecv(&t->heard, 1, MPI_BYTE, heart.before, 0, heart.comm, &t->received);
}

/* Whether a message has arrived, or the last one had arrived before. */
static bool hear(struct talk *t)
{
    int arrived = 0;
    MPI_Test(&t->received, &arrived, MPI_STATUS_IGNORE);
    if (arrived && t->heard == BEAT)
        listen(t);
    return arrived;
}

/* Ends the exchange on all ranks, so that no message remains without a receiver. */
static void part(struct talk *t)
{
    MPI_Wait(&t->sent, MPI_STATUS_IGNORE);
    MPI_Isend(&t->sign[FAREWELL], 1, MPI_BYTE, heart.next, 0, heart.comm, &t->sent);
    for (MPI_Wait(&t->received, MPI_STATUS_IGNORE); t->heard == BEAT;
         MPI_Wait(&t->received, MPI_STATUS_IGNORE))
        listen(t);
    MPI_Wait(&t->sent, MPI_STATUS_IGNORE);
}

static void *live(void *nothing)
{
    const double interval = heart.limit < 4 ? heart.limit / 4 : 1, nap = 0.1;
    const struct timespec rest = {.tv_nsec = (long)(1e9 * nap)};
    struct talk talk = {.sign = {BEAT, FAREWELL}, .sent = MPI_REQUEST_NULL};
    double last = clock_seconds(), beaten = 0, silence = 0;
    listen(&talk);
    for (; atomic_load(&heart.on); nanosleep(&rest, NULL)) {
        const double time = clock_seconds(), passed = time - last;
        last = time;
        if (time - beaten >= interval) {
            beat(&talk);
            beaten = time;
        }
        /* Do not count time in which this rank itself was stopped or had no processor. */
        silence = hear(&talk) ? 0 : silence + (passed < 2 * nap ? passed : 2 * nap);
        if (silence > heart.limit)
            name_the_silent();
    }
    part(&talk);
    return nothing;
}

/* ---- for all ranks ---- */

bool heartbeat_begin(const struct group *group, double seconds)
{
    int level;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE)
        return mpi_fail("no heartbeat: this one cannot be called by two threads at a time");
    if (atomic_load(&heart.on) || group->sizes.size == 1)
        return true;
    if (!mpi_ok("duplicating the world", MPI_Comm_dup(group->comm, &heart.comm)))
        return false;
    const int rank = group->sizes.rank, size = group->sizes.size;
    heart.next = (rank + 1) % size;
    heart.before = (rank + size - 1) % size;
    heart.limit = seconds;
    atomic_store(&heart.on, true);
    if (pthread_create(&heart.thread, NULL, live, NULL) == 0)
        return true;
    atomic_store(&heart.on, false);
    return mpi_fail("no heartbeat: there is no thread for it");
}

void heartbeat_end(void)
{
    if (!atomic_exchange(&heart.on, false))
        return;
    pthread_join(heart.thread, NULL);
    MPI_Comm_free(&heart.comm);
}
