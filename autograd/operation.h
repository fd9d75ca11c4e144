/*
 * How an operation takes its place on the tape: for the library's own and for yours.
 *
 * An operation checks its arguments, makes a node, asks it for its output and fills that. Its
 * backward receives the node, reads the output's gradient dy, and ADDS its part to the gradient dx
 * of each input that wants one:
 *
 *     static bool softplus_backward(sb_node *node)
 *     {
 *         const double *x = sb_tensor_data(sb_node_input(node, 0));
 *         const double *dy = sb_tensor_data(sb_node_dy(node, 0));
 *         sb_tensor *dx = sb_node_dx(node, 0);
 *         for (int64_t i = 0; dx && i < sb_tensor_size(dx); i++)
 *             ((double *)sb_tensor_data(dx))[i] += dy[i] / (1 + exp(-x[i]));
 *         return true;
 *     }
 *     static const sb_operation softplus = {"softplus", "x", softplus_backward, false};
 *
 * Check it with sb_gradcheck.
 */
#ifndef SOFTBACK_AUTOGRAD_OPERATION_H
#define SOFTBACK_AUTOGRAD_OPERATION_H

#include "tape.h"

typedef struct sb_node sb_node;

typedef struct {
    const char *name;
    const char *inputs; /* their names for messages: "x weight", or "x[]" for an array */
    bool (*backward)(sb_node *node); /* false on failure; NULL: not differentiable */
    bool writes_fresh; /* backward asks sb_node_fresh and then writes instead of adds */
} sb_operation;

/*
 * A node of the open tape, with its inputs retained and `options` copied. Fails when no tape is
 * open or the open one has failed, when an input is NULL or was let go, and when real inputs differ
 * in dtype or inputs differ in device. The tape owns the node; there is nothing to free.
 */
SB_API sb_node *sb_node_new(const sb_operation *operation, int inputs, sb_tensor *const in[],
                            int outputs, const void *options, size_t options_bytes);

/* The node's next output, contents undefined, on the device of the first input. Owned by the tape;
   it requires a gradient when the tape records and an input does. */
SB_API sb_tensor *sb_node_output(sb_node *node, sb_dtype dtype, int rank, const int64_t *dim);

/* Keeps a tensor (not an input or output) for backward; at most four. The caller's reference is
   taken, on failure too. Returns t. */
SB_API sb_tensor *sb_node_save(sb_node *node, sb_tensor *t);

/* For backward. */
SB_API sb_tensor *sb_node_input(const sb_node *node, int i);
SB_API sb_tensor *sb_node_result(const sb_node *node, int i); /* output i */
SB_API sb_tensor *sb_node_saved(const sb_node *node, int i);
SB_API const void *sb_node_options(const sb_node *node);
SB_API sb_tensor *sb_node_dy(const sb_node *node, int i); /* gradient of output i, or NULL: zero */
SB_API sb_tensor *sb_node_dx(const sb_node *node, int i); /* to add to, or NULL: not wanted */
/* Whether dx of input i holds nothing yet and is to be overwritten; only with writes_fresh. */
SB_API bool sb_node_fresh(const sb_node *node, int i);

#endif
