#include "models/training/trainer_pass.h"
#include "autograd/node.h"
#include "models/data/batch_share.h"
#include "models/kinds.h"
#include "nn/clip.h"
#include "nn/flat.h"
#include "nn/rounded_parameters.h"
#include "nn/shares_run.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

/* Names the operation that made a loss not finite; its data is still on the tape. */
static bool trainer_pass_find_nonfinite(const sb_model *model, double loss)
{
    char *origin = sb_tape_find_nonfinite();
    const char *parameter = clip_bad_parameter(model->weights);
    sb_fail("trainer: the loss is %g; the first value that is not finite is %s%s%s",
            isnan(loss) ? (double)NAN : loss, origin ? origin : "the loss itself",
            parameter ? "; so is one of the parameter " : "", parameter ? parameter : "");
    sb_free(origin);
    return false;
}

/* NULL, but with its value, unless it is finite. */
static sb_tensor *trainer_pass_loss(const sb_model *model, const sb_batch *batch, sb_loss loss_of,
                                    double *value)
{
    sb_tensor *loss = model->kind->loss(model->self, batch, loss_of);
    *value = loss ? sb_tensor_value(loss) : 0;
    return isfinite(*value) || trainer_pass_find_nonfinite(model, *value) ? loss : NULL;
}

/* Operation by operation. */
static bool trainer_pass_run_eagerly(struct trainer_pass *pass)
{
    const sb_model *model = pass->model;
    const sb_batch *batch = pass->batch;
    sb_context context = {.partition = batch->partition, .ring = pass->ring};
    sb_tape tape;
    rounded_parameters_begin(model->weights, &tape, &context);
    sb_tape_random(&tape, &pass->random);
    sb_tensor *loss =
        trainer_pass_loss(model, batch, pass->mean ? SB_LOSS_MEAN : SB_LOSS_SUM, &pass->loss);
    const bool ok = loss && backward_heard(loss, pass->listener);
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

static void trainer_pass_free_share(void *share)
{
    batch_share_release(share);
    memory_free(share);
}

/* The loss of a share; its mean is over the targets of the whole batch. */
static sb_tensor *trainer_pass_share_loss(void *trainer_pass, int i, sb_partition *place,
                                          double *value)
{
    const struct trainer_pass *pass = trainer_pass;
    struct batch_share *share = memory_new(sizeof *share);
    if (!share)
        return sb_fail("trainer: out of memory");
    if (!tape_own_object(share, trainer_pass_free_share, "trainer") ||
        !batch_share_take(share, pass->batch, i, (int)pass->shares) || !batch_share_trim(share))
        return NULL;
    *place = share->place;
    sb_tensor *loss = trainer_pass_loss(pass->model, &share->batch, SB_LOSS_SUM, value);
    const double factor = pass->mean ? 1 / (double)pass->batch->targets : 1;
    *value *= factor;
    return loss && pass->mean ? sb_scale(loss, factor) : loss;
}

bool trainer_pass_run(struct trainer_pass *pass, struct replay *replay)
{
    pass->shares = model_shares(pass->model, pass->batch, pass->shares);
    if (pass->shares > 1)
        return shares_run(pass->model->weights, (int)pass->shares, &pass->random,
                          trainer_pass_share_loss, pass, &pass->loss);
    return trainer_pass_replay(pass, replay) || trainer_pass_run_eagerly(pass);
}
