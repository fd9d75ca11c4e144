/* The second order of the gradient check: products with the Hessian H of the weighted sum of y. */
#ifndef SOFTBACK_AUTOGRAD_SECOND_ORDER_H
#define SOFTBACK_AUTOGRAD_SECOND_ORDER_H

#include "autograd/mistake.h"

/* Stores symmetry and curvature in the result. False when f fails. */
bool second_order_compare(struct evaluation *e, const struct gradient *gradients, int n,
                          sb_gradcheck_result *result);

#endif
