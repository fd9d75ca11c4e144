/*
 * The tape: it records operations in the order in which they run, walks them backwards for the
 * gradients, and owns every tensor that operations make while it is open.
 *
 *     sb_tape tape;
 *     sb_tape_begin(&tape, SB_RECORD);
 *     sb_tensor *loss = sb_mean(sb_multiply(x, x), 0, false);
 *     bool ok = sb_backward(loss);
 *     sb_tape_end(&tape);
 *
 * Tapes nest and close in order. Each thread has its own. An operation that fails returns NULL and
 * marks the open tape as failed: until it is closed every further operation, and sb_backward,
 * fails too and leaves the first message. So a chain of calls is checked once, at its end.
 */
#ifndef SOFTBACK_AUTOGRAD_TAPE_H
#define SOFTBACK_AUTOGRAD_TAPE_H

#include "../tensor/random.h"
#include "../tensor/tensor.h"

typedef enum {
    SB_RECORD,    /* records for backward, and owns */
    SB_NO_RECORD, /* only owns: evaluation and decoding */
} sb_mode;

/* A tape lives in its user's stack frame; what it records is kept elsewhere. */
typedef struct {
    uint64_t serial;
} sb_tape;

/* Opens a tape. It cannot fail; a mistake (opening one that is open already, or more than 64 in
   each other) marks the tape as failed. The tape inherits the random stream, and the share, of the
   one around. */
SB_API void sb_tape_begin(sb_tape *tape, sb_mode mode);

/*
 * Closes the innermost tape and frees what it owns, except what was retained: that is a constant
 * from here on. True when all went well on the tape. Closing a tape in which others are still open
 * closes these too, and is reported as the mistake that it is; closing one that is not open is
 * reported and does nothing.
 */
SB_API bool sb_tape_end(sb_tape *tape);

/* Closes the tape and hands y, now a constant, to the tape around it. Returns y. When something
   failed on the tape, y is NULL or no tape is around, it returns NULL and fails the tape around
   it, so that a missing result can never pass for one left out. */
SB_API sb_tensor *sb_tape_end_keep(sb_tape *tape, sb_tensor *y);

/* Gives the caller's reference of t to the open tape, which releases it at its end. Returns t;
   on failure t is released, and NULL returned. */
SB_API sb_tensor *sb_tape_own(sb_tensor *t);

/* Dropout draws from this stream while the tape is open; without one (NULL) it is the identity. */
SB_API void sb_tape_random(sb_tape *tape, sb_random *random);

/* What is here of an axis that several processes share: one run of it, or two. */
typedef struct {
    int64_t of;     /* how long the whole axis is; 0: all of it is here */
    int64_t first;  /* where the elements here begin in it */
    int64_t turn;   /* the element here that a second run begins with; 0: there is none */
    int64_t second; /* where that run begins in the whole */
} sb_piece;

/*
 * Which part of a whole batch the tensors on a tape are. Dropout draws by an element's place in
 * the whole, and so the same however a batch is cut; the share changes nothing else. A tensor is
 * taken as (sentences, positions, units...), attention's weights as (sentences, heads, positions,
 * positions), with positions of the source in an encoder and outside of one, of the target in a
 * decoder. Axes that are cut must have the length in the whole, padding included, that they would
 * have uncut.
 */
typedef struct {
    sb_piece sentences, heads, source, target;
} sb_share;

/*
 * What rank `rank` of `ranks` holds of a sequence, and how many positions that is, in *here: of
 * 2 ranks chunks, the one of its number and the one of its number from the end, so that under a
 * causal mask, where later queries see more keys, all ranks have the same to do. Chunk i begins at
 * floor(length i / (2 ranks)). Source: Zhu 2024, "ring-flash-attention" (zig-zag).
 */
SB_API sb_piece sb_piece_zigzag(int64_t length, int ranks, int rank, int64_t *here);

/* Makes what is on the tape such a share; NULL: the whole. Fails when a number is negative. */
SB_API void sb_tape_share(sb_tape *tape, const sb_share *share);

/*
 * Computes the gradient of the loss, a tensor of one element, with respect to every leaf that
 * requires one, and adds it to what the leaf has (sb_grad). Once for each tape.
 *
 * The data and gradients of intermediate results are let go on the way, as soon as no operation
 * needs them any more; the loss keeps its value. When it fails, the leaves that the tape reaches
 * are left without a gradient, so that a second try does not add to a half-finished first.
 */
SB_API bool sb_backward(sb_tensor *loss);
/* The same for any y, from a given gradient dy of y's shape. When y is itself a leaf, dy is added
   to its gradient. */
SB_API bool sb_backward_from(sb_tensor *y, sb_tensor *dy);

/* Makes backward keep the value and the gradient of t, which stay readable until the tape ends
   (or longer, if retained). Returns t. */
SB_API sb_tensor *sb_keep(sb_tensor *t);

/*
 * Where a value that is not finite first came from: the first recorded operation with one in its
 * output, as in "log output (4, 4)"; or an input of it that was not finite to begin with, as in
 * "linear input weight (8, 4)". A text to be freed with sb_free. NULL when all values are finite,
 * and after backward, which lets go of them.
 */
SB_API char *sb_tape_find_nonfinite(void);

/* Computes y from the inputs, with operations, on the open tape. */
typedef sb_tensor *(*sb_function)(void *context, sb_tensor *const x[]);

#endif
