/*
 * The lanes named in a mask meet at the same call with the same mask. On a device, lanes with
 * different masks get undefined values; here this is an error. Lanes that have ended are not waited
 * for.
 *
 * Values are exchanged inside the emulator, which the thread sanitizer does not instrument, so a
 * shuffle orders no memory accesses, as on a device: only __syncwarp does.
 */
#include "emulator.h"
#include "sanitizers.h"

namespace emulator
{

static struct Warp {
    unsigned alive, waiting; /* lanes */
} warps[max_warps];

void warp_begin_block()
{
    for (unsigned warp = 0; warp * 32 < thread_count; warp++) {
        unsigned lanes = thread_count - warp * 32;
        warps[warp] = {lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1, 0};
    }
}

static void check_agreement(const Thread &one, const Thread &other)
{
    if (one.what == other.what && one.mask == other.mask && one.site.line == other.site.line &&
        one.site.file == other.site.file)
        return;
    kernel_error("the warp diverges: lane %u waits in %s at %s:%d with mask %08x, lane %u in %s at "
                 "%s:%d with mask %08x",
                 one.number % 32, one.what, one.site.file, one.site.line, one.mask,
                 other.number % 32, other.what, other.site.file, other.site.line, other.mask);
}

/* __syncwarp: what each lane did before happens before what any does after. */
static void join_orders(Thread *const lanes[32])
{
    if (!under_tsan())
        return;
    void *order = order_new();
    for (int i = 0; i < 32; i++)
        if (lanes[i])
            order_acquire(&lanes[i]->order);
    order_release(order);
    for (int i = 0; i < 32; i++)
        if (lanes[i])
            lanes[i]->order = order;
}

/* If all live lanes of the mask wait, they exchange values and continue; `self`, one of them or
   null, is already running. */
static void try_to_meet(unsigned number, unsigned mask, Exchange exchange, const Thread *self)
{
    Warp &warp = warps[number];
    unsigned needed = mask & warp.alive;
    if (needed == 0 || (warp.waiting & needed) != needed)
        return;
    Thread *lanes[32] = {}, *first = nullptr;
    for (unsigned left = needed; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        lanes[i] = &threads[number * 32 + static_cast<unsigned>(i)];
        if (!first)
            first = lanes[i];
        check_agreement(*first, *lanes[i]);
    }
    exchange(lanes);
    warp.waiting &= ~needed;
    for (Thread *thread : lanes)
        if (thread && thread != self)
            schedule(thread);
}

static Exchange exchange_of[max_threads]; /* what each waiting thread would call */

void warp_meet(const char *what, unsigned mask, Site site, Exchange exchange)
{
    Thread *self = running_thread;
    unsigned bit = 1u << self->number % 32, number = self->number / 32;
    if (!(mask & bit))
        kernel_error("%s at %s:%d: the calling lane %u is not in its mask %08x", what, site.file,
                     site.line, self->number % 32, mask);
    self->what = what;
    self->site = site;
    self->mask = mask;
    self->state = Thread::in_warp;
    exchange_of[self->number] = exchange;
    warps[number].waiting |= bit;
    try_to_meet(number, mask, exchange, self);
    if (warps[number].waiting & bit)
        let_others_run();
}

void warp_thread_ended(Thread *thread)
{
    unsigned number = thread->number / 32;
    Warp &warp = warps[number];
    warp.alive &= ~(1u << thread->number % 32);
    for (unsigned left = warp.waiting; left; left &= left - 1) {
        const Thread &other = threads[number * 32 + static_cast<unsigned>(__builtin_ctz(left))];
        if (other.state == Thread::in_warp)
            try_to_meet(number, other.mask, exchange_of[other.number], nullptr);
    }
}

static void shuffle_values(Thread *const lanes[32])
{
    for (int i = 0; i < 32; i++)
        if (lanes[i]) {
            const Thread *source = lanes[lanes[i]->source];
            lanes[i]->result = source ? source->value : ~UINT64_C(0);
        }
}

uint64_t shuffle(const char *what, unsigned mask, uint64_t value, int source, Site site)
{
    Thread *self = running_thread;
    self->value = value;
    self->source = source & 31;
    warp_meet(what, mask, site, shuffle_values);
    return self->result;
}

static void collect_votes(Thread *const lanes[32])
{
    uint64_t votes = 0;
    for (int i = 0; i < 32; i++)
        if (lanes[i])
            votes |= lanes[i]->value << i;
    for (int i = 0; i < 32; i++)
        if (lanes[i])
            lanes[i]->result = votes;
}

unsigned ballot(const char *what, unsigned mask, bool predicate, Site site)
{
    Thread *self = running_thread;
    self->value = predicate;
    warp_meet(what, mask, site, collect_votes);
    return static_cast<unsigned>(self->result);
}

void warp_barrier(unsigned mask, Site site)
{
    Thread *self = running_thread;
    order_release(&self->order);
    warp_meet("__syncwarp", mask, site, join_orders);
    if (under_tsan())
        order_acquire(self->order);
}

} // namespace emulator
