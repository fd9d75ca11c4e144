/*
 * A rule for the gradient of softmax, written as an expression: "a * (g - sum(a * g))". It is read
 * into a short program for a stack of rows, and nothing else can run: no names but those below.
 *
 *     a, g              the weights of a row and their gradient
 *     2, 0.5, 1e-3      numbers
 *     n                 the number of kept keys
 *     avg               sum(a * g)
 *     + - * / ( )       elementwise; a single number counts for each key; * may be left out next to
 *                       brackets, as in a (1 - a) g
 *     sum mean min max  of a row, one number
 *     abs sqrt exp log  elementwise
 */
#ifndef SOFTBACK_TEACH_PLAYGROUND_RULE_H
#define SOFTBACK_TEACH_PLAYGROUND_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum { RULE_KEYS = 64, RULE_STEPS = 64, RULE_DEPTH = 12 };

struct rule_step {
    char
        what; /* n: a number; a, g, k: push a row; an operator; or the first letter of a function */
    double number;
};

struct rule {
    int steps;
    struct rule_step step[RULE_STEPS];
};

/* False, with a message that names the place, when the text is no rule. */
bool rule_read(struct rule *rule, const char *text);

/* Writes ds for a row of n <= RULE_KEYS keys. */
void rule_apply(const struct rule *rule, int64_t n, const double *a, const double *g, double *ds);

/* False, with a message that names the first key and the cause, when ds is not finite in this row.
 */
bool rule_is_finite(const struct rule *rule, int64_t n, const double *a, const double *g);

enum { RULE_TEST_ROWS = 64, RULE_TEST_KEYS = 6 };

/* What the rule has in common with the Jacobian J = diag(a) - a a', over RULE_TEST_ROWS random rows
   of RULE_TEST_KEYS keys. False, with a message, when it is not finite in one of them. */
struct rule_check {
    bool right;       /* ds = J g */
    bool sum_is_zero; /* the sum of ds is 0: a shift of the scores changes no weight */
    bool shift_free;  /* g + c gives the same ds: the weights always sum to 1 */
    double error;     /* the largest |ds - J g|, relative to the largest |J g| */
};
bool rule_check(const struct rule *rule, struct rule_check *check);

/* From now on the backward of composed attention of f32 on the CPU computes ds by this rule;
   without a text by the library's kernel again. Bias, dropout, dense masks and more than RULE_KEYS
   keys are not supported. False, with a message, when the text is no rule. */
bool rule_install(const char *text);

#endif
