/* The rows of softback bench, and what softback bench --rows lists. */
#ifndef SOFTBACK_PROGRAM_BENCH_ROWS_H
#define SOFTBACK_PROGRAM_BENCH_ROWS_H

#include "program/bench/bench.h"

/* Measures and prints the rows of a group: "train", "decode", "operation", "attention". */
bool bench_rows(struct bench *bench, const char *group);

/* Prints all rows, for programs: group, name, line of the job, operations, bytes, memory, tokens,
   and where they are measured, as words. */
bool bench_list(void);

#endif
