#include "models/training/trainer.h"
#include "autograd/node.h"
#include "autograd/watch.h"
#include "models/data/batch_parts.h"
#include "models/data/data_source.h"
#include "models/kinds.h"
#include "models/model.h"
#include "models/text_model.h"
#include "models/training/replay.h"
#include "nn/flat.h"
#include "nn/optimiser_parts.h"
#include "nn/rounded_parameters.h"
#include "nn/shared_gradients.h"
#include "nn/shares_run.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

struct sb_trainer {
    sb_trainer_options options;
    sb_model model;
    sb_source source;
    sb_optimiser *optimiser;
    sb_average *average;
    struct replay *replay;           /* NULL: none */
    struct shared_gradients *shared; /* NULL: this rank is alone */
    sb_communicator *ring;           /* for sequence parallelism; NULL: not yet, or none */
    sb_random random;
    const sb_batch *batch;
    int64_t steps, skipped_in_a_row;
    bool lost; /* a step failed, and the source must go back to `position` before the next one */
    sb_data_position position;
};

/* ---- forward and backward of one batch: as a graph that is replayed, in shares, or operation by
   operation ---- */

/* A forward and backward pass over all items of a batch, or this rank's. */
struct trainer_pass {
    sb_trainer *trainer;
    const sb_batch *batch;
    bool mean; /* of the loss, or its sum */
    int shares;
    const struct listener *listener; /* hears of gradients as they become complete; NULL: none */
    double *loss;                    /* the result */
};

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
static bool trainer_pass_run_eagerly(const struct trainer_pass *pass)
{
    sb_trainer *t = pass->trainer;
    sb_context context = {.partition = pass->batch->partition, .ring = t->ring};
    sb_tape tape;
    rounded_parameters_begin(t->model.weights, &tape, &context);
    sb_tape_random(&tape, &t->random);
    sb_tensor *loss = trainer_pass_loss(&t->model, pass->batch,
                                        pass->mean ? SB_LOSS_MEAN : SB_LOSS_SUM, pass->loss);
    const bool ok = loss && backward_heard(loss, pass->listener);
    return sb_tape_end(&tape) && ok;
}

/* A graph replay, if possible; false for a non-finite loss, which eager execution explains. */
static bool trainer_pass_replay(const struct trainer_pass *pass)
{
    sb_trainer *t = pass->trainer;
    const sb_random before = t->random;
    if (!replay_run(t->replay, pass->batch, pass->mean, &t->random, pass->loss))
        return false;
    if (isfinite(*pass->loss))
        return true;
    t->random = before;
    sb_parameters_clear(t->model.weights);
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
        !batch_share_take(share, pass->batch, i, pass->shares) || !batch_share_trim(share))
        return NULL;
    *place = share->place;
    sb_tensor *loss = trainer_pass_loss(&pass->trainer->model, &share->batch, SB_LOSS_SUM, value);
    const double factor = pass->mean ? 1 / (double)pass->batch->targets : 1;
    *value *= factor;
    return loss && pass->mean ? sb_scale(loss, factor) : loss;
}

/* Adds to the gradients of the model's weights. `last`: of the batches that make a step. */
static bool trainer_run(sb_trainer *t, const sb_batch *batch, bool mean, bool last, double *loss)
{
    const int64_t wanted = t->options.sequence_ranks > 1 ? 1 : t->options.shares;
    struct trainer_pass pass = {.trainer = t,
                                .batch = batch,
                                .mean = mean,
                                .shares = model_shares(&t->model, batch, wanted),
                                .listener = last ? shared_gradients_listener(t->shared) : NULL,
                                .loss = loss};
    if (pass.shares > 1)
        return shares_run(t->model.weights, pass.shares, &t->random, trainer_pass_share_loss, &pass,
                          loss);
    return trainer_pass_replay(&pass) || trainer_pass_run_eagerly(&pass);
}

/* ---- the trainer ---- */

/* Over how many ranks the heads and hidden units of a model are cut. */
static int trainer_head_ranks(const sb_model *model)
{
    return sb_communicator_size(parameters_ranks(model->weights));
}

static bool trainer_check_split(const sb_model *model, int ranks, const char *what)
{
    return ranks == 1 || model_splits(model->kind, what) ||
           sb_fail("trainer: a model of kind \"%s\" cannot be cut over ranks by %s",
                   model->kind->name, what);
}

