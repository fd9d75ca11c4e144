/* Two runs side by side: what they reach, their curves, and the settings in which they differ. */
#ifndef SOFTBACK_TEACH_REPORT_COMPARE_H
#define SOFTBACK_TEACH_REPORT_COMPARE_H

#include "models/training/checkpoint.h"
#include "teach/report/run_log.h"

struct compared {
    const char *name;
    const struct checkpoint *checkpoint; /* of any kind */
    const struct run_log *log;
};

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. */
char *compare_page(const struct compared runs[2]);

#endif
