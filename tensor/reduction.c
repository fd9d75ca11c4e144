#include "tensor/reduction.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

enum phase { IDLE, SCATTERED, GATHERED }; /* which messages are pending */

struct reduction {
    sb_communicator *c;
    const sb_device *device;
    sb_dtype dtype;
    int64_t count;
    char *staged;              /* a copy in host memory of device data; NULL on the CPU */
    char *received;            /* piece r of the other ranks, in the order of ranks */
    struct transfer *transfer; /* 2 (P - 1) */
    int over;                  /* how many of them have finished */
    enum phase phase;
    char *x; /* x of reduction_start, and the memory in which the sum is made */
    char *host;
    int tag;
};

/* Where piece k begins. */
static int64_t begin(const struct reduction *r, int k)
{
    return r->count * k / r->c->size;
}

static size_t bytes_of(const struct reduction *r, int64_t count)
{
    return (size_t)count * sb_dtype_bytes(r->dtype);
}

static char *piece(const struct reduction *r, int k)
{
    return r->host + bytes_of(r, begin(r, k));
}

static size_t piece_bytes(const struct reduction *r, int k)
{
    return bytes_of(r, begin(r, k + 1) - begin(r, k));
}

static size_t received_bytes(const struct reduction *r)
{
    return piece_bytes(r, r->c->rank) * (size_t)(r->c->size - 1);
}

static bool allocate(struct reduction *r)
{
    r->transfer = memory_new((size_t)(2 * (r->c->size - 1)) * sizeof *r->transfer);
    r->received = pool_take(memory_pool(), received_bytes(r));
    if (r->device != sb_device_cpu())
        r->staged = pool_take(r->device->staging, bytes_of(r, r->count));
    return r->transfer && r->received && (r->staged || r->device == sb_device_cpu());
}

struct reduction *reduction_new(sb_communicator *c, const sb_device *device, sb_dtype dtype,
                                int64_t count)
{
    if (dtype != SB_F32 && dtype != SB_F64)
        return sb_fail("sum over ranks: numbers are f32 or f64, not %s", sb_dtype_name(dtype));
    struct reduction *r = memory_new(sizeof *r);
    if (!r)
        return sb_fail("sum over ranks: out of memory");
    *r = (struct reduction){.device = device, .dtype = dtype, .count = count};
    r->c = sb_communicator_size(c) > 1 ? c : NULL; /* NULL: a single rank */
    const uint64_t failures = failure_count();
    if (!r->c || allocate(r))
        return r;
    reduction_free(r);
    if (failure_count() == failures)
        sb_fail("sum over ranks: out of memory for %lld numbers", (long long)count);
    return NULL;
}

void reduction_free(struct reduction *r)
{
    if (!r || r->phase != IDLE) /* pending messages still use its memory */
        return;
    if (r->c)
        pool_give(memory_pool(), r->received, received_bytes(r));
    if (r->staged) { /* the device may still be reading the last sum */
        r->device->synchronize();
        pool_give(r->device->staging, r->staged, bytes_of(r, r->count));
    }
    memory_free(r->transfer);
    memory_free(r);
}

/* ---- adding ---- */

#define ADD(name, real)                                                                            \
    static void name(int64_t n, const real *restrict x, real *restrict sum)                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum[i] += x[i];                                                                        \
    }

ADD(add_f32, float)
ADD(add_f64, double)

static void add(const struct reduction *r, int64_t n, const void *x, void *sum)
{
    if (r->dtype == SB_F32)
        add_f32(n, x, sum);
    else
        add_f64(n, x, sum);
}

/* Adds the pieces of all ranks in order, a block at a time, in the memory of rank 0's piece. */
static void add_in_rank_order(const struct reduction *r)
{
    enum { BLOCK = 2048 };
    const int rank = r->c->rank, size = r->c->size;
    const int64_t n = begin(r, rank + 1) - begin(r, rank);
    const size_t stride = piece_bytes(r, rank);
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t count = n - start < BLOCK ? n - start : BLOCK;
        const size_t at = bytes_of(r, start);
        char *own = piece(r, rank) + at, *sum = rank == 0 ? own : r->received + at;
        for (int k = 1; k < size; k++)
            add(r, count,
                k == rank ? own : r->received + (size_t)(k < rank ? k : k - 1) * stride + at, sum);
        if (sum != own)
            memcpy(own, sum, bytes_of(r, count));
    }
}

/* ---- messages ---- */

/* Posts one receive and one send with each other rank. */
static bool post(struct reduction *r, bool gather)
{
    const struct communicator_plugin *p = r->c->plugin;
    const int rank = r->c->rank, size = r->c->size;
    const int tag = r->tag + gather;
    r->over = 0;
    for (int step = 1; step < size; step++) { /* each rank starts with a different partner */
        const int to = (rank + step) % size, from = (rank + size - step) % size;
        const int place = from < rank ? from : from - 1;
        char *room = gather ? piece(r, from) : r->received + (size_t)place * piece_bytes(r, rank);
        const int in = gather ? from : rank, out = gather ? rank : to;
        if (!p->receive(r->c->group, room, piece_bytes(r, in), from, tag,
                        &r->transfer[2 * step - 2]) ||
            !communicator_send(r->c, piece(r, out), piece_bytes(r, out), to, tag,
                               &r->transfer[2 * step - 1]))
            return false;
    }
    r->phase = gather ? GATHERED : SCATTERED;
    return true;
}

bool reduction_start(struct reduction *r, void *x)
{
    if (!r->c)
        return true;
    r->x = x;
    r->host = r->staged ? r->staged : x;
    r->tag = 2 * (int)(r->c->reductions++ % REDUCTIONS_AT_A_TIME);
    if (r->staged && !r->device->download(r->staged, x, bytes_of(r, r->count)))
        return false;
    return post(r, false);
}

/* Starts the next phase when all messages of a phase have arrived. */
static bool advance(struct reduction *r)
{
    if (r->phase == SCATTERED) {
        add_in_rank_order(r);
        return post(r, true);
    }
    r->phase = IDLE;
    return !r->staged || r->device->upload(r->x, r->staged, bytes_of(r, r->count));
}

bool reduction_progress(struct reduction *r, bool *done)
{
    *done = true;
    while (r->phase != IDLE && *done) {
        if (r->over == 2 * (r->c->size - 1)) {
            if (!advance(r))
                return false;
        } else if (!r->c->plugin->complete(&r->transfer[r->over], done)) {
            return false;
        } else {
            r->over += *done;
        }
    }
    return true;
}

bool reduction_finish(struct reduction *r)
{
    while (r->phase != IDLE) {
        for (; r->over < 2 * (r->c->size - 1); r->over++)
            if (!r->c->plugin->complete(&r->transfer[r->over], NULL))
                return false;
        if (!advance(r))
            return false;
    }
    return true;
}
