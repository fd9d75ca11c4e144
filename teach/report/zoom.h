/* A range of steps and a smoothing for all charts of a page, which a short script adds; without it
   the charts are as they were drawn. */
#ifndef SOFTBACK_TEACH_REPORT_ZOOM_H
#define SOFTBACK_TEACH_REPORT_ZOOM_H

#include "teach/report/html.h"

/* What the curves mean, and the controls; above the charts. */
void zoom_add(struct html *html);
/* The script; below the last chart. */
void zoom_script(struct html *html);

#endif