static bool trainer_check(const sb_trainer_options *o, const sb_model *model)
{
    if (o->accumulate < 1 || o->accumulate > 1 << 20)
        return sb_fail("trainer: accumulate is %lld; it must be in 1..%d", (long long)o->accumulate,
                       1 << 20);
    if (o->shares < 0 || o->shares > MOST_SHARES)
        return sb_fail("trainer: shares is %lld; it must be in 0..%d", (long long)o->shares,
                       MOST_SHARES);
    if ((unsigned)o->optimiser_kind > SB_OPTIMISER_SGD)
        return sb_fail("trainer: there is no optimiser_kind %d", (int)o->optimiser_kind);
    const int ranks = sb_communicator_size(o->communicator);
    if (o->sequence_ranks < 1 || ranks % o->sequence_ranks != 0)
        return sb_fail("trainer: sequence_ranks is %d, not a divisor of %d ranks; start with "
                       "mpirun -n %d",
                       o->sequence_ranks, ranks, o->sequence_ranks);
    if (!trainer_check_split(model, ranks / o->sequence_ranks, "batch") ||
        !trainer_check_split(model, o->sequence_ranks, "sequence"))
        return false;
    if (o->sequence_ranks > 1 && trainer_head_ranks(model) > 1)
        return sb_fail("trainer: sequence and tensor parallelism cannot be combined; use one");
    return true;
}

static bool trainer_build(sb_trainer *t)
{
    sb_parameters *weights = t->model.weights;
    const sb_optimiser_options *o = &t->options.optimiser;
    t->optimiser = t->options.optimiser_kind == SB_OPTIMISER_SGD     ? sb_sgd_new(weights, o)
                   : t->options.optimiser_kind == SB_OPTIMISER_ADAMW ? sb_adamw_new(weights, o)
                                                                     : sb_adam_new(weights, o);
    if (t->optimiser && t->options.average_decay != 0)
        t->average = sb_average_new(weights, t->options.average_decay);
    const bool alone = sb_communicator_size(t->options.communicator) == 1;
    const bool waits = trainer_head_ranks(&t->model) > 1 || t->options.sequence_ranks > 1;
    if (t->optimiser && t->options.graphs == SB_GRAPHS_AUTO && !waits)
        t->replay = replay_new(&t->model, alone ? t->optimiser : NULL);
    if (t->optimiser && !alone)
        t->shared = shared_gradients_new(t->options.communicator, weights);
    return t->optimiser && (t->average || t->options.average_decay == 0) && (t->shared || alone);
}

/* Checks for functions and weights that a trainer needs. */
static bool trainer_is_usable(const sb_model *model, const sb_source *source)
{
    const char *missing = !model->kind || !model->kind->loss                ? "loss"
                          : !model->weights                                 ? "weights"
                          : !source->next || !source->tell || !source->seek ? "source"
                                                                            : NULL;
    return !missing || fail_null("trainer", missing);
}

sb_trainer *sb_trainer_for(const sb_model *model, const sb_source *source,
                           const sb_trainer_options *options)
{
    if (!model || !source)
        return fail_null("trainer", model ? "source" : "model");
    if (!trainer_is_usable(model, source) || !text_model_fits("trainer", model, source))
        return NULL;
    sb_trainer_options o = options ? *options : (sb_trainer_options){0};
    o.accumulate = o.accumulate ? o.accumulate : 1;
    o.sequence_ranks = o.sequence_ranks ? o.sequence_ranks : 1;
    if (!trainer_check(&o, model))
        return NULL;
    sb_trainer *t = memory_new(sizeof *t);
    if (!t)
        return sb_fail("trainer: out of memory");
    *t = (sb_trainer){.options = o, .model = *model, .source = *source};
    t->random = sb_random_new(o.seed, SB_STREAM_TRAIN);
    if (trainer_build(t))
        return t;
    sb_trainer_free(t);
    return NULL;
}

void sb_trainer_free(sb_trainer *trainer)
{
    if (!trainer)
        return;
    replay_free(trainer->replay);
    shared_gradients_free(trainer->shared);
    sb_communicator_close(trainer->ring);
    sb_average_free(trainer->average);
    sb_optimiser_free(trainer->optimiser);
    memory_free(trainer);
}

/* Sums the loss over ranks, and moves the stream of dropout as on the last rank, whose share is
   never empty. */
static bool trainer_sum_loss(sb_trainer *t, uint64_t position, double *value)
{
    sb_communicator *c = t->options.communicator;
    const bool last = sb_communicator_rank(c) == sb_communicator_size(c) - 1;
    double sum[2] = {*value, last ? (double)(t->random.position - position) : 0};
    const bool ok = sb_communicator_sum(c, SB_F64, 2, sum);
    *value = sum[0];
    t->random.position = position + (uint64_t)sum[1];
    return ok;
}

