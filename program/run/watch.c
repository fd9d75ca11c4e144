/* The diagnosis that a run with --report logs at each evaluation, on a few short held-out texts. */
#include "models/training/diagnosis.h"
#include "program/run/log.h"
#include "program/run/training.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

void *training_fail_watch(void)
{
    return sb_fail("--report: no held-out text is short enough to draw");
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
