/*
 * A step of Adam as part of a CUDA graph. The graph judges the gradient (is the loss finite, and
 * the norm; how much is clipped) and updates the parameters, or leaves them as they are, without
 * the host. What changes from step to step lies in device memory.
 */
#ifndef SOFTBACK_NN_OPTIMISER_GRAPH_H
#define SOFTBACK_NN_OPTIMISER_GRAPH_H

#include "nn/optimiser.h"
#include "ops/update.h"

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

#endif
