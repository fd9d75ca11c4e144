/* Cross-attention one decoding step at a time: a slider, for browsers that run scripts. */
#ifndef SOFTBACK_TEACH_REPORT_STEPS_H
#define SOFTBACK_TEACH_REPORT_STEPS_H

#include "teach/explain/subject.h"
#include "teach/report/html.h"

/* The page shows the same elsewhere: without scripts the slider stays hidden. `cross` holds the
   weights (1, H, Lq, Lk) of each decoder layer. */
void steps_add(struct html *html, const struct subject *subject, sb_tensor *const cross[]);

#endif
