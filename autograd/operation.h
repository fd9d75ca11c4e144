/*
 * Operations on the tape: the interface for the library's operations and for your own.
 *
 * An operation checks its arguments, makes a node, and fills the node's output. Its backward
 * receives the node, reads the output's gradient dy, and ADDS its part to the gradient dx of each
 * input that requires one:
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
 *     static const sb_operation softplus = {"softplus", "x", softplus_backward, false, false};
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
    bool writes_fresh; /* backward writes dx where sb_node_fresh says so, instead of adding */
    bool dual; /* forward and backward also compute tensors of SB_DUAL (dual.h, derivative.h) */
} sb_operation;

/*
 * A new node on the open tape, which owns it. The node retains its inputs and copies `options`.
 * Fails when no tape is open or the open tape has failed, when an input is NULL or its data is
 * freed, when real inputs differ in dtype, and when inputs differ in device.
 */
SB_API sb_node *sb_node_new(const sb_operation *operation, int inputs, sb_tensor *const in[],
                            int outputs, const void *options, size_t options_bytes);

/* Makes the node's next output, with undefined contents, on the device of the first input. The tape
   owns it. It requires a gradient if the tape records and an input requires one. */
SB_API sb_tensor *sb_node_output(sb_node *node, sb_dtype dtype, int rank, const int64_t *dim);

/* Saves a tensor (not an input or output) for backward; at most four. Takes the caller's reference,
   on failure too. Returns t. */
SB_API sb_tensor *sb_node_save(sb_node *node, sb_tensor *t);

/* For backward. */
SB_API sb_tensor *sb_node_input(const sb_node *node, int i);
SB_API sb_tensor *sb_node_result(const sb_node *node, int i); /* output i */
SB_API sb_tensor *sb_node_saved(const sb_node *node, int i);
SB_API const void *sb_node_options(const sb_node *node);
SB_API sb_tensor *sb_node_dy(const sb_node *node, int i); /* gradient of output i, or NULL: zero */
SB_API sb_tensor *sb_node_dx(const sb_node *node, int i); /* to add to; NULL: not needed */
/* Whether dx of input i is new and must be overwritten; only with writes_fresh. */
SB_API bool sb_node_fresh(const sb_node *node, int i);

#endif
