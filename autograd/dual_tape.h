/*
 * Tapes on which f64 tensors are dual numbers, for derivatives and the gradient check: every f64
 * input of a node is replaced by its dual twin, a leaf of SB_DUAL with the same values and a
 * tangent. So operations compute tangents beside values, and backward computes tangents of
 * gradients. A tensor has one twin, also on inner tapes.
 */
#ifndef SOFTBACK_AUTOGRAD_DUAL_TAPE_H
#define SOFTBACK_AUTOGRAD_DUAL_TAPE_H

#include "autograd/node.h"
#include "tensor/dual.h"

struct twin {
    sb_tensor *of, *dual;
};

struct twins {
    struct twin *pair;
    int64_t count, room;
};

/* On a dual tape, the twin of a f64 tensor. Fails on another device than the CPU. Returns t itself
   where it is dual already, has another dtype, which makes it a constant, or the tape has no
   twins. */
sb_tensor *twin_of(const char *who, sb_tensor *t);

/* A new f64 tensor with a part of a dual one: sb_dual_value or sb_dual_tangent. The caller owns
   it. */
sb_tensor *twin_part(const char *who, const sb_tensor *dual, double (*part)(sb_dual));

struct dual_tape {
    sb_tape tape;
    struct twins twins;
};

/* Opens the tape, with the direction v: v[i] is the tangent of the f64 tensor x[i] (NULL: zeros).
   Close it with dual_tape_end, which also fails when something on the tape failed. */
bool dual_tape_begin(struct dual_tape *d, sb_mode mode, sb_tensor *const x[], sb_tensor *const v[],
                     int n);
bool dual_tape_end(struct dual_tape *d);

#endif
