/* The time of each operation of a step, and its memory: softback bench train --profile. */
#ifndef SOFTBACK_PROGRAM_BENCH_PROFILE_H
#define SOFTBACK_PROGRAM_BENCH_PROFILE_H

#include "program/bench/bench.h"
#include "program/bench/cost.h"
#include "program/bench/memory.h"

/* Runs `once` a few times and prints the time of its operations, the longest first, and what each
   keeps for backward; then the memory of a step that trains these weights, without the bytes that
   are in use outside of it. */
bool bench_profile(struct bench *bench, const char *name, const char *way, bench_once *once,
                   void *context, const sb_parameters *weights, int64_t outside);

#endif
