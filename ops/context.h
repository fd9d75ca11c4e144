/*
 * What operations know of where they run: which part of a whole batch the tensors are, and which
 * ranks hold the rest. It is fixed when a tape begins (sb_tape_begin_with), and inherited by the
 * tapes inside.
 */
#ifndef SOFTBACK_OPS_CONTEXT_H
#define SOFTBACK_OPS_CONTEXT_H

#include "../autograd/tape.h"
#include "../tensor/communicator.h"

/* The sequences of a batch. A model that has one only calls it the source. */
typedef enum {
    SB_SEQUENCE_SOURCE,
    SB_SEQUENCE_TARGET,
    SB_SEQUENCE_NONE, /* lengths, labels: what has no positions */
} sb_sequence;

/* What is here of an axis that several ranks share: one run of it, or two. */
typedef struct {
    int64_t of;     /* how long the whole axis is; 0: all of it is here */
    int64_t first;  /* where the elements here begin in it */
    int64_t turn;   /* the element here that a second run begins with; 0: there is none */
    int64_t second; /* where that run begins in the whole */
} sb_piece;

/*
 * Which part of a whole batch is here. Dropout draws by an element's place in the whole, and so the
 * same however a batch is cut; positions are those in the whole. A tensor is taken as (items,
 * positions, units...), attention's weights as (items, heads, positions, positions). Axes that are
 * cut must have the length in the whole, padding included, that they would have uncut. The caller
 * keeps it, and does not change it, until the tape has ended.
 */
typedef struct {
    sb_piece items;          /* axis 0: sentences, images */
    sb_piece source, target; /* positions */
} sb_partition;

/*
 * What rank `rank` of `ranks` holds of a sequence, and how many positions that is, in *here: of
 * 2 ranks chunks, the one of its number and the one of its number from the end, so that under a
 * causal mask, where later queries see more keys, all ranks have the same to do. Chunk i begins at
 * floor(length i / (2 ranks)). Source: Zhu 2024, "ring-flash-attention" (zig-zag).
 */
SB_API sb_piece sb_piece_zigzag(int64_t length, int ranks, int rank, int64_t *here);

struct packed_weights;

/* Zero: all of a batch is here, and nobody else. */
struct sb_context {
    const sb_partition *partition; /* NULL: the whole */
    sb_communicator *ring;         /* the ranks over which sequences are cut, zig-zag; NULL: not */
    struct packed_weights *packed; /* what decoding keeps of its weights; NULL: nothing */
};

#endif
