/* The tape of a text's loss, drawn, and as a table. */
#ifndef SOFTBACK_TEACH_REPORT_TAPE_H
#define SOFTBACK_TEACH_REPORT_TAPE_H

#include "teach/explain/model.h"
#include "teach/report/html.h"

bool tape_picture_add(struct html *html, const struct subject *subject);

#endif
