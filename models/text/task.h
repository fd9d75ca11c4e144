/*
 * Built-in tasks: endless pairs of a source and a target text, generated on demand.
 *
 *   copy      "4 7 1 1 9"            -> "4 7 1 1 9"
 *   reverse   "4 7 1 1 9"            -> "9 1 1 7 4"
 *   sort      "4 7 1 1 9"            -> "1 1 4 7 9"    digits repeat
 *   addition  "47+85"                -> "132"          both from 10 to 99
 *   dates     "3rd of March 2021"    -> "2021-03-03"   from 1900 to 2099, in some twenty spellings
 *
 * A pair is a pure function of task, lengths, seed, part and index: pair 5 can be made without
 * pair 4, by any thread, and is the same on every machine.
 *
 * Held-out pairs never occur in training. The part of a pair is decided by a hash of its
 * meaning: the digits of the source, the two numbers of a sum in either order, the day of a date in
 * any spelling. 8 in 10 meanings belong to training, 1 to validation, 1 to the test. The
 * seed does not change it, so a model trained with one seed can be tested with pairs of another.
 */
#ifndef SOFTBACK_MODELS_TEXT_TASK_H
#define SOFTBACK_MODELS_TEXT_TASK_H

#include "../../tensor/error.h"
#include <stdint.h>

typedef enum {
    SB_TASK_COPY,
    SB_TASK_REVERSE,
    SB_TASK_SORT,
    SB_TASK_ADDITION,
    SB_TASK_DATES,
} sb_task;

typedef enum { SB_PART_TRAIN, SB_PART_VALID, SB_PART_TEST } sb_part;

enum { SB_TASKS = 5, SB_PARTS = 3, SB_TASK_LENGTH = 512, SB_TASK_TEXT = 2 * SB_TASK_LENGTH };

/* The number of digits of copy, reverse and sort, drawn evenly from min_length to max_length; at
   most SB_TASK_LENGTH. 0 means 1 and 16 (or min_length, if that is more). The other tasks have no
   lengths. */
typedef struct {
    int min_length, max_length;
} sb_task_options;

typedef struct {
    char source[SB_TASK_TEXT], target[SB_TASK_TEXT];
} sb_task_pair;

SB_API const char *sb_task_name(sb_task task);        /* "reverse" */
SB_API const char *sb_task_description(sb_task task); /* "reverse the digits: 4 7 1 -> 1 7 4" */

/* The task of this name; fails, listing the names, when there is none. */
SB_API bool sb_task_find(const char *name, sb_task *task);

/* Writes pair `index` (below 2^48) of a part; options may be NULL. Fails on lengths out of order or
   range. */
SB_API bool sb_task_make(sb_task task, const sb_task_options *options, uint64_t seed, sb_part part,
                         uint64_t index, sb_task_pair *pair);

/* The part to which the pair of this source and target belongs. */
SB_API sb_part sb_task_part(sb_task task, const char *source, const char *target);

#endif
