/* The time of each operation of a step: softback bench train --profile. */
#ifndef SOFTBACK_PROGRAM_BENCH_PROFILE_H
#define SOFTBACK_PROGRAM_BENCH_PROFILE_H

#include "program/bench.h"
#include "program/bench_cost.h"

/* Runs `once` a few times and prints the time of its operations, the longest first. */
bool bench_profile(struct bench *bench, const char *name, const char *way, bench_once *once,
                   void *context);

#endif
