/*
 * The context of operations: which part of a batch this rank holds, and which ranks hold the rest.
 * It is fixed when a tape begins (sb_tape_begin_with); nested tapes inherit it.
 */
#ifndef SOFTBACK_OPS_CONTEXT_H
#define SOFTBACK_OPS_CONTEXT_H

#include "../autograd/tape.h"
#include "../tensor/communicator.h"

/* The sequences of a batch. A model with a single sequence uses SB_SEQUENCE_SOURCE. */
typedef enum {
    SB_SEQUENCE_SOURCE,
    SB_SEQUENCE_TARGET,
    SB_SEQUENCE_NONE, /* tensors without positions, such as lengths and labels */
} sb_sequence;

/* The part of an axis that this rank holds: one contiguous range of the unsharded axis, or two. */
typedef struct {
    int64_t of;     /* length of the unsharded axis; 0: this rank holds all of it */
    int64_t first;  /* where this rank's elements begin in the unsharded axis */
    int64_t turn;   /* index, on this rank, of the first element of a second range; 0: none */
    int64_t second; /* where the second range begins in the unsharded axis */
} sb_piece;

/*
 * Which part of a batch this rank holds. Dropout and positional encodings use the position of an
 * element within the unsharded tensor, so results do not depend on the partition. Tensors are read
 * as (items, positions, units...), attention weights as (items, heads, positions, positions). The
 * length of an unsharded axis includes its padding. The caller keeps the partition unchanged until
 * the tape has ended.
 */
typedef struct {
    sb_piece items;          /* axis 0: sentences, images */
    sb_piece source, target; /* positions */
} sb_partition;

/*
 * The part of a sequence that rank `rank` of `ranks` holds, and its number of positions in *here.
 * The sequence is split into 2 ranks chunks; rank r holds chunk r and the r-th chunk from the end.
 * So all ranks have equal work under a causal mask, where later queries attend to more keys. Chunk
 * i begins at floor(length i / (2 ranks)). Source: Zhu 2024, "ring-flash-attention" (zig-zag).
 */
SB_API sb_piece sb_piece_zigzag(int64_t length, int ranks, int rank, int64_t *here);

/* How decoding stores the weights that it multiplies by. */
typedef enum {
    SB_WEIGHTS_AS_STORED, /* in the model's dtype */
    SB_WEIGHTS_INT8,      /* 8 bits a number and one scale for each row; so are inputs */
} sb_weight_format;

struct packed_weights;
struct device_position;
struct rounded_parameters;

/* Zero: a single rank, which holds the whole batch. */
struct sb_context {
    const sb_partition *partition;      /* NULL: the whole batch */
    sb_communicator *ring;              /* ranks of sequence parallelism (zig-zag); NULL: none */
    struct packed_weights *packed;      /* packed weights of decoding; NULL: none */
    struct device_position *position;   /* of a decoding step that a graph repeats; NULL: none */
    struct rounded_parameters *rounded; /* bf16 copies of parameters; NULL: one cast for each use */
    bool batch_invariant; /* decoding: a row of a product has the same bits in every batch */
};

#endif
