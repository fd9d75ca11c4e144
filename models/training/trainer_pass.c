#include "models/training/trainer_pass.h"
#include "models/data/batch_share.h"
#include "models/kinds.h"
#include "nn/clip.h"
#include "nn/flat.h"
#include "nn/rounded_parameters.h"
#include "nn/shares_run.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <math.h>

/* Names the operation that made a loss not finite; its data is still on the tape. */
static bool trainer_pass_find_nonfinite(const struct trainer_pass *pass)
{
    char *origin = sb_tape_find_nonfinite();
    const char *parameter = clip_bad_parameter(pass->model->weights);
    sb_fail("trainer: the loss is %g; the first value that is not finite is %s%s%s",
            isnan(pass->loss) ? (double)NAN : pass->loss, origin ? origin : "the loss itself",
            parameter ? "; so is one of the parameter " : "", parameter ? parameter : "");
    sb_free(origin);
    return false;
}

/* Operation by operation: all of the batch, or with replicas one of several shares, whose mean is
   over the targets of the whole batch. */
static bool trainer_pass_run_eagerly(struct trainer_pass *pass, bool shared,
                                     const struct replicas *replicas)
{
    const sb_model *model = pass->model;
    const sb_batch *batch = pass->batch;
    sb_context context = {.partition = batch->partition, .ring = pass->ring};
    sb_tape tape;
    if (shared)
        sb_tape_begin_with(&tape, SB_RECORD, &context);
    else
        rounded_parameters_begin(model->weights, &tape, &context);
    tape_use_replicas(replicas);
    sb_tape_random(&tape, &pass->random);
    const sb_loss loss_of = pass->mean && !shared ? SB_LOSS_MEAN : SB_LOSS_SUM;
    sb_tensor *loss = model->kind->loss(model->self, batch, loss_of);
    if (loss && pass->mean && shared)
        loss = sb_scale(loss, 1 / (double)batch->targets);
    pass->loss = loss ? sb_tensor_value(loss) : 0;
    const bool finite = loss && (isfinite(pass->loss) || trainer_pass_find_nonfinite(pass));
    const bool ok = finite && backward_heard(loss, pass->listener);
    return sb_tape_end(&tape) && ok;
}

/* A graph replay, if possible; false for a non-finite loss, which eager execution explains. */
static bool trainer_pass_replay(struct trainer_pass *pass, struct replay *replay)
{
    const sb_random before = pass->random;
    if (!replay_run(replay, pass->batch, pass->mean, &pass->random, &pass->loss))
        return false;
    if (isfinite(pass->loss))
        return true;
    pass->random = before;
    sb_parameters_clear(pass->model->weights);
    return false;
}

/* ---- shares ---- */

struct shared_pass {
    const struct trainer_pass *whole;
    struct trainer_pass share[MOST_SHARES];
};

static bool trainer_pass_run_share(void *shared_pass, int share, const struct replicas *replicas)
{
    struct shared_pass *s = shared_pass;
    struct trainer_pass *pass = &s->share[share];
    *pass = *s->whole;
    struct batch_share part;
    if (!batch_share_take(&part, s->whole->batch, share, (int)s->whole->shares))
        return false;
    pass->batch = &part.batch;
    pass->listener = NULL; /* gradients are complete when all shares are added */
    const bool ok = trainer_pass_run_eagerly(pass, true, replicas);
    batch_share_release(&part);
    return ok;
}

static bool trainer_pass_run_in_shares(struct trainer_pass *pass)
{
    struct shared_pass s = {.whole = pass};
    if (!shares_run(pass->model->weights, (int)pass->shares, trainer_pass_run_share, &s))
        return false;
    pass->random = s.share[pass->shares - 1].random;
    pass->loss = 0;
    for (int i = 0; i < pass->shares; i++)
        pass->loss += s.share[i].loss;
    return true;
}

bool trainer_pass_run(struct trainer_pass *pass, struct replay *replay)
{
    pass->shares = model_shares(pass->model, pass->batch, pass->shares);
    if (pass->shares > 1)
        return trainer_pass_run_in_shares(pass);
    return trainer_pass_replay(pass, replay) || trainer_pass_run_eagerly(pass, false, NULL);
}
