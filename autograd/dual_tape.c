#include "autograd/dual_tape.h"

bool dual_tape_begin(struct dual_tape *d, sb_mode mode, sb_tensor *const x[], sb_tensor *const v[],
                     int n)
{
    *d = (struct dual_tape){0};
    sb_tape_begin(&d->tape, mode);
    for (int i = 0; i < n; i++) {
        bool added = x[i]->dtype != SB_F64;
        for (int j = 0; j < i && !added; j++) /* a tensor that is two inputs has one twin */
            added = x[j] == x[i];
        if (!added && !twins_add(&d->twins, x[i], v[i]))
            return false;
    }
    tape_open()->twins = &d->twins;
    tape_open()->replicas = NULL; /* twins have gradients of their own */
    return true;
}

bool dual_tape_end(struct dual_tape *d)
{
    const bool ok = sb_tape_end(&d->tape);
    twins_free(&d->twins);
    return ok;
}
