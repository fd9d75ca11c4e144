/*
 * Exact derivatives of a function: Jacobian-vector products (forward mode) and Hessian-vector
 * products, by dual numbers (tensor/dual.h). Both run the function on a dual tape: every f64 input
 * of an operation is replaced by a dual number, a value with a tangent.
 *
 *     sb_tensor *hv[1];
 *     sb_hvp(loss, NULL, &x, &v, 1, hv)      hv[0] = H v, of x's shape
 *
 * Nothing is subtracted, so the only error is the rounding of float64, as in backward itself. A
 * product costs about as much as the plain kernels (SOFTBACK_KERNELS=plain) need for the function,
 * four times over, and twice the memory of float64. The values of a run are those of the plain
 * kernels in float64.
 *
 * What an exact derivative is not: at a kink (relu at 0) or a tie (the maximum of equal numbers) it
 * is one of the one-sided derivatives, and the tangent of a value that is not finite may be NaN.
 * Tensors of another dtype than f64 are constants, also cast to f64; and sb_detach, as well as
 * embeddings and output heads for the row of padding, stops tangents as it stops gradients.
 *
 * The results are constants: neither backward nor another exact derivative follows them, and so an
 * exact derivative inside f fails.
 *
 * Both fail when f fails, casts f64 to another real dtype, computes in f64 on another device than
 * the CPU, uses a cache of keys and values, or several ranks; for a user's operation of f64 without
 * `dual` in its sb_operation; and in portable builds, which have no dual kernels.
 */
#ifndef SOFTBACK_AUTOGRAD_DERIVATIVE_H
#define SOFTBACK_AUTOGRAD_DERIVATIVE_H

#include "tape.h"

/*
 * y = f(x) and dy = J v, where dy_k = sum over i of (dy_k / dx_i) v_i. v[i] is f64 of the shape of
 * x[i], or NULL for zeros; x[i] of another dtype is a constant, and its v[i] NULL. *y and *dy are
 * f64 tensors that the caller releases; both are NULL on failure. Either pointer may be NULL. f
 * draws from the stream of the open tape, if any. (Wengert 1964; Squire and Trapp 1998)
 */
SB_API bool sb_jvp(sb_function f, void *context, sb_tensor *const x[], sb_tensor *const v[], int n,
                   sb_tensor **y, sb_tensor **dy);

/*
 * hv[i] = sum over j of (d^2 f / dx_i dx_j) v_j for an f of one element: the tangent of the
 * gradient, by one forward and one backward pass (Pearlmutter 1994). hv[i] is a f64 tensor of the
 * shape of x[i] that the caller releases; NULL where x[i] is not f64, and on failure. v is as for
 * sb_jvp. Gradients of x and of other leaves stay as they are.
 */
SB_API bool sb_hvp(sb_function f, void *context, sb_tensor *const x[], sb_tensor *const v[], int n,
                   sb_tensor *hv[]);

#endif
