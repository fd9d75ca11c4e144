/* A tape on which f64 tensors are dual numbers, for derivatives and the gradient check. */
#ifndef SOFTBACK_AUTOGRAD_DUAL_TAPE_H
#define SOFTBACK_AUTOGRAD_DUAL_TAPE_H

#include "autograd/twins.h"

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
