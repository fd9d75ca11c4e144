/*
 * The functions that you write in the lessons, and those that their tests share.
 *
 * Each lesson's page, NN_name.md, says what its functions must do. Your files are in my/.
 */
#ifndef SOFTBACK_TEACH_LESSON_H
#define SOFTBACK_TEACH_LESSON_H

#include <softback/softback.h>
#include <stdbool.h>
#include <stdint.h>

/* 1. One row: y = softmax(x), n numbers each. */
void softmax_row(int64_t n, const double *x, double *y);

/* 2. Everyone pays: J[i * n + j] = d a_i / d s_j, where a = softmax(s). */
void softmax_jacobian(int64_t n, const double *a, double *J);

/* 3. Never build J: ds = J' g, without J. */
void softmax_backward(int64_t n, const double *a, const double *g, double *ds);

/* 4. The wrong gradient: what a network gets in place of ds. */
void score_gradient(int64_t n, const float *a, const float *g, float *ds);

/* 5. How to trust it: whether `gradient` is f's at x. x may be changed, and must be restored. */
typedef float lesson_function(int64_t n, const float *x);
float check_step(void);
bool gradient_holds(lesson_function *f, int64_t n, float *x, const float *gradient);

/* 6. p - y: returns the loss -ln softmax(z)[target], and writes its gradient to dz. */
float cross_entropy(int64_t n, const float *z, int64_t target, float *dz);

/* 7. Saturated rows: the length of softmax's Jacobian at a, and the factor on scores of d terms. */
double jacobian_length(int64_t n, const double *a);
double score_factor(int64_t d);

/* 8. Masks: softmax over the kept entries, and its backward. */
void masked_softmax(int64_t n, const double *s, const bool *keep, double *a);
void masked_backward(int64_t n, const bool *keep, const double *a, const double *g, double *ds);

/* 9. Online softmax: attention of one query over its keys, a block at a time. */
struct online {
    double m, l, o; /* the largest score, the sum of exp(s - m), and that of exp(s - m) v */
};
void online_add(struct online *state, int64_t n, const double *s, const double *v);
void online_backward(const struct online *end, double dy, int64_t n, const double *s,
                     const double *v, double *ds, double *dv);

/* 10. The tape: the backward of y = x w, and that of one head of attention. */
bool project_backward(sb_node *node);
void attention_backward(int64_t L, int64_t D, const double *q, const double *k, const double *v,
                        const double *a, const double *dy, double *dq, double *dk, double *dv);

/* 11. Learn to reverse: trains for some steps; false if something failed. */
double learning_rate(void);
bool train(const sb_seq2seq *model, sb_data *data, sb_optimiser *adam, int steps);

/* 12. A decoder from layers: one block. x (batch, length, width) -> the same shape. */
struct decoder_layers {
    sb_norm_layer attention_norm, forward_norm;
    sb_linear_layer query, key, value, output, wide, narrow;
};
sb_tensor *decoder_block(const struct decoder_layers *layers, sb_tensor *x);

/* ---- For the tests ---- */

/* Prints whether a sentence holds, and returns it. */
bool holds(bool ok, const char *format, ...) SB_PRINTF(2, 3);
/* Prints, below a sentence that does not hold, the likely mistake; the same one once. */
void hint(const char *format, ...) SB_PRINTF(1, 2);
/* Prints a line of a table or a remark. */
void say(const char *format, ...) SB_PRINTF(1, 2);
void blank_line(void);
/* Whether all sentences held: the test's exit status. */
int lesson_end(void);

/* What a formula gives, and what to say of it. */
struct guess {
    double value;
    const char *name;
};
/* Says which formula gives all of yours, if one does: guess[i * count + k] is formula k at i. */
bool hint_guess(int64_t n, const double *yours, int count, const struct guess *guess);

/* The largest |a_i - b_i|; NaN when one of them is not finite. */
double distance(int64_t n, const double *a, const double *b);
double total(int64_t n, const double *a);
bool finite_all(int64_t n, const double *a);
/* x for printing: neither -nan nor -0. */
double shown(double x);
/* Softmax as the library computes it, for tests that must not depend on lesson 1. */
void true_softmax(int64_t n, const double *x, double *y);

#endif
