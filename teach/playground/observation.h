/*
 * All attention of one pair, forward and backward from its loss: what each query, key and weight
 * is, and the gradient that reaches it. Arrays are float64, head by head: (HEADS, rows, keys) for
 * scores and weights, (HEADS, rows, D) for queries, (HEADS, keys, D) for keys and values, (HEADS,
 * rows) for sums.
 */
#ifndef SOFTBACK_TEACH_PLAYGROUND_OBSERVATION_H
#define SOFTBACK_TEACH_PLAYGROUND_OBSERVATION_H

#include "teach/explain/model.h"
#include "teach/playground/rule.h"

enum { OBSERVED_ENCODER, OBSERVED_DECODER, OBSERVED_CROSS, OBSERVED_ATTENTIONS };

enum observed {
    OBSERVED_S,     /* scores, scaled; -infinity where a key is blocked */
    OBSERVED_A,     /* weights: softmax of s */
    OBSERVED_G,     /* gradient of the weights: g = dy v' */
    OBSERVED_DS,    /* gradient of the scores by the model's rule */
    OBSERVED_RIGHT, /* gradient of the scores by the library's softmax */
    OBSERVED_Q,
    OBSERVED_DQ,
    OBSERVED_DY, /* gradient of the result y = a v */
    OBSERVED_K,
    OBSERVED_V,
    OBSERVED_AVERAGE, /* of each row: avg = sum of a g */
    OBSERVED_SUM,     /* of each row: the sum of ds */
    OBSERVED_NUMBERS
};

struct observed_attention {
    int64_t heads, rows, keys, size; /* size: D */
    double scale;                    /* s = scale q k' */
    double *number[OBSERVED_NUMBERS];
};

struct observation {
    double loss;
    int64_t symbols, rows; /* of the target */
    double *probability;   /* (rows, symbols) */
    int64_t parameters;
    double *gradient; /* the norm of each parameter's gradient, of this pair alone */
    struct observed_attention attention[OBSERVED_ATTENTIONS];
};

/* The model has one layer of each kind; `rule` is that of its attention, NULL the library's. */
bool observation_make(struct observation *observation, const struct subject *subject,
                      const struct rule *rule);
void observation_free(struct observation *observation);

/* flow[i * n + j] = a_i a_j (g_i - g_j), antisymmetric: what score i passes to score j. Row i sums
   to ds_i = a_i (g_i - avg). */
void observation_flow(int64_t n, const double *a, const double *g, double *flow);

#endif
