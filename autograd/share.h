/* The inside of shares: which sequence is worked on, and the runs of it that are here. */
#ifndef SOFTBACK_AUTOGRAD_SHARE_H
#define SOFTBACK_AUTOGRAD_SHARE_H

#include "autograd/tape.h"

/* The sequences of a batch. */
enum sequence { SOURCE, TARGET };

static inline const sb_piece *share_sequence(const sb_share *share, enum sequence sequence)
{
    return sequence == TARGET ? &share->target : &share->source;
}

/* Positions that lie together: they begin in what is here at `here`, and in the whole at `first`.
 */
struct run {
    int64_t here, first, count;
};

/* The two runs of `here` positions, of which the second may have none, and both. */
static inline void share_runs(const sb_piece *piece, int64_t here, struct run run[2])
{
    const int64_t turn = piece->turn > 0 && piece->turn < here ? piece->turn : here;
    run[0] = (struct run){0, piece->first, turn};
    run[1] = (struct run){turn, piece->second, here - turn};
}

/* The runs of positions that a tensor of `here` has on the open tape. Returns how many runs it
   takes to go over them: 1 where the second has none. */
int tape_runs(int64_t here, struct run run[2]);

#endif
