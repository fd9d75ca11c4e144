/* Runs side by side: what they reach, their curves, and the settings in which they differ. */
#ifndef SOFTBACK_TEACH_REPORT_COMPARE_H
#define SOFTBACK_TEACH_REPORT_COMPARE_H

#include "models/training/checkpoint.h"
#include "teach/report/run_log.h"

/* What is kept of a run; its model is not. */
struct compared {
    char *name;
    struct run_log log;
    struct run_end end;
    int64_t weights;
    char *setting[MOST_SETTINGS]; /* each as a text */
};

/* Reads a run, of any kind of model, from its files. To be closed in any case. */
bool compared_open(struct compared *run, const char *name, const char *model, const char *log);
void compared_close(struct compared *run);

/* The best first: by exact texts, then by held-out loss, then by the training loss at the end. */
void compare_sort(int64_t n, struct compared runs[]);

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. Curves are only
   those of the first runs, as many as a chart has. */
char *compare_page(const char *title, int64_t n, const struct compared runs[]);

#endif
