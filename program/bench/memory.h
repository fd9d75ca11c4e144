/* Where the memory of a training step goes: softback bench train --profile. */
#ifndef SOFTBACK_PROGRAM_BENCH_MEMORY_H
#define SOFTBACK_PROGRAM_BENCH_MEMORY_H

#include "autograd/watch.h"
#include "nn/parameters.h"
#include "program/bench/bench.h"

/* Bytes of one step, without those that were in use before there was a model. */
struct bench_memory {
    int64_t outside;
    int64_t start;    /* before the step: weights, gradients, optimiser, data */
    int64_t backward; /* when backward begins: also what forward keeps for it */
    int64_t peak;
    int64_t before; /* the running forward began; a negative number: none runs */
};

/* Bytes in use now on the device. */
int64_t bench_memory_live(void);

void bench_memory_start(struct bench_memory *m, int64_t outside);

/* Sees what a watcher sees (autograd/watch.h), and returns how many bytes the forward that has just
   finished keeps; 0 after anything else. */
int64_t bench_memory_see(struct bench_memory *m, enum watched what);

void bench_memory_end(struct bench_memory *m);

void bench_memory_print(const struct bench *bench, const struct bench_memory *m, const char *name,
                        const char *way, const sb_parameters *weights);

#endif
