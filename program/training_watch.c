/* The diagnosis that a run with --report logs at each evaluation, on a few short held-out pairs. */
#include "models/training/diagnosis.h"
#include "program/log.h"
#include "program/training.h"
#include <string.h>

enum { WATCHED = 8, MOST_BYTES = 60 };

int64_t training_short_pair(const struct training *t, int64_t from)
{
    for (int64_t i = from; i < sb_pairs_count(t->held); i++) {
        const size_t source = strlen(sb_pairs_source(t->held, i)),
                     target = strlen(sb_pairs_target(t->held, i));
        if (source > 0 && source <= MOST_BYTES && target <= MOST_BYTES)
            return i;
    }
    return -1;
}

static bool training_encode(const struct training *t, int64_t index, sb_encoded_pair *pair)
{
    pair->source = sb_vocabulary_encode(sb_data_source(t->data), sb_pairs_source(t->held, index),
                                        &pair->source_length, NULL);
    pair->target = sb_vocabulary_encode(sb_data_target(t->data), sb_pairs_target(t->held, index),
                                        &pair->target_length, NULL);
    return pair->source && pair->target;
}

bool training_watch(struct training *t)
{
    sb_encoded_pair pairs[WATCHED] = {{0}};
    int64_t n = 0;
    bool ok = true;
    for (int64_t i = 0; ok && n < WATCHED && (i = training_short_pair(t, i)) >= 0; i++)
        ok = training_encode(t, i, &pairs[n++]);
    if (ok && n > 0)
        t->watched = sb_batch_new(n, pairs);
    else if (ok)
        sb_fail("--report: no held-out pair is short enough to draw");
    for (int64_t i = 0; i < n; i++) {
        sb_free((void *)(uintptr_t)pairs[i].source);
        sb_free((void *)(uintptr_t)pairs[i].target);
    }
    return t->watched != NULL;
}

bool training_diagnose(struct training *t)
{
    struct diagnosis diagnosis;
    if (!diagnosis_make(&diagnosis, &t->subject, t->watched))
        return false;
    const bool ok = log_diagnosis(t->log, sb_trainer_steps(t->trainer), &diagnosis);
    diagnosis_free(&diagnosis);
    return ok;
}
