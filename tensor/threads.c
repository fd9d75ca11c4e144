/*
 * The threads that kernels run on: OpenMP's, or the calling one alone in a build without it; and
 * POSIX threads for calls that run at the same time, each of which has a team of OpenMP's.
 *
 * GCC's OpenMP ends the process when a thread or a team cannot be made, wherever in a computation
 * that happens. So a team is tried out before it is made, which happens once for each number of
 * threads; where it cannot be made, and where there is one thread, parallel regions run as plain
 * function calls, without OpenMP. meson.build lets the linker replace its entry points.
 */
#include "tensor/threads.h"
#include "tensor/device.h"
#include <stdatomic.h>
#include <stdio.h>
#ifndef __wasi__
#include <pthread.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#include <stdlib.h>
#endif

enum { MOST_THREADS = 1024 };

#ifdef _OPENMP

int sb_threads(void)
{
    return omp_get_max_threads();
}

static void threads_divide_among(int threads)
{
    omp_set_num_threads(threads);
}

/* Of the calling thread, which has a team of its own. */
static _Thread_local int made = 1;    /* the threads of its team */
static _Thread_local int refused = 0; /* a number of threads that could not be made; 0: none */

/* More than OpenMP allocates for a team, for each thread of it. */
enum { TEAM_BYTES = 1 << 14 };

static void *threads_wait(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Whether so many threads can be alive, with the memory of their team; they end again. */
static bool threads_try(int threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = malloc((size_t)threads * (sizeof *thread + TEAM_BYTES));
    int started = 0;
    if (!thread)
        return false;
    pthread_mutex_lock(&gate); /* all wait, so that they are alive at the same time */
    while (started < threads - 1 &&
           pthread_create(&thread[started], NULL, threads_wait, &gate) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return started == threads - 1;
}

/* Makes the calling thread's team, unless it is there; false when it cannot be made. */
static bool threads_make(int threads)
{
    if (threads <= made) {
        made = threads; /* OpenMP ends the others */
        return true;
    }
    if (threads == refused || !threads_try(threads)) {
        refused = threads;
        return false;
    }
    made = threads;
    return true;
}

#else

static _Thread_local int allowed = 1;

int sb_threads(void)
{
    return allowed;
}

static void threads_divide_among(int threads)
{
    allowed = threads;
}

#endif

#ifdef SOFTBACK_WRAPS_OPENMP

static atomic_long entered;
static _Thread_local int alone; /* parallel regions that run as plain calls, one in the other */

int64_t threads_entered(void)
{
    return atomic_load(&entered);
}

/* The linker calls these instead of GOMP_..., and GOMP_... for __real_GOMP_... */
typedef void region(void *data);
void __real_GOMP_parallel(region *f, void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(region *f, void *data, unsigned threads, unsigned flags);
bool __real_GOMP_loop_nonmonotonic_dynamic_start(long, long, long, long, long *, long *);
bool __wrap_GOMP_loop_nonmonotonic_dynamic_start(long, long, long, long, long *, long *);
bool __real_GOMP_loop_nonmonotonic_dynamic_next(long *, long *);
bool __wrap_GOMP_loop_nonmonotonic_dynamic_next(long *, long *);
void __real_GOMP_loop_end(void);
void __wrap_GOMP_loop_end(void);
void __real_GOMP_loop_end_nowait(void);
void __wrap_GOMP_loop_end_nowait(void);

/* `threads` is 0 for the default, and 1 where the if clause of a region is false. Within a team a
   region has a team of one, which is OpenMP's matter: the caller's loops must not be divided. */
void __wrap_GOMP_parallel(region *f, void *data, unsigned threads, unsigned flags)
{
    const int wanted = threads > 0 ? (int)threads : omp_get_max_threads();
    if (omp_in_parallel() || (wanted > 1 && threads_make(wanted))) {
        const int before = alone;
        alone = 0;
        atomic_fetch_add(&entered, 1);
        __real_GOMP_parallel(f, data, threads, flags);
        alone = before;
        return;
    }
    alone++;
    f(data);
    alone--;
}

/* A loop whose iterations threads take in turns: alone, all of them at once. */
bool __wrap_GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk,
                                                 long *first, long *last)
{
    if (alone == 0)
        return __real_GOMP_loop_nonmonotonic_dynamic_start(start, end, step, chunk, first, last);
    *first = start;
    *last = end;
    return step > 0 ? start < end : start > end;
}

bool __wrap_GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last)
{
    return alone == 0 && __real_GOMP_loop_nonmonotonic_dynamic_next(first, last);
}

void __wrap_GOMP_loop_end(void)
{
    if (alone == 0)
        __real_GOMP_loop_end();
}

void __wrap_GOMP_loop_end_nowait(void)
{
    if (alone == 0)
        __real_GOMP_loop_end_nowait();
}

#else

int64_t threads_entered(void)
{
    return 0;
}

#endif

bool sb_set_threads(int threads)
{
    if (threads < 1 || threads > MOST_THREADS)
        return sb_fail("threads: %d is not in 1..%d", threads, MOST_THREADS);
#ifdef _OPENMP
    refused = 0;
    if (!threads_make(threads))
        return sb_fail("threads: %d threads cannot be made; ask for fewer, or raise the limits of "
                       "memory and processes",
                       threads);
#endif
    threads_divide_among(threads);
    return true;
}

/* ---- calls at the same time ---- */

struct calls {
    bool (*work)(void *context, int64_t i);
    void *context;
    int64_t n;
    atomic_int_fast64_t next;
    int team;         /* of each thread */
    atomic_flag lock; /* of the rest */
    int64_t failed;   /* the least; n: none */
    char message[512];
};

static void threads_note_failure(struct calls *c, int64_t i)
{
    atomic_store(&c->next, c->n);
    while (atomic_flag_test_and_set(&c->lock))
        ;
    if (i < c->failed)
        snprintf(c->message, sizeof c->message, "%s", sb_error());
    c->failed = i < c->failed ? i : c->failed;
    atomic_flag_clear(&c->lock);
}

static void *threads_take_calls(void *calls)
{
    struct calls *c = calls;
    threads_divide_among(c->team);
    for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
        if (!c->work(c->context, i))
            threads_note_failure(c, i);
    return NULL;
}

bool threads_each(int64_t n, bool in_turn, bool (*work)(void *context, int64_t i), void *context)
{
    const int threads = sb_threads(), limit = threads < MOST_THREADS ? threads : MOST_THREADS,
              most = in_turn     ? 1
                     : limit < n ? limit
                                 : (int)n;
    struct calls calls = {
        .work = work, .context = context, .n = n, .failed = n, .lock = ATOMIC_FLAG_INIT};
    calls.team = most > 1 ? threads / most : threads;
#ifndef __wasi__ /* browsers have one thread */
    pthread_t thread[MOST_THREADS];
    int started = 0;
    while (started < most - 1 &&
           pthread_create(&thread[started], NULL, threads_take_calls, &calls) == 0)
        started++;
#endif
    threads_take_calls(&calls);
    threads_divide_among(threads);
#ifndef __wasi__
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
#endif
    return calls.failed == n || sb_fail("%s", calls.message);
}
