/* The table of bad calls, and what they are made with. */
#ifndef SOFTBACK_TESTS_SUPPORT_ERRORS_H
#define SOFTBACK_TESTS_SUPPORT_ERRORS_H

#include "softback.h"

struct errors_fixture {
    sb_tensor *x, *y;                     /* (2, 3) and (3, 4), f32 */
    sb_tensor *v3, *v4;                   /* (3) and (4), f32 */
    sb_tensor *d;                         /* (2, 3), f64 */
    sb_tensor *s, *e, *e0;                /* a scalar, (0, 3), (2, 0), f32 */
    sb_tensor *i2, *i9, *in, *i22;        /* ids: (1, 2), (1, 9), (-1, -1), and (2, 2) */
    sb_tensor *b;                         /* (2, 3), bool */
    sb_tensor *q, *k, *k3, *kd, *kb, *kl; /* attention: (2, 5, 4, 6), (2, 7, 4, 6), then with 3
                                             heads, size 5, batch 3, length 8 */
    sb_tensor *len, *len9;                /* lengths 5, 7 and 5, 9 */
    sb_tensor *gone;                      /* (2, 3), let go by backward */
    sb_parameters *set;                   /* with "w" (2, 2) */
};

struct bad_call {
    const char *text; /* NULL past the last one */
    bool on_tape, wants_gone;
};

/* What call `number` is; if `run`, also makes it, and returns whether it succeeded. */
bool bad_call(struct errors_fixture *f, int number, bool run, struct bad_call *call);

#endif
