/*
 * Lists of bad calls, and the message of each one, as a caller reads it, in a golden file.
 *
 * Each call runs on a separate tape, with arguments that all calls share: a call that damages one
 * makes later calls fail. SOFTBACK_GOLDEN=write rewrites the file. A refusal is best one line of
 * such a list:
 *
 *     CALL(sb_add(f->x, NULL));
 */
#ifndef SOFTBACK_TESTS_SUPPORT_ERRORS_H
#define SOFTBACK_TESTS_SUPPORT_ERRORS_H

#include "softback.h"
#include <stdio.h>

enum errors_tape { NO_TAPE, RECORDING, AFTER_BACKWARD };

struct errors {
    sb_tensor *x, *y;                     /* (2, 3) and (3, 4), f32 */
    sb_tensor *v3, *v4;                   /* (3) and (4), f32 */
    sb_tensor *d;                         /* (2, 3), f64 */
    sb_tensor *s, *e, *e0;                /* a scalar, (0, 3), (2, 0), f32 */
    sb_tensor *i2, *i9, *in, *i22;        /* ids: (1, 2), (1, 9), (-1, -1), and (2, 2) */
    sb_tensor *b;                         /* (2, 3), bool */
    sb_tensor *q, *k, *k3, *kd, *kb, *kl; /* attention: (2, 5, 4, 6), (2, 7, 4, 6), then with 3
                                             heads, size 5, batch 3, length 8 */
    sb_tensor *len, *len9;                /* lengths 5, 7 and 5, 9 */
    sb_tensor *freed;                     /* (2, 3), freed by backward; only with AFTER_BACKWARD */
    sb_parameters *set;                   /* with "w" (2, 2) */

    const char *file; /* golden/FILE.txt */
    FILE *golden;
    bool writes;
    const char *text; /* the call that is being made */
    enum errors_tape on;
    sb_tape tape;
    int64_t live; /* blocks before it */
};

/* A call without a tape, on a recording one, and on one whose backward has freed a tensor. */
#define ALONE(...) MAKE(NO_TAPE, #__VA_ARGS__, __VA_ARGS__)
#define CALL(...) MAKE(RECORDING, #__VA_ARGS__, __VA_ARGS__)
#define FREED(...) MAKE(AFTER_BACKWARD, #__VA_ARGS__, __VA_ARGS__)
#define MAKE(tape, text, ...) errors_check(f, errors_begin(f, text, tape) && (__VA_ARGS__))

/* Tensors on the tape of a call. */
sb_tensor *zeros(sb_dtype dtype, int rank, const int64_t *dim);
sb_tensor *ids(int rank, const int64_t *dim, const int32_t *values);

void errors_open(struct errors *errors, const char *file);
/* Expects the arguments to be unchanged. */
void errors_close(struct errors *errors);

/* Opens the tape that a call runs on. Returns true. */
bool errors_begin(struct errors *errors, const char *text, enum errors_tape on);
/* Closes it, and compares the message with the expected text. */
void errors_check(struct errors *errors, bool succeeded);

#endif
