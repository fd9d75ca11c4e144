/*
 * How an operation begins and ends. Where the device has no bf16 kernels for it, an operation on
 * bf16 computes in f32: call_begin casts its inputs, and call_end casts its output back. The casts
 * are nodes of their own, so gradients are cast too. The operation itself does not mention bf16:
 *
 *     sb_node *node = call_begin(&softmax, &softmax_rows, 1, &x, 1, NULL, 0);
 *     ... computes y, the node's output, from node->in[0] ...
 *     return call_end(node, ok);
 */
#ifndef SOFTBACK_OPS_CALL_H
#define SOFTBACK_OPS_CALL_H

#include "autograd/node.h"
#include "ops/kernel.h"

/* sb_node_new for an operation with these kernels (NULL: it has no bf16 kernels on any device). The
   dtype of in[0] decides. The operation must read the node's inputs, which may be casts of `in`. */
sb_node *call_begin(const sb_operation *operation, struct kernel_rows *rows, int inputs,
                    sb_tensor *const in[], int outputs, const void *options, size_t options_bytes);

/* Output i of the node in the dtype of the caller's inputs. A loss stays f32: return it without. */
sb_tensor *call_output(const sb_node *node, int i);

/* Output 0 if `ok`, else NULL. */
sb_tensor *call_end(const sb_node *node, bool ok);

/* The casts alone, and on a dual tape the twins, for an operation that calls others before it makes
   its node, or that has operands which are not inputs of the node. call_widen casts in place;
   call_round needs to know whether it did. */
bool call_widen(const char *who, struct kernel_rows *rows, int n, sb_tensor *in[]);
sb_tensor *call_round(bool widened, sb_tensor *y);

/* Called when forward has read the results of call_widen: on a tape that records they are stored in
   bf16 alone from now on, and backward makes them again. The rounding is that of call_round. */
void call_store(int n, sb_tensor *const in[]);

/* A constant of zeros on the open tape, of the dtype and on the device of `like`. */
sb_tensor *call_zeros(const char *who, const sb_tensor *like, int rank, const int64_t *dim);

/* What parts are added to before they are rounded once: t itself, as a new reference, or a new
   tensor like it in the dtype of sums. */
sb_tensor *call_sums(const char *who, sb_tensor *t);

/* dx of input 0 is this gradient, in x's order of elements: dx += it, or dx = it if dx is fresh. */
bool call_add_gradient(const sb_node *node, const sb_tensor *gradient);

/* One tensor in f32. Fails, in the name of `who`, when x is real but not bf16, since the dtypes of
   operands must agree. Integers, booleans and NULL are returned unchanged. */
sb_tensor *call_widened(const char *who, sb_tensor *x);

#endif
