/* The kernels of optimisers: one pass over the flat buffer of all parameters. */
#ifndef SOFTBACK_OPS_UPDATE_H
#define SOFTBACK_OPS_UPDATE_H

#include "ops/kernel.h"

/* Adam (Kingma and Ba 2015): m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
   w -= rate (m / correction1) / (sqrt(v / correction2) + epsilon), with g scaled first by
   gradient_scale. coupled_decay adds decay w to g (L2); decoupled_decay (AdamW, Loshchilov and
   Hutter 2019) subtracts rate decay w from w. */
struct adam_step {
    double rate, beta1, beta2, epsilon, correction1, correction2, gradient_scale;
    double coupled_decay, decoupled_decay;
};

/* SGD with momentum: u = momentum u + g, w -= rate u; Nesterov: w -= rate (g + momentum u). On the
   first step u = g, which a zeroed u gives. */
struct sgd_step {
    double rate, momentum, gradient_scale, decay;
    bool nesterov;
};

struct update_kernels {
    bool (*adam)(int64_t n, const struct adam_step *step, const void *g, void *w, void *m, void *v);
    bool (*sgd)(int64_t n, const struct sgd_step *step, const void *g, void *w, void *u);
    /* *sum = the sum of squares of x in float64, in an order that n determines. If the sum is not
       finite, *first_bad is the first element that is not finite, or -1 if all are. */
    bool (*squares)(int64_t n, const void *x, double *sum, int64_t *first_bad);
    /* y += x[0] + ... + x[sources - 1], in this order; CPU only */
    bool (*add)(int64_t n, int sources, const void *const x[], void *y);
    /* y = decay y + (1 - decay) x */
    bool (*average)(int64_t n, double decay, const void *x, void *y);
    /*
     * For a step in a CUDA graph; NULL on other devices. All pointers but those of adam_numbers are
     * to device memory, and the host does not wait.
     *   judge         from the gradient x and the loss, an f32: outcome[0] = loss; outcome[1] = the
     *                 norm of x; outcome[2] = min(1, limit / (norm + 1e-6)), or 1 if the limit is
     *                 0, or NaN if the loss, the norm, or the square of the norm times
     *                 outcome[2] in the dtype of x is not finite
     *   adam_numbers  stores what adam_judged reads of a step: at most ADAM_NUMBERS bytes
     *   adam_judged   adam, with outcome[2] as its gradient_scale; nothing if that is NaN
     */
    bool (*judge)(int64_t n, const void *x, const void *loss, double limit, double *outcome);
    void (*adam_numbers)(const struct adam_step *step, void *numbers);
    bool (*adam_judged)(int64_t n, const void *numbers, const double *outcome, const void *g,
                        void *w, void *m, void *v);
};

enum { ADAM_NUMBERS = 128, UPDATE_OUTCOME = 3 };

extern struct kernel_rows update_rows;

#endif
