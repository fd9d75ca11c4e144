/* Common statements about attention, each measured on the spot. */
#ifndef SOFTBACK_TEACH_EXPLAIN_CLAIMS_H
#define SOFTBACK_TEACH_EXPLAIN_CLAIMS_H

#include "tensor/error.h"
#include <stdbool.h>

enum verdict { VERDICT_FALSE, VERDICT_HALF, VERDICT_TRUE };

struct measured {
    char text[320];
    enum verdict verdict;
};

/* Fills in what was measured, and the verdict: true where the claim holds, else half where it holds
   in part. Returns ok. */
bool conclude(struct measured *measured, bool ok, bool holds, bool partly, const char *format, ...)
    SB_PRINTF(5, 6);

struct claim {
    const char *says;
    bool (*measure)(struct measured *measured); /* false when it cannot be computed */
};

/* The claims of each file; an entry without a text ends a list. */
extern const struct claim claims_of_scores[], claims_of_masks[], claims_of_attention[],
    claims_of_cost[];

#endif
