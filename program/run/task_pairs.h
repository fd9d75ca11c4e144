/* The pairs of a built-in task. */
#ifndef SOFTBACK_PROGRAM_RUN_TASK_PAIRS_H
#define SOFTBACK_PROGRAM_RUN_TASK_PAIRS_H

#include "models/text/pairs.h"
#include "models/training/settings.h"

/* `count` pairs of a part of it. */
sb_pairs *task_pairs(const char *task, const struct settings *settings, sb_part part,
                     int64_t count);

#endif
