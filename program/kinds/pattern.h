/* A synthetic task for classifiers: whether a sequence of letters contains the pattern "abc". */
#ifndef SOFTBACK_PROGRAM_KINDS_PATTERN_H
#define SOFTBACK_PROGRAM_KINDS_PATTERN_H

#include "models/text/pairs.h"
#include "models/text/task.h"

extern const char pattern_task[]; /* "pattern" */

/* `count` texts of 4 to 16 of the letters a to d with the labels "yes" and "no", half of each;
   parts do not share their random streams. */
sb_pairs *pattern_pairs(uint64_t seed, sb_part part, int64_t count);

#endif
