/* A copy of a model in a chosen real dtype, without bf16 and dropout in its layers, whose weights
   may be changed, and the batch of its loss. The copy in float64 is what derivatives are checked
   in. */
#ifndef SOFTBACK_MODELS_MODEL_TWIN_H
#define SOFTBACK_MODELS_MODEL_TWIN_H

#include "autograd/gradcheck.h"
#include "models/model.h"

struct model_twin {
    sb_parameters *weights;
    sb_model model;
    const sb_batch *batch; /* the caller's */
};

/* To be closed also after a failure. The twin uses the vocabularies of the model. */
bool model_twin_open(struct model_twin *twin, const sb_model *model, const sb_batch *batch,
                     sb_dtype dtype);
void model_twin_close(struct model_twin *twin);

/* The largest error of exact derivatives of a model's parameters, in float64; sb_gradcheck has
   1e-12 for operations. Where a model is confident, its gradients begin with p - 1, which
   cancels: a model with a loss of 1.5e-5 had 2e-12. And the largest difference of products with the
   Hessian, as in sb_gradcheck. */
#define MODEL_TOLERANCE 1e-10
#define MODEL_SYMMETRY 1e-11

/* The loss of the twin `context`, as an sb_function that reads its parameters itself. */
sb_tensor *model_twin_loss(void *context, sb_tensor *const unused[]);

/* Checks backward of all parameters by exact derivatives (sb_gradcheck), and with second_order
   products with the Hessian: with smaller steps while differences of gradients do not agree, since
   fewer relus change sign between the two points. The result is that of the step whose differences
   agree best. False, with a message, where the check could not be made. */
bool model_twin_check(struct model_twin *twin, int directions, bool second_order,
                      sb_gradcheck_result *result);

/* Leaves the gradients of the loss in the weights. */
bool model_twin_backward(struct model_twin *twin);
/* (L(w + h) - L(w - h)) / 2h for one element of a weight, which is put back; h is relative to
   max(1, |w|). */
bool model_twin_difference(struct model_twin *twin, sb_tensor *w, int64_t i, double h,
                           double *difference);

#endif
