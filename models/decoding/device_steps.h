/*
 * Decoding steps that a device takes without the host: the symbols that a step chooses are the
 * input of the next one, and the host reads those of several steps together. The first step runs
 * eagerly; then the step is captured as a CUDA graph, if the device has graphs, and each later one
 * is one launch.
 *
 * A graph holds for as long as the sequences and the capacity of their caches stay as they are. The
 * results have the bits of single steps.
 */
#ifndef SOFTBACK_MODELS_DECODING_DEVICE_STEPS_H
#define SOFTBACK_MODELS_DECODING_DEVICE_STEPS_H

#include "models/decoding/search.h"
#include "nn/device_position.h"

enum { DEVICE_STEPS_AHEAD = 8 };

/* How many steps the host waits for at a time, at most DEVICE_STEPS_AHEAD; 0: single steps that it
   chooses itself, for tests. */
extern int64_t device_steps_ahead;

struct device_steps;
typedef bool device_steps_choose(void *chooser, const struct device_steps *d, sb_tensor *logits);

struct device_steps {
    const struct sequences *sequences;
    struct device_position position;
    sb_tensor *ids;     /* (count, 1): the symbols that the next step reads */
    sb_tensor *lengths; /* (count): of the memory; NULL in a language model */
    sb_tensor *noted;   /* (DEVICE_STEPS_AHEAD, count, size) of f64: what the host reads */
    /* Queues kernels that choose symbols by the logits (count, V) and leave them in ids, and in the
       row of `noted` for the present position; the position and its lengths grow by 1. */
    device_steps_choose *choose;
    void *chooser;
    bool warm, tried; /* a step has run eagerly; it was captured, or could not be */
    struct plugin_graph *graph;
    int64_t first; /* the position of the first step of the last run */
    double *read;  /* what the host has read of `noted` */
};

/* How many more steps, at most `most`, the device can take: 0 when it must not take any. */
int64_t device_steps_most(const struct sequences *s, int64_t most);

/* Makes *d ready for steps from the symbols ids (count) on, after ending earlier ones; ended by
   device_steps_end, also after a failure. A step notes `size` numbers of each sequence. */
bool device_steps_begin(struct device_steps *d, const struct sequences *s, int64_t size,
                        const int32_t *ids, device_steps_choose *choose, void *chooser);
void device_steps_end(struct device_steps *d);

/* Whether *d has begun, and its caches have room for so many steps. */
bool device_steps_fit(const struct device_steps *d, int64_t steps);

/* Takes steps that fit, and reads what they noted; of the i-th of them (count, size), until the
   next run. */
bool device_steps_run(struct device_steps *d, int64_t steps);
const double *device_steps_noted(const struct device_steps *d, int64_t i);

#endif
