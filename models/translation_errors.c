#include "models/translation_errors.h"
#include "models/text/metrics.h"
#include "tensor/device.h"
#include "tensor/error.h"
#include "tensor/memory.h"
#include <stdlib.h>
#include <string.h>

static int worst_first(const void *a_, const void *b_)
{
    const struct translation_error *a = a_, *b = b_;
    if (a->distance != b->distance)
        return a->distance > b->distance ? -1 : 1;
    return a->pair < b->pair ? -1 : a->pair > b->pair;
}

/* In symbols; -1 after a failure. */
static int64_t distance_of(const sb_vocabulary *vocabulary, const char *a, const char *b)
{
    int64_t n, m, distance = -1;
    int32_t *x = sb_vocabulary_encode(vocabulary, a, &n, NULL);
    int32_t *y = x ? sb_vocabulary_encode(vocabulary, b, &m, NULL) : NULL;
    if (y)
        distance = sb_edit_distance(x, n, y, m);
    sb_free(x);
    sb_free(y);
    return distance;
}

struct translation_error *translation_errors(const sb_vocabulary *vocabulary, const sb_pairs *pairs,
                                             char *const outputs[], int64_t n, int64_t *wrong)
{
    struct translation_error *found = memory_new((size_t)(n + 1) * sizeof *found);
    bool ok = found || sb_fail("out of memory for %lld outputs", (long long)n);
    *wrong = 0;
    for (int64_t i = 0; ok && i < n; i++) {
        const char *expected = sb_pairs_target(pairs, i);
        if (strcmp(outputs[i], expected) == 0)
            continue;
        found[*wrong] =
            (struct translation_error){i, distance_of(vocabulary, outputs[i], expected)};
        ok = found[(*wrong)++].distance >= 0;
    }
    if (ok) {
        qsort(found, (size_t)*wrong, sizeof *found, worst_first);
        return found;
    }
    memory_free(found);
    return NULL;
}
