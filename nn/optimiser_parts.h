/* The parts of an optimiser, for files and for graphs, and the clipping of gradients. */
#ifndef SOFTBACK_NN_OPTIMISER_PARTS_H
#define SOFTBACK_NN_OPTIMISER_PARTS_H

#include "nn/flat.h"
#include "nn/optimiser.h"
#include "nn/parameters.h"
#include "ops/update.h"

enum { MOST_MOMENTS = 2 };

/* What belongs to a parameter. */
struct moments_place {
    int64_t slot;  /* its first element in the flat tensors; -1 while it is frozen */
    int64_t steps; /* with a gradient, on which the corrections of Adam depend */
};

/* The moments, in flat tensors with the layout of the gradients, and the number of steps that each
   parameter has taken. */
struct moments {
    int tensors; /* Adam: m and v; SGD: u */
    sb_tensor *flat[MOST_MOMENTS];
    int64_t layout; /* of the gradients; 0: none yet */
    int64_t count;  /* of the parameters then */
    struct moments_place *place;
};

/* Flattens the parameters and makes moments of the layout that they have now. Parameters that were
   added or thawed begin with moments of 0. On failure nothing changes. */
bool moments_fit(struct moments *moments, sb_parameters *set);

enum kind { SGD, ADAM, ADAMW };

struct sb_optimiser {
    enum kind kind;
    sb_parameters *set;
    sb_optimiser_options options;
    int64_t steps;
    double rate, norm;
    double own_rate; /* set by the caller; NAN: that of the schedule */
    sb_plateau plateau;
    struct moments moments;
    bool taken; /* a graph has taken the next step, whose rate and norm are set */
};

/* "sgd", "adam" or "adamw". */
const char *optimiser_name(const sb_optimiser *optimiser);

/*
 * ---- a graph ----
 *
 * A step of Adam as part of a CUDA graph. The graph judges the gradient (is the loss finite, and
 * the norm; how much is clipped) and updates the parameters, or leaves them as they are, without
 * the host. What changes from step to step lies in device memory.
 */
enum { OPTIMISER_NUMBERS = 32 }; /* the most different numbers of passes in a step */

/* One pass, over parameters that share their numbers: step[numbers] below. */
struct optimiser_pass {
    int64_t n, numbers;
    void *w, *g, *m, *v;
};

/* What a graph depends on: it holds for steps of an equal plan. Zero is an empty plan. */
struct optimiser_plan {
    int64_t passes, room;
    double limit; /* of the norm; 0: none */
    struct optimiser_pass *pass;
};

/* The numbers of a step. */
struct optimiser_numbers {
    double rate;
    int64_t count;
    struct adam_step step[OPTIMISER_NUMBERS];
};

/* The plan of the next step, from the gradients that exist, and its numbers; the plan is filled
   anew. False, perhaps without a message, when the step cannot be part of a graph. */
bool optimiser_plan_step(sb_optimiser *o, struct optimiser_plan *plan,
                         struct optimiser_numbers *numbers);
bool optimiser_same_plan(const struct optimiser_plan *a, const struct optimiser_plan *b);
void optimiser_plan_free(struct optimiser_plan *plan);

/* Queues the step of a plan for the gradients and the loss, an f32. `numbers` and `outcome` are in
   device memory (ops/update.h). */
bool optimiser_queue_step(const sb_optimiser *o, const struct optimiser_plan *plan,
                          const void *loss, const char *numbers, double *outcome);

/* A graph has taken the step, at this rate and norm: the next sb_optimiser_step only counts it. */
void optimiser_step_taken(sb_optimiser *o, double rate, double norm);

/* ---- clip.c: the gradient clipped by its global norm (Pascanu, Mikolov and Bengio 2013) ---- */

/* Who clips, and what follows when it cannot, for messages. */
struct clip_caller {
    const char *who, *then;
};

/*
 * *norm = `factor` times the global norm of all gradients; *scale = `factor` times
 * min(1, limit / (*norm + 1e-6)), as in PyTorch's clip_grad_norm_ (limit 0: no clipping). Fails
 * when there is no gradient, and when the norm is not finite: the message names the first such
 * parameter. With tensor parallelism all ranks call it and get the same result.
 */
bool clip_scale(const struct clip_caller *caller, sb_parameters *set, double limit, double factor,
                double *norm, double *scale);

/* The name of the first parameter with a value that is not finite, or NULL. */
const char *clip_bad_parameter(const sb_parameters *set);

#endif
