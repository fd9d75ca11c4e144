/*
 * One pool of threads, for the parallel regions of kernels and for calls that run at the same time.
 * A thread waits for its next job for some microseconds, then it sleeps, so that it costs other
 * processes little. One that cannot be made is missing: the others compute its part.
 *
 * GCC compiles `#pragma omp parallel` and the loops in it into calls of the functions below that
 * begin with GOMP_ (their source: the GCC manual "GNU Offloading and Multi Processing Runtime
 * Library", part "The libgomp ABI"). They are defined here, and libgomp is not linked: it ends the
 * process where a thread cannot be made, and its waiting threads keep processors busy. Kernels use
 * regions, static loops and loops with schedule(dynamic); clang compiles them for its own library.
 */
#include "tensor/threads.h"
#include "tensor/device.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef __wasi__
#include <pthread.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

enum { MOST_THREADS = 1024 };

/* ---- the number of threads ---- */

static _Thread_local int allowed; /* to the calling thread; 0: the usual number */

static int threads_usual(void)
{
#ifdef _OPENMP
    const char *asked = getenv("OMP_NUM_THREADS");
    long threads = asked ? strtol(asked, NULL, 10) : 0;
#ifdef __linux__
    cpu_set_t processors;
    if (threads < 1 && sched_getaffinity(0, sizeof processors, &processors) == 0)
        threads = CPU_COUNT(&processors);
#endif
    return threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (int)threads;
#else
    return 1;
#endif
}

int sb_threads(void)
{
    if (allowed == 0)
        allowed = threads_usual();
    return allowed;
}

static void threads_allow(int threads)
{
    allowed = threads;
#if defined(_OPENMP) && defined(__clang__)
    omp_set_num_threads(threads);
#endif
}

#ifndef __wasi__

/* ---- gates: a count for which threads wait ---- */

struct gate {
    atomic_uint count;
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t moved;
};

enum { SPINS = 1000 }; /* pauses, which took 25 microseconds on a Xeon */

static const struct gate gate_new = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                     .moved = PTHREAD_COND_INITIALIZER};

static void gate_advance(struct gate *gate)
{
    atomic_fetch_add(&gate->count, 1);
    if (atomic_load(&gate->sleepers) == 0)
        return;
    pthread_mutex_lock(&gate->lock);
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
}

/* Until the count is no longer `seen`. */
static void gate_wait(struct gate *gate, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&gate->count, memory_order_acquire) != seen)
            return;
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&gate->lock);
    atomic_fetch_add(&gate->sleepers, 1);
    while (atomic_load(&gate->count) == seen)
        pthread_cond_wait(&gate->moved, &gate->lock);
    atomic_fetch_sub(&gate->sleepers, 1);
    pthread_mutex_unlock(&gate->lock);
}

/* ---- the pool ---- */

/* A job: place is 0 on the caller's thread, and 1, 2, ... on those that help. */
typedef void job(void *context, int place);

struct worker {
    struct worker *next; /* of a list */
    job *run;
    void *context;
    int place;
    unsigned jobs; /* that it was given */
    struct gate given, done;
};

