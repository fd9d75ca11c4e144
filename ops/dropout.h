/* The kernels of dropout and residual_dropout, and what attention shares with them. */
#ifndef SOFTBACK_OPS_DROPOUT_H
#define SOFTBACK_OPS_DROPOUT_H

#include "ops/place.h"

/* One call of dropout: its place in the random stream, from which its bits can be computed at any
   time. Of the 2^16 values that an element's 16 bits may have, those below the threshold drop it.
   Which bits are an element's goes by its place in the whole. */
struct dropout {
    uint64_t seed, position;
    uint32_t threshold; /* 0: nothing is dropped */
    double scale;       /* 1 / (1 - p) */
    /* What is added to the position, in the device's memory, for work that is launched again
       (tensor/plugin.h); NULL on the CPU. */
    const uint64_t *offset;
    struct place place;
};

struct dropout_kernels {
    /* y = x with elements dropped and the others scaled, plus the residual unless it is NULL. */
    bool (*forward)(const struct dropout *dropout, int64_t n, const void *x, const void *residual,
                    void *y);
    /* dx += dy where x was not dropped, scaled; dresidual += dy. Each is written instead where it
       is fresh, and left out where it is NULL. */
    bool (*backward)(const struct dropout *dropout, int64_t n, const void *dy, void *dx,
                     bool fresh_dx, void *dresidual, bool fresh_dresidual);
};

/* sb_dropout and sb_residual_dropout of a tensor whose positions are of this sequence. */
sb_tensor *dropout_along(sb_tensor *x, double p, sb_sequence along);
sb_tensor *residual_dropout_along(sb_tensor *x, sb_tensor *branch, double p, sb_sequence along);

/* Checks p; fails in the name of `who`. */
bool dropout_check(const char *who, double p);

/* Takes the next position of the open tape's stream, for elements at this place. Without a stream,
   or with p = 0, it takes none and nothing is dropped. */
struct dropout dropout_next(double p, const struct place *place);

#endif