/* This rank's share of the batch. */
static bool trainer_run_share(sb_trainer *t, bool last, const char **without, double *value)
{
    sb_communicator *c = t->options.communicator;
    const uint64_t position = t->random.position;
    struct batch_share share;
    const int cut = t->options.sequence_ranks, rank = sb_communicator_rank(c);
    if (!batch_share_take(&share, t->batch, rank / cut, sb_communicator_size(c) / cut))
        return false;
    const bool taken =
        cut == 1 ? batch_share_trim(&share) : batch_share_cut(&share, rank % cut, cut);
    const bool ok =
        taken && (share.batch.items == 0 || trainer_run(t, &share.batch, false, last, value));
    batch_share_release(&share);
    return ok && (!last || shared_gradients_finish(t->shared, t->steps == 0 ? without : NULL)) &&
           trainer_sum_loss(t, position, value);
}

/* Forward and backward of one batch: adds to the gradients, and to the sums. */
static bool trainer_run_batch(sb_trainer *t, bool mean, bool last, sb_trained *trained)
{
    t->batch = t->source.next(t->source.object);
    if (!t->batch || !batch_check(t->batch, t->options.sequence_ranks > 1))
        return false;
    double value = 0;
    const bool ok = t->shared ? trainer_run_share(t, last, &trained->without_gradient, &value)
                              : trainer_run(t, t->batch, mean, last, &value);
    trained->loss += mean ? value * (double)t->batch->targets : value;
    trained->targets += t->batch->targets;
    return ok;
}

enum { MOST_SKIPPED = 10 }; /* steps in a row */
static bool trainer_update(sb_trainer *t, double factor, sb_trained *trained)
{
    int64_t first = 0;
    if (t->steps == 0 && !t->shared)
        trained->without_gradient = sb_parameters_without_gradient(t->model.weights, &first);
    if (sb_optimiser_step_scaled(t->optimiser, factor)) {
        t->skipped_in_a_row = 0;
        return !t->average || sb_average_update(t->average);
    }
    if (isfinite(sb_optimiser_norm(t->optimiser)))
        return false;
    if (t->skipped_in_a_row + 1 == MOST_SKIPPED)
        return sb_fail("trainer: %d steps in a row were skipped; %s", MOST_SKIPPED, sb_error());
    t->skipped_in_a_row++;
    trained->skipped = true;
    return true;
}

/* The ring is opened at the first step, when all ranks are known to be ready. */
static bool trainer_open_ring(sb_trainer *t)
{
    sb_communicator *c = t->options.communicator;
    const int cut = t->options.sequence_ranks, rank = sb_communicator_rank(c);
    if (cut > 1 && !t->ring)
        t->ring = sb_communicator_split(c, rank / cut, rank);
    return t->ring || cut == 1;
}

/* Bytes that this rank has sent so far, for gradients and within the model. */
static int64_t trainer_sent_by(const sb_trainer *t)
{
    return sb_communicator_sent(t->options.communicator) +
           sb_communicator_sent(parameters_ranks(t->model.weights));
}

static bool trainer_stops(const sb_trainer *t, int64_t batches, sb_trained *trained)
{
    const sb_trainer_options *o = &t->options;
    trained->stopped = o->stop && o->stop(o->stop_context);
    if (trained->stopped)
        sb_fail("trainer: the step was given up after %lld of %lld batches", (long long)batches,
                (long long)o->accumulate);
    return trained->stopped;
}

static bool trainer_step(sb_trainer *t, sb_trained *trained)
{
    if (!trainer_open_ring(t))
        return false;
    const int64_t batches = t->options.accumulate;
    const double waited = shared_gradients_seconds(t->shared);
    const int64_t sent = trainer_sent_by(t);
    const bool mean = batches == 1 && !t->shared;
    if (t->shared && !shared_gradients_begin(t->shared))
        return false;
    for (int64_t i = 0; i < batches; i++)
        if ((i > 0 && trainer_stops(t, i, trained)) ||
            !trainer_run_batch(t, mean, i == batches - 1, trained))
            return false;
    const double targets = (double)trained->targets;
    trained->loss /= targets;
    trained->waited = shared_gradients_seconds(t->shared) - waited;
    const bool ok = trainer_update(t, mean ? 1 : 1 / targets, trained);
    trained->sent = trainer_sent_by(t) - sent;
    return ok;
}

/* Moves the source back to the beginning of the step. */
static bool trainer_go_back(sb_trainer *t)
{
    t->lost = !t->source.seek(t->source.object, t->position);
    return !t->lost;
}

