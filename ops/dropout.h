/* The kernels of dropout and residual_dropout, and the parts that attention shares. */
#ifndef SOFTBACK_OPS_DROPOUT_H
#define SOFTBACK_OPS_DROPOUT_H

#include "ops/place.h"

/* One call of dropout: its position in the random stream, from which its bits can be recomputed. An
   element is dropped when its 16 bits are below the threshold. The position of an element within
   the unsharded tensor selects its bits. */
struct dropout {
    uint64_t seed, position;
    uint32_t threshold; /* 0: nothing is dropped */
    double scale;       /* 1 / (1 - p) */
    /* Added to the position when a graph is launched again (tensor/plugin.h); in device memory;
       NULL on the CPU. */
    const uint64_t *offset;
    struct place place;
};

struct dropout_kernels {
    /* y = dropout(x), plus the residual unless it is NULL. */
    bool (*forward)(const struct dropout *dropout, int64_t n, const void *x, const void *residual,
                    void *y);
    /* dx += scale dy where x was not dropped; dresidual += dy. A fresh gradient is written instead,
       a NULL one is skipped. */
    bool (*backward)(const struct dropout *dropout, int64_t n, const void *dy, void *dx,
                     bool fresh_dx, void *dresidual, bool fresh_dresidual);
};

/* sb_dropout and sb_residual_dropout of a tensor whose positions belong to this sequence. */
sb_tensor *dropout_along(sb_tensor *x, double p, sb_sequence along);
sb_tensor *residual_dropout_along(sb_tensor *x, sb_tensor *branch, double p, sb_sequence along);

/* Checks p; `who` opens the message. */
bool dropout_check(const char *who, double p);

/* Draws the next position of the open tape's stream for elements at this place. Without a stream,
   or with p = 0, it draws none and nothing is dropped; fails where the tape records and was given
   no stream, not even NULL. */
bool dropout_next(const char *who, double p, const struct place *place, struct dropout *dropout);

#endif
