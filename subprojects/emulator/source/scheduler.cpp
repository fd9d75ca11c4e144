/*
 * Which thread runs next. A device guarantees no order, so a kernel must be correct in any order.
 * Threads here run until they wait, which makes few orders likely, so unusual ones are chosen on
 * purpose:
 *
 *   - Half of the blocks are fair: each time, any ready warp and any of its ready lanes.
 *   - The other half are unfair: one warp, and in it one lane, runs as far as it can before the
 * next one runs. This finds a missing barrier between the last read of shared memory and the
 * next write to it, which needs one warp to run far ahead.
 *
 * The ready threads are bits: 32 lanes in a word for each warp, and 32 warps in a word.
 */
#include "emulator.h"
#include <utility>

namespace emulator
{

static unsigned ready_lanes[max_warps]; /* of each warp */
static unsigned ready_places; /* bit p: the warp at place p of the order has ready lanes */
static unsigned char warp_at[max_warps], place_of_warp[max_warps];
static bool fair, lanes_backward;

void schedule_block()
{
    ready_places = 0;
    for (int warp = 0; warp < max_warps; warp++) {
        ready_lanes[warp] = 0;
        warp_at[warp] = static_cast<unsigned char>(warp);
    }
    fair = false;
    lanes_backward = settings().order == Order::reverse;
    if (lanes_backward)
        for (int place = 0; place < max_warps; place++)
            warp_at[place] = static_cast<unsigned char>(max_warps - 1 - place);
    if (settings().order == Order::random) {
        for (unsigned place = max_warps - 1; place > 0; place--)
            std::swap(warp_at[place], warp_at[random_bits() % (place + 1)]);
        unsigned coins = random_bits();
        fair = coins & 1;
        lanes_backward = coins & 2;
    }
    for (int place = 0; place < max_warps; place++)
        place_of_warp[warp_at[place]] = static_cast<unsigned char>(place);
}

void schedule(Thread *thread)
{
    unsigned warp = thread->number / 32;
    thread->state = Thread::ready;
    ready_lanes[warp] |= 1u << thread->number % 32;
    ready_places |= 1u << place_of_warp[warp];
}

void schedule_all()
{
    for (unsigned number = 0; number < thread_count; number++)
        schedule(&threads[number]);
}

static unsigned lowest(unsigned bits)
{
    return static_cast<unsigned>(__builtin_ctz(bits));
}

static unsigned highest(unsigned bits)
{
    return 31 - static_cast<unsigned>(__builtin_clz(bits));
}

/* The first bit that is set at or after `start`, going round. */
static unsigned first_from(unsigned bits, unsigned start)
{
    unsigned rotated = bits >> start | bits << (-start & 31);
    return (lowest(rotated) + start) & 31;
}

Thread *schedule_next()
{
    if (ready_places == 0)
        return nullptr;
    unsigned place, lane, warp;
    if (fair) {
        unsigned draw = random_bits();
        place = first_from(ready_places, draw & 31);
        warp = warp_at[place];
        lane = first_from(ready_lanes[warp], draw >> 5 & 31);
    } else {
        place = lowest(ready_places);
        warp = warp_at[place];
        lane = lanes_backward ? highest(ready_lanes[warp]) : lowest(ready_lanes[warp]);
    }
    ready_lanes[warp] &= ~(1u << lane);
    if (ready_lanes[warp] == 0)
        ready_places &= ~(1u << place);
    return &threads[warp * 32 + lane];
}

} // namespace emulator