bool sb_trainer_step(sb_trainer *t, sb_trained *trained)
{
    if (!t || !trained)
        return fail_null("trainer_step", t ? "trained" : "trainer");
    *trained = (sb_trained){0};
    if (!parameters_may_change("trainer_step", t->model.weights))
        return false;
    if (t->lost && !trainer_go_back(t))
        return false;
    t->position = t->source.tell(t->source.object);
    const sb_random random = t->random;
    if (!trainer_step(t, trained)) { /* restore the state before it */
        sb_parameters_clear(t->model.weights);
        trainer_go_back(t);
        t->random = random;
        return false;
    }
    t->steps++;
    trained->rate = sb_optimiser_rate(t->optimiser);
    trained->norm = sb_optimiser_norm(t->optimiser);
    return true;
}

const sb_batch *sb_trainer_batch(const sb_trainer *trainer)
{
    return trainer ? trainer->batch : NULL;
}

const sb_model *sb_trainer_subject(const sb_trainer *trainer)
{
    return trainer ? &trainer->model : NULL;
}

const sb_source *sb_trainer_source(const sb_trainer *trainer)
{
    return trainer ? &trainer->source : NULL;
}

sb_optimiser *sb_trainer_optimiser(const sb_trainer *trainer)
{
    return trainer ? trainer->optimiser : NULL;
}

sb_average *sb_trainer_average(const sb_trainer *trainer)
{
    return trainer ? trainer->average : NULL;
}

int64_t sb_trainer_steps(const sb_trainer *trainer)
{
    return trainer ? trainer->steps : 0;
}

sb_trainer_state sb_trainer_save(const sb_trainer *t)
{
    if (!t)
        return (sb_trainer_state){0};
    return (sb_trainer_state){.steps = t->steps,
                              .skipped_in_a_row = t->skipped_in_a_row,
                              .updates = sb_optimiser_steps(t->optimiser),
                              .average_updates = sb_average_updates(t->average),
                              .random_position = t->random.position,
                              .data = t->lost ? t->position : t->source.tell(t->source.object),
                              .plateau = sb_optimiser_plateau(t->optimiser)};
}

static bool trainer_in_range(const char *what, int64_t value, int64_t most)
{
    return (value >= 0 && value <= most) ||
           sb_fail("trainer_restore: %s is %lld; it must be in 0..%lld", what, (long long)value,
                   (long long)most);
}

static bool trainer_check_state(const sb_trainer_state *s)
{
    const int64_t most = (int64_t)1 << 53;
    return trainer_in_range("steps", s->steps, most) &&
           trainer_in_range("updates", s->updates, s->steps) &&
           trainer_in_range("average_updates", s->average_updates, s->updates) &&
           trainer_in_range("skipped_in_a_row", s->skipped_in_a_row, MOST_SKIPPED - 1) &&
           trainer_in_range("plateau.seen", s->plateau.seen, most) &&
           trainer_in_range("plateau.waited", s->plateau.waited, 1 << 20) &&
           trainer_in_range("plateau.reduced", s->plateau.reduced, 1 << 20);
}

bool sb_trainer_restore(sb_trainer *t, const sb_trainer_state *state)
{
    if (!t || !state)
        return fail_null("trainer_restore", t ? "state" : "trainer");
    if (!trainer_check_state(state))
        return false;
    if (!t->source.seek(t->source.object, state->data))
        return false;
    t->lost = false;
    t->steps = state->steps;
    t->skipped_in_a_row = state->skipped_in_a_row;
    t->random.position = state->random_position;
    t->batch = NULL;
    sb_optimiser_restore(t->optimiser, state->updates, state->plateau);
    sb_average_restore(t->average, state->average_updates);
    return true;
}

/* ---- the trainer of encoder-decoders on sentence pairs ---- */

sb_trainer *sb_trainer_new(sb_seq2seq *model, sb_data *data, const sb_trainer_options *options)
{
    if (!model || !data)
        return fail_null("trainer", model ? "data" : "model");
    const sb_model subject = sb_seq2seq_as_model(model);
    const sb_source source = sb_data_as_source(data);
    return sb_trainer_for(&subject, &source, options);
}

sb_seq2seq *sb_trainer_model(const sb_trainer *trainer)
{
    const sb_model *model = sb_trainer_subject(trainer);
    return model && model->kind == &seq2seq_kind ? model->self : NULL;
}

sb_data *sb_trainer_data(const sb_trainer *trainer)
{
    return trainer ? data_of_source(sb_trainer_source(trainer)) : NULL;
}
