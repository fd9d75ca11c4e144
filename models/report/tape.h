/* The tape of a pair's loss, drawn, and as a table. */
#ifndef SOFTBACK_MODELS_REPORT_TAPE_H
#define SOFTBACK_MODELS_REPORT_TAPE_H

#include "models/explain/subject.h"
#include "models/report/html.h"

bool tape_picture_add(struct html *html, const struct subject *subject);

#endif
