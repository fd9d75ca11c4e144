/* What a run can be repeated from: its command, settings, seed, data and version. */
#ifndef SOFTBACK_TEACH_REPORT_DETAILS_H
#define SOFTBACK_TEACH_REPORT_DETAILS_H

#include "models/training/checkpoint.h"
#include "teach/report/html.h"

/* `data_hash`: 0 if it is unknown; `seconds` of training: NaN. */
bool details_add(struct html *html, const struct checkpoint *checkpoint, uint64_t data_hash,
                 double seconds);

/* 8.25 -> "8.2 s", 83 -> "1:23 min", 4983 -> "1:23:03 h". */
struct time_text {
    char text[32];
};
struct time_text details_time(double seconds);

/* One setting of a description as a text, or its default. */
const char *details_setting(const struct checkpoint *checkpoint, const sb_description *description,
                            int i, struct field_text *room);

#endif