static struct {
    pthread_mutex_t lock;
    struct worker *idle;
    bool full; /* no more can be made */
    bool watches_forks;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *worker_run(void *worker)
{
    struct worker *w = worker;
    for (unsigned jobs = 0;; jobs++) {
        gate_wait(&w->given, jobs);
        w->run(w->context, w->place);
        gate_advance(&w->done);
    }
    return NULL;
}

/* Lives as long as the process; NULL where no thread can be made. */
static struct worker *worker_new(void)
{
    struct worker *w = malloc(sizeof *w);
    pthread_t thread;
    if (!w)
        return NULL;
    *w = (struct worker){.given = gate_new, .done = gate_new};
    if (pthread_create(&thread, NULL, worker_run, w) != 0) {
        free(w);
        return NULL;
    }
    pthread_detach(thread);
    return w;
}

static void pool_lock(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void pool_unlock(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* Threads stay in the parent. */
static void pool_forked(void)
{
    pool.idle = NULL;
    pool.full = false;
    pool_unlock();
}

/* Takes up to n workers, and makes those that are missing. */
static struct worker *pool_take(int n, int *taken)
{
    struct worker *list = NULL, *w;
    pool_lock();
    if (!pool.watches_forks)
        pool.watches_forks = pthread_atfork(pool_lock, pool_unlock, pool_forked) == 0;
    for (*taken = 0; *taken < n; ++*taken) {
        if ((w = pool.idle))
            pool.idle = w->next;
        else if (pool.full || !(w = worker_new()))
            break;
        w->next = list;
        list = w;
    }
    pool.full |= *taken < n;
    pool_unlock();
    return list;
}

static void pool_give_back(struct worker *list)
{
    pool_lock();
    for (struct worker *w = list, *next; w; w = next) {
        next = w->next;
        w->next = pool.idle;
        pool.idle = w;
    }
    pool_unlock();
}

/* Runs a job on up to n threads, of which the caller's is one; *threads, which the job may read,
 * are those. */
static void pool_run(int n, job *run, void *context, int *threads)
{
    struct worker *helpers = pool_take(n - 1, threads);
    ++*threads;
    int place = 0;
    for (struct worker *w = helpers; w; w = w->next) {
        w->run = run;
        w->context = context;
        w->place = ++place;
        w->jobs++;
        gate_advance(&w->given);
    }
    run(context, 0);
    for (struct worker *w = helpers; w; w = w->next)
        gate_wait(&w->done, w->jobs - 1);
    pool_give_back(helpers);
}

static bool threads_make(int n)
{
    int made;
    pool_lock();
    pool.full = false;
    pool_unlock();
    pool_give_back(pool_take(n - 1, &made));
    return made == n - 1;
}

#else

static bool threads_make(int n)
{
    (void)n; /* browsers have one thread */
    return true;
}

#endif

bool sb_set_threads(int threads)
{
    if (threads < 1 || threads > MOST_THREADS)
        return sb_fail("threads: %d is not in 1..%d", threads, MOST_THREADS);
    if (!threads_make(threads))
        return sb_fail("threads: %d threads cannot be made; ask for fewer, or raise the limits of "
                       "memory and processes",
                       threads);
    threads_allow(threads);
    return true;
}

/* ---- parallel regions ---- */

#if defined(_OPENMP) && !defined(__clang__)

/* The threads of a region; on its caller's stack. */
struct team {
    void (*region)(void *);
    void *data;
    int size;
    atomic_int at_barrier;
    struct gate barrier;
    pthread_mutex_t lock; /* of the loop whose iterations threads take in turns */
    int loop;             /* the number of the present one; 0: none yet */
    int left_loop;        /* threads that are done with it */
    atomic_long next;
    long end, step; /* step: of one piece */
};

static _Thread_local struct team *team; /* of the calling thread; NULL: outside of regions */
static _Thread_local int place_in_team, loops_begun;
static atomic_long entered;

int64_t threads_entered(void)
{
    return atomic_load(&entered);
}

int omp_get_num_threads(void)
{
    return team ? team->size : 1;
}

int omp_get_thread_num(void)
{
    return place_in_team;
}

int omp_get_max_threads(void)
{
    return sb_threads();
}

int omp_in_parallel(void)
{
    return team && team->size > 1;
}

static void region_run(void *context, int place)
{
    struct team *outer = team;
    const int outer_place = place_in_team, outer_loops = loops_begun;
    team = context;
    place_in_team = place;
    loops_begun = 0;
    team->region(team->data);
    team = outer;
    place_in_team = outer_place;
    loops_begun = outer_loops;
}

/* `wanted` is 0 for the usual number, and 1 where the if clause is false. In a team, a region has
 * one thread. */
void GOMP_parallel(void (*region)(void *), void *data, unsigned wanted, unsigned flags);
void GOMP_parallel(void (*region)(void *), void *data, unsigned wanted, unsigned flags)
{
    (void)flags;
    const int threads = omp_in_parallel() ? 1 : wanted > 0 ? (int)wanted : sb_threads();
    struct team of_region = {.region = region, .data = data, .size = 1};
    if (threads == 1) {
        region_run(&of_region, 0);
        return;
    }
    of_region.barrier = gate_new;
    of_region.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_fetch_add(&entered, 1);
    pool_run(threads, region_run, &of_region, &of_region.size);
}

void GOMP_barrier(void);
void GOMP_barrier(void)
{
    struct team *t = team;
    if (!omp_in_parallel())
        return;
    const unsigned seen = atomic_load(&t->barrier.count);
    if (atomic_fetch_add(&t->at_barrier, 1) < t->size - 1) {
        gate_wait(&t->barrier, seen);
        return;
    }
    atomic_store(&t->at_barrier, 0);
    gate_advance(&t->barrier);
}

/* The first thread that comes to a loop sets it up, when all have left the one before. */
static void loop_begin(struct team *t, long start, long end, long step)
{
    const int loop = ++loops_begun;
    pthread_mutex_lock(&t->lock);
    while (t->loop < loop && t->loop > 0 && t->left_loop < t->size) {
        pthread_mutex_unlock(&t->lock);
        sched_yield();
        pthread_mutex_lock(&t->lock);
    }
    if (t->loop < loop) {
        t->loop = loop;
        t->left_loop = 0;
        t->end = end;
        t->step = step;
        atomic_store(&t->next, start);
    }
    pthread_mutex_unlock(&t->lock);
}

bool GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last);
bool GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last)
{
    struct team *t = team;
    if (!omp_in_parallel())
        return false;
    *first = atomic_fetch_add(&t->next, t->step);
    *last = *first + t->step;
    if (t->step > 0 ? *last > t->end : *last < t->end)
        *last = t->end;
    return t->step > 0 ? *first < t->end : *first > t->end;
}

/* Where there is one thread, it takes all iterations at once. */
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first,
                                          long *last);
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first,
                                          long *last)
{
    if (omp_in_parallel()) {
        loop_begin(team, start, end, step * chunk);
        return GOMP_loop_nonmonotonic_dynamic_next(first, last);
    }
    *first = start;
    *last = end;
    return step > 0 ? start < end : start > end;
}

