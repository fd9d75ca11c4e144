#include "tests/threads_ring.h"
#include "tests/test.h"
#include <pthread.h>
#include <stdio.h>

enum { MOST_RANKS = 8, MOST_MESSAGES = 64 };

struct message {
    const void *data;
    size_t bytes;
    bool sent, taken;
};

/* The messages from one rank to another, in their order. */
struct line {
    struct message message[MOST_MESSAGES];
    int sent, asked;
};

struct job {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct line line[MOST_RANKS][MOST_RANKS];
    bool failed; /* a rank did, and answers no more */
    ring_body body;
    void *context;
};

struct rank {
    struct ring ring;
    struct job *job;
    pthread_t thread;
    bool ok;
    char error[200];
};

struct exchange {
    struct job *job;
    struct message *out, *in;
    void *room;
    size_t bytes;
};

static void *start(void *context, int to, const void *data, size_t bytes, int from, void *room,
                   size_t room_bytes)
{
    struct rank *rank = context;
    struct job *job = rank->job;
    struct line *out = &job->line[rank->ring.rank][to], *in = &job->line[from][rank->ring.rank];
    struct exchange *e = malloc(sizeof *e);
    memset(room, 0xff, room_bytes);
    pthread_mutex_lock(&job->mutex);
    *e = (struct exchange){job, &out->message[out->sent++ % MOST_MESSAGES],
                           &in->message[in->asked++ % MOST_MESSAGES], room, room_bytes};
    *e->out = (struct message){data, bytes, true, false};
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    return e;
}

static bool finish(void *exchange)
{
    struct exchange *e = exchange;
    struct job *job = e->job;
    pthread_mutex_lock(&job->mutex);
    while (!e->in->sent && !job->failed)
        pthread_cond_wait(&job->changed, &job->mutex);
    const bool fits = e->in->sent && e->in->bytes == e->bytes;
    if (fits && e->bytes)
        memcpy(e->room, e->in->data, e->bytes);
    e->in->taken = true;
    pthread_cond_broadcast(&job->changed);
    while (!e->out->taken && !job->failed)
        pthread_cond_wait(&job->changed, &job->mutex);
    e->out->sent = false;
    pthread_mutex_unlock(&job->mutex);
    free(e);
    return fits || sb_fail("a message did not come, or has not the size of the room for it");
}

static void *run(void *context)
{
    struct rank *rank = context;
    rank->ok = rank->job->body(&rank->ring, rank->job->context);
    if (rank->ok)
        return NULL;
    snprintf(rank->error, sizeof rank->error, "%s", sb_error());
    pthread_mutex_lock(&rank->job->mutex);
    rank->job->failed = true;
    pthread_cond_broadcast(&rank->job->changed);
    pthread_mutex_unlock(&rank->job->mutex);
    return NULL;
}

void ring_run(int ranks, ring_body body, void *context)
{
    struct job *job = calloc(1, sizeof *job);
    struct rank rank[MOST_RANKS];
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->changed, NULL);
    job->body = body;
    job->context = context;
    for (int r = 0; r < ranks; r++) {
        rank[r] = (struct rank){.ring = {r, ranks, &rank[r], start, finish}, .job = job};
        cr_assert(pthread_create(&rank[r].thread, NULL, run, &rank[r]) == 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(rank[r].thread, NULL);
    for (int r = 0; r < ranks; r++)
        cr_expect(rank[r].ok, "rank %d of %d: %s", r, ranks, rank[r].error);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->mutex);
    free(job);
}
