/* What a model gets wrong of held-out pairs: the worst outputs, and the attention of the first. */
#ifndef SOFTBACK_TEACH_REPORT_ERRORS_H
#define SOFTBACK_TEACH_REPORT_ERRORS_H

#include "models/text/pairs.h"
#include "models/translation_errors.h"
#include "teach/explain/subject.h"
#include "teach/report/html.h"

struct errors {
    const sb_pairs *pairs;
    int64_t count; /* of the pairs that were decoded */
    char **output; /* of each */
    int64_t wrong; /* outputs that differ from their targets, the worst first */
    struct translation_error *found;
};

/* Decodes at most 200 pairs with an encoder-decoder; with NULL none. To be freed, also after a
 * failure. */
bool errors_find(struct errors *errors, const struct subject *subject, const sb_pairs *pairs);
void errors_free(struct errors *errors);

/* A sentence, and a table with a picture. */
void errors_summary(struct html *html, const struct errors *errors);
bool errors_add(struct html *html, const struct subject *subject, const struct errors *errors);

#endif
