/* Attention weights as pictures. */
#ifndef SOFTBACK_MODELS_REPORT_MAPS_H
#define SOFTBACK_MODELS_REPORT_MAPS_H

#include "models/explain/subject.h"
#include "models/report/html.h"

/* All layers and heads, small, by kind; then what each symbol that is written looked at, as lines
   between two rows of symbols. Runs the model on the subject's pair. */
bool maps_add(struct html *html, const struct subject *subject);

#endif
