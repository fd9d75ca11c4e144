/*
 * The tape records operations in the order in which they run, visits them in reverse order to
 * compute gradients, and owns every tensor that operations make while it is open.
 *
 *     sb_tape tape;
 *     sb_tape_begin(&tape, SB_RECORD);
 *     sb_tensor *loss = sb_mean(sb_multiply(x, x), 0, false);
 *     bool ok = sb_backward(loss);
 *     sb_tape_end(&tape);
 *
 * Tapes nest and close in reverse order. Each thread has its own. An operation that fails returns
 * NULL and marks the open tape as failed: until the tape ends, all further operations and
 * sb_backward fail too and keep the first message. So a chain of calls is checked once, at its end.
 */
#ifndef SOFTBACK_AUTOGRAD_TAPE_H
#define SOFTBACK_AUTOGRAD_TAPE_H

#include "../tensor/random.h"
#include "../tensor/tensor.h"

typedef enum {
    SB_RECORD,    /* records operations for backward */
    SB_NO_RECORD, /* for evaluation and decoding, like torch.no_grad */
} sb_mode;

/* A handle, usually a local variable; the recorded nodes are stored elsewhere. */
typedef struct {
    uint64_t serial;
} sb_tape;

/* The context of operations (ops/context.h), which the tape only stores. */
typedef struct sb_context sb_context;

/* Opens a tape, which inherits the random stream and the context of the outer tape. This cannot
   fail; a mistake (the tape is open already, or more than 64 tapes are nested) marks it as
   failed. */
SB_API void sb_tape_begin(sb_tape *tape, sb_mode mode);

/* The same with another context, which the caller keeps unchanged until the tape ends. */
SB_API void sb_tape_begin_with(sb_tape *tape, sb_mode mode, const sb_context *context);

/*
 * Closes the innermost tape and frees its tensors, except those that were retained, which become
 * constants. Returns true if nothing failed on the tape. If inner tapes are still open, it closes
 * them too and fails. If the tape is not open, it fails and does nothing.
 */
SB_API bool sb_tape_end(sb_tape *tape);

/* Closes the tape and gives y, now a constant, to the outer tape. Returns y. When the tape has
   failed, y is NULL or there is no outer tape, it returns NULL and marks the outer tape as failed,
   so that a missing result is never mistaken for an omitted argument. */
SB_API sb_tensor *sb_tape_end_keep(sb_tape *tape, sb_tensor *y);

/* Gives the caller's reference of t to the open tape, which releases it at its end. Returns t; on
   failure, releases t and returns NULL. */
SB_API sb_tensor *sb_tape_own(sb_tensor *t);

/* Dropout uses this stream while the tape is open; with NULL it is the identity. Where no stream
   was given it is the identity on a tape that does not record, and fails on one that does. */
SB_API void sb_tape_random(sb_tape *tape, sb_random *random);

/*
 * Computes the gradient of the loss, a tensor of one element, with respect to every leaf that
 * requires a gradient, and adds it to the leaf's gradient (sb_tensor_grad). Call it once for each
 * tape.
 *
 * Backward frees the data and gradients of intermediate results as soon as no operation needs them;
 * the loss keeps its value. On failure it clears the gradients of all leaves that the tape reaches,
 * so that another attempt does not add to incomplete ones.
 *
 * Fails also when an input of an operation was written since the operation read it, by
 * sb_tensor_write, sb_tensor_set, sb_safetensors_read, sb_average_swap or an optimiser step: the
 * gradient would be that of neither value. All parameters of a set count as one. Writes through a
 * pointer from sb_tensor_data cannot be noticed.
 *
 * Fails also while backward of another thread computes the gradient of one of the leaves.
 */
SB_API bool sb_backward(sb_tensor *loss);
/* The same for any y, from a gradient dy of y's shape. If y is a leaf, dy is added to its
   gradient. */
SB_API bool sb_backward_from(sb_tensor *y, sb_tensor *dy);

/* Makes backward keep the value and the gradient of t (compare retain_grad in PyTorch). They stay
   readable until the tape ends, or longer if t is retained. Returns t. */
SB_API sb_tensor *sb_keep(sb_tensor *t);

/*
 * Finds the origin of non-finite values: the first recorded operation with one in its output, such
 * as "log output (4, 4)", or the input of this operation that was not finite, such as "linear input
 * weight (8, 4)". Free the string with sb_free. NULL when all values are finite, and after
 * backward, which frees them.
 */
SB_API char *sb_tape_find_nonfinite(void);

/* Computes y from the inputs, with operations, on the open tape. */
typedef sb_tensor *(*sb_function)(void *context, sb_tensor *const x[]);

#endif
