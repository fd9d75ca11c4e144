/* Parts of a page, which a short script turns into tabs; without it they follow each other. */
#ifndef SOFTBACK_TEACH_REPORT_TABS_H
#define SOFTBACK_TEACH_REPORT_TABS_H

#include "teach/report/html.h"

void tabs_begin(struct html *html, const char *name);
void tabs_next(struct html *html, const char *name);
void tabs_end(struct html *html);

#endif
