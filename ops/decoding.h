/* The kernels of decoding that keeps its symbols on the device for several steps. */
#ifndef SOFTBACK_OPS_DECODING_H
#define SOFTBACK_OPS_DECODING_H

#include "ops/kernel.h"

/*
 * What a step leaves to the next one, for B sequences. Sequence b has chosen the symbol best[b]
 * with the log-probability log_p[b] (of the row's dtype). It becomes the input ids[b], and row
 * *position % steps of `noted`, (steps, B, 2), holds both numbers until the host reads them; then
 * *position and lengths[b] grow by 1. All lie in device memory.
 */
struct decoding_note {
    int64_t B, steps;
    const int32_t *best;
    const void *log_p;
    int32_t *ids, *position, *lengths;
    double *noted;
};

struct decoding_kernels {
    bool (*note)(const struct decoding_note *note);
};

extern struct kernel_rows decoding_rows;

#endif
