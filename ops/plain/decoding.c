#include "ops/decoding.h"
#include "ops/plain/real.h"

/* The symbols that a step of decoding has chosen, for the next step and the
   host. */
static bool decoding_note(const struct decoding_note *n)
{
    const real *log_p = n->log_p;
    double *noted = n->noted + *n->position % n->steps * n->B * 2;
    for (int64_t b = 0; b < n->B; b++) {
        noted[2 * b] = n->best[b];
        noted[2 * b + 1] = real_value(log_p[b]);
        n->ids[b] = n->best[b];
        n->lengths[b]++;
    }
    (*n->position)++;
    return true;
}

KERNELS(decoding) = {decoding_note};
