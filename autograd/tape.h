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

/* What operations know of where they run (ops/context.h); the tape only carries it. */
typedef struct sb_context sb_context;

/* Opens a tape. It cannot fail; a mistake (opening one that is open already, or more than 64 in
   each other) marks the tape as failed. The tape inherits the random stream, and the context, of
   the one around. */
SB_API void sb_tape_begin(sb_tape *tape, sb_mode mode);

/* The same with a context of its own, which stays the caller's and as it is until the tape ends. */
SB_API void sb_tape_begin_with(sb_tape *tape, sb_mode mode, const sb_context *context);

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
