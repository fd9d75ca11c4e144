/* Cross-attention one decoding step at a time: a slider, for browsers that run scripts. */
#ifndef SOFTBACK_TEACH_REPORT_STEPS_H
#define SOFTBACK_TEACH_REPORT_STEPS_H

#include "teach/report/maps.h"

/* The page shows the same elsewhere: without scripts the slider stays hidden. */
void steps_add(struct html *html, const struct maps *maps, const sb_example_attention *cross);

#endif
