/* Positions that lie together, in what the open tape's context says is here of a sequence. */
#ifndef SOFTBACK_OPS_RUNS_H
#define SOFTBACK_OPS_RUNS_H

#include "ops/context.h"

/* They begin in what is here at `here`, and in the whole at `first`. */
struct run {
    int64_t here, first, count;
};

/* The two runs of `here` positions, of which the second may have none, and both. */
static inline void piece_runs(const sb_piece *piece, int64_t here, struct run run[2])
{
    const int64_t turn = piece->turn > 0 && piece->turn < here ? piece->turn : here;
    run[0] = (struct run){0, piece->first, turn};
    run[1] = (struct run){turn, piece->second, here - turn};
}

/* What a partition has of the items, and of a sequence; all where there is no partition. */
const sb_piece *partition_items(const sb_partition *partition);
const sb_piece *partition_piece(const sb_partition *partition, sb_sequence along);

/* The open tape's context; a zero one where none is open, or it has none. */
const sb_context *context_open(void);

/* The runs of `here` positions on the open tape. Returns how many it takes to go over them: 1 where
   the second has none. */
int context_runs(sb_sequence along, int64_t here, struct run run[2]);

#endif
