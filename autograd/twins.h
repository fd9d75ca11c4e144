/*
 * Dual tapes. On a tape with twins every f64 input of a node is replaced by its dual twin, a leaf
 * of SB_DUAL with the same values and a tangent. So operations compute tangents beside values, and
 * backward computes tangents of gradients. A tensor has one twin, also on inner tapes.
 */
#ifndef SOFTBACK_AUTOGRAD_TWINS_H
#define SOFTBACK_AUTOGRAD_TWINS_H

#include "autograd/node.h"

struct twin {
    sb_tensor *of, *dual;
};

struct twins {
    struct twin *pair;
    int64_t count, room;
};

/* Adds a twin for a f64 tensor, with this tangent (f64 of its shape; NULL: zeros). The twin has no
   gradient, and requires one if `of` is a leaf that does. */
sb_tensor *twins_add(struct twins *twins, sb_tensor *of, const sb_tensor *tangent);
void twins_free(struct twins *twins);

/* On a dual tape, the twin of a f64 tensor. Fails on another device than the CPU. Returns t itself
   where it is dual already, has another dtype, which makes it a constant, or the tape has no
   twins. */
sb_tensor *twin_of(const char *who, sb_tensor *t);

/* New f64 tensors with the values and with the tangents of a dual tensor. The caller owns them. */
sb_tensor *twin_values(const char *who, const sb_tensor *dual);
sb_tensor *twin_tangents(const char *who, const sb_tensor *dual);

#endif
