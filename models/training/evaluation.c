#include "models/training/evaluation.h"
#include "autograd/tape.h"
#include "models/data/batch_parts.h"
#include "models/kinds.h"
#include "models/text_model.h"
#include "nn/shares_run.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>

/* A batch, of which threads compute shares as in training. */
struct scored_batch {
    const sb_model *model;
    const sb_batch *batch;
    int shares;
    double cost[MOST_SHARES];
};

static bool evaluation_cost(void *scored_batch, int64_t i)
{
    struct scored_batch *s = scored_batch;
    struct batch_share share;
    const bool taken =
        batch_share_take(&share, s->batch, (int)i, s->shares) && batch_share_trim(&share);
    const sb_context context = {.partition = &share.place};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &context);
    sb_tensor *loss =
        taken ? s->model->kind->loss(s->model->self, &share.batch, SB_LOSS_COST) : NULL;
    s->cost[i] = loss ? sb_tensor_value(loss) : 0;
    const bool ok = sb_tape_end(&tape) && loss;
    batch_share_release(&share);
    return ok;
}

static bool evaluation_add_cost(const sb_model *model, const sb_batch *batch, double *sum)
{
    struct scored_batch s = {model, batch, model_shares(model, batch, 0), {0}};
    const bool ok = threads_each(s.shares, false, evaluation_cost, &s);
    for (int i = 0; i < s.shares; i++)
        *sum += s.cost[i];
    return ok;
}

/* Goes to the beginning of an epoch; returns its number of batches. 0: a failure, after which the
   source has its old position. */
static int64_t evaluation_begin(const sb_source *source)
{
    const sb_data_position before = source->tell(source->object);
    if (!source->seek(source->object, (sb_data_position){0, 0}))
        return 0;
    const int64_t batches = source->batches ? source->batches(source->object) : 0;
    if (batches == 0 && source->seek(source->object, before))
        sb_fail("evaluate: the epochs of this source never end; use a source of pairs");
    return batches;
}

/* The costs of this rank's batches, each in its place, and zeros in the places of the others'. */
static bool evaluation_add_costs(sb_communicator *c, const sb_model *model, const sb_source *source,
                                 int64_t batches, double *cost, int64_t *targets)
{
    const int rank = sb_communicator_rank(c), ranks = sb_communicator_size(c);
    for (int64_t b = 0; b < batches; b++) {
        const sb_batch *batch = source->next(source->object);
        if (!batch || !batch_check(batch, false) ||
            (b % ranks == rank && !evaluation_add_cost(model, batch, &cost[b])))
            return false;
        *targets += batch->targets;
    }
    return true;
}

/* The costs are added in the order of batches, so that the sum has the same bits for any ranks. */
static double evaluation_epoch_loss(sb_communicator *c, const sb_model *model,
                                    const sb_source *source)
{
    double sum = 0;
    int64_t targets = 0;
    const int64_t batches = evaluation_begin(source);
    if (batches == 0)
        return NAN;
    double *cost = memory_new((size_t)batches * sizeof *cost);
    const bool ok = (cost || sb_fail("evaluate: out of memory")) &&
                    evaluation_add_costs(c, model, source, batches, cost, &targets) &&
                    sb_communicator_sum(c, SB_F64, batches, cost);
    for (int64_t b = 0; ok && b < batches; b++)
        sum += cost[b];
    memory_free(cost);
    if (ok && isfinite(sum))
        return sum / (double)targets;
    if (ok)
        sb_fail("evaluate: the loss is not finite");
    return NAN;
}

bool sb_evaluate(const sb_model *model, const sb_source *source, const void *held,
                 sb_communicator *ranks, sb_evaluation *evaluation)
{
    if (!model || !source || !evaluation)
        return fail_null("evaluate", !model ? "model" : source ? "evaluation" : "source");
    if (!model->kind || !source->next)
        return sb_fail("evaluate: the %s; expected a model that was built, and a source",
                       model->kind ? "source has no function next" : "model has no kind");
    if (!text_model_fits("evaluate", model, source))
        return false;
    *evaluation = (sb_evaluation){.loss = evaluation_epoch_loss(ranks, model, source),
                                  .error = NAN,
                                  .unit_error = NAN,
                                  .bleu = NAN};
    if (isnan(evaluation->loss))
        return false;
    return !held || !model->kind->score || model->kind->score(model->self, held, ranks, evaluation);
}

double sb_evaluate_loss(const sb_seq2seq *model, sb_data *data)
{
    if (!model || !data) {
        fail_null("evaluate", model ? "data" : "model");
        return NAN;
    }
    const sb_model subject = sb_seq2seq_as_model((sb_seq2seq *)(uintptr_t)model);
    const sb_source source = sb_data_as_source(data);
    return text_model_fits("evaluate", &subject, &source)
               ? evaluation_epoch_loss(NULL, &subject, &source)
               : NAN;
}
