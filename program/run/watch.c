/* The diagnosis that a run with --report logs at each evaluation, on a few short held-out texts. */
#include "models/training/diagnosis.h"
#include "program/run/log.h"
#include "program/run/training.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

enum { MOST_BYTES = 60 };

void *training_fail_watch(void)
{
    return sb_fail("--report: no held-out text is short enough to draw");
}

int64_t training_short_pairs(const struct training *t, int64_t most, int64_t index[])
{
    int64_t n = 0;
    for (int64_t i = 0; i < sb_pairs_count(t->held) && n < most; i++) {
        const size_t source = strlen(sb_pairs_source(t->held, i)),
                     target = strlen(sb_pairs_target(t->held, i));
        if (source > 0 && source <= MOST_BYTES && target <= MOST_BYTES)
            index[n++] = i;
    }
    return n;
}

char *training_short_source(const struct training *t)
{
    int64_t index;
    if (training_short_pairs(t, 1, &index) == 0)
        return training_fail_watch();
    char *text = memory_text(sb_pairs_source(t->held, index));
    return text ? text : sb_fail("out of memory");
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
