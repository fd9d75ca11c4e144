/* Contiguous ranges of the positions that this rank holds of a sequence. */
#ifndef SOFTBACK_OPS_RUNS_H
#define SOFTBACK_OPS_RUNS_H

#include "ops/context.h"

/* A range begins at `here` on this rank and at `first` in the unsharded sequence. */
struct run {
    int64_t here, first, count;
};

/* Splits `here` positions into two runs, of which the second may be empty. */
static inline void piece_runs(const sb_piece *piece, int64_t here, struct run run[2])
{
    const int64_t turn = piece->turn > 0 && piece->turn < here ? piece->turn : here;
    run[0] = (struct run){0, piece->first, turn};
    run[1] = (struct run){turn, piece->second, here - turn};
}

/* The partition's piece of the items, and of a sequence; all when the partition is NULL. */
const sb_piece *partition_items(const sb_partition *partition);
const sb_piece *partition_piece(const sb_partition *partition, sb_sequence along);

/* The open tape's context; a zero context when no tape is open or the tape has none. */
const sb_context *context_open(void);

/* Whether a row of a product must have the same bits for any number of rows: on tapes that do not
   record, on a device only those of decoding, since other products of many rows are faster. */
bool context_by_row(const sb_device *device);

/* Splits `here` positions by the open tape's partition. Returns the number of runs to visit: 1 when
   the second is empty. */
int context_runs(sb_sequence along, int64_t here, struct run run[2]);

#endif
