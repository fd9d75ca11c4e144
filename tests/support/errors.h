/* The arguments of bad calls, and the check of each call. */
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

    FILE *golden;
    bool writes;
    int count;        /* calls so far */
    const char *text; /* the call that is being made */
    enum errors_tape on;
    sb_tape tape;
    int64_t live; /* blocks before it */
};

void errors_open(struct errors *errors);
void errors_close(struct errors *errors);

/* Opens the tape that a call runs on. Returns true. */
bool errors_begin(struct errors *errors, const char *text, enum errors_tape on);
/* Closes it, and compares the message with the expected text. */
void errors_check(struct errors *errors, bool succeeded);

#endif