void GOMP_loop_end_nowait(void);
void GOMP_loop_end_nowait(void)
{
    if (!omp_in_parallel())
        return;
    pthread_mutex_lock(&team->lock);
    team->left_loop++;
    pthread_mutex_unlock(&team->lock);
}

void GOMP_loop_end(void);
void GOMP_loop_end(void)
{
    GOMP_loop_end_nowait();
    GOMP_barrier();
}

#else

int64_t threads_entered(void)
{
    return 0;
}

#endif

/* ---- calls at the same time ---- */

struct calls {
    bool (*work)(void *context, int64_t i);
    void *context;
    int64_t n;
    atomic_int_fast64_t next;
    int threads;      /* that compute */
    int share;        /* of each, for its kernels */
    atomic_flag lock; /* of the rest */
    int64_t failed;   /* the least; n: none */
    char message[512];
};

static void calls_note_failure(struct calls *c, int64_t i)
{
    atomic_store(&c->next, c->n);
    while (atomic_flag_test_and_set(&c->lock))
        ;
    if (i < c->failed)
        snprintf(c->message, sizeof c->message, "%s", sb_error());
    c->failed = i < c->failed ? i : c->failed;
    atomic_flag_clear(&c->lock);
}

static void calls_take(void *calls, int place)
{
    (void)place;
    struct calls *c = calls;
    threads_allow(c->share);
    for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
        if (!c->work(c->context, i))
            calls_note_failure(c, i);
}

bool threads_each(int64_t n, bool in_turn, bool (*work)(void *context, int64_t i), void *context)
{
    const int threads = sb_threads(), most = in_turn ? 1 : threads < n ? threads : (int)n;
    struct calls calls = {.work = work,
                          .context = context,
                          .n = n,
                          .share = most > 1 ? threads / most : threads,
                          .failed = n,
                          .lock = ATOMIC_FLAG_INIT};
#ifndef __wasi__
    pool_run(most, calls_take, &calls, &calls.threads);
#else
    calls_take(&calls, 0);
#endif
    threads_allow(threads);
    return calls.failed == n || sb_fail("%s", calls.message);
}
