#include "models/training/replay.h"
#include "models/data/batch_parts.h"
#include "nn/flat.h"
#include "nn/optimiser_parts.h"
#include "nn/rounded_parameters.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>
#include <string.h>

enum { MOST_GRAPHS = 64 }; /* later shapes are executed eagerly */

struct shape {
    int rank;
    sb_dtype dtype;
    int64_t dim[SB_MAX_RANK];
};

/* All that forward and backward of a batch depend on, except its values. */
struct form {
    int parts;
    struct shape shape[SB_BATCH_PARTS];
    sb_partition partition;
    bool mean, adds;
};

/* A form, and the graph that was recorded when it occurred for the second time. */
struct recording {
    struct form form;
    bool tried;
    struct plugin_graph *graph;
    sb_batch batch; /* whose tensors the graph reads; its partition is the form's */
    const void *loss;
    uint64_t position, draws; /* of the random stream when it was recorded; how many it draws */
    bool *has_gradient;       /* of each parameter, afterwards */
    bool updates;             /* the optimiser's step is part of it, by this plan: */
    struct optimiser_plan plan;
};

struct replay {
    const sb_device *device;
    sb_model model;
    sb_optimiser *optimiser; /* or NULL; then its numbers, and what its step has found: */
    sb_tensor *numbers, *outcome;
    struct optimiser_plan plan;
    double rate;
    int64_t layout; /* of the gradients that the graphs write */
    int count;
    struct recording recording[MOST_GRAPHS];
    int64_t graphs, launches;
};

struct replay *replay_new(const sb_model *model, sb_optimiser *optimiser)
{
    const sb_device *device = sb_device_in_use();
    struct replay *r = device->graphs ? memory_new(sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->device = device;
    r->model = *model;
    r->optimiser = optimiser;
    const int64_t numbers = OPTIMISER_NUMBERS * ADAM_NUMBERS / (int64_t)sizeof(double);
    r->numbers = sb_tensor_zeros(SB_F64, SB_SHAPE(numbers));
    r->outcome = sb_tensor_zeros(SB_F64, SB_SHAPE(UPDATE_OUTCOME));
    if (r->numbers && r->outcome)
        return r;
    failure_settled(); /* eager execution will do */
    replay_free(r);
    return NULL;
}

/* Keeps the form alone, as when it had occurred once. */
static void replay_drop(const struct replay *r, struct recording *n)
{
    r->device->graphs->free(n->graph);
    batch_release(&n->batch);
    memory_free(n->has_gradient);
    optimiser_plan_free(&n->plan);
    *n = (struct recording){.form = n->form};
}

static void replay_forget(struct replay *r)
{
    for (int i = 0; i < r->count; i++)
        replay_drop(r, &r->recording[i]);
    r->count = 0;
}

void replay_free(struct replay *r)
{
    if (r) {
        replay_forget(r);
        sb_tensor_release(r->numbers);
        sb_tensor_release(r->outcome);
        optimiser_plan_free(&r->plan);
    }
    memory_free(r);
}

static bool replay_any_gradient(const sb_parameters *set)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        if (sb_tensor_grad(sb_parameters_get(set, i)))
            return true;
    return false;
}

static struct shape replay_shape_of(const sb_tensor *t)
{
    struct shape shape = {.rank = t->rank, .dtype = t->dtype};
    for (int i = 0; i < t->rank; i++)
        shape.dim[i] = t->dim[i];
    return shape;
}

static struct form replay_form_of(const sb_batch *batch, bool mean, bool adds)
{
    struct form form = {.parts = batch->parts, .mean = mean, .adds = adds};
    if (batch->partition)
        form.partition = *batch->partition;
    for (int i = 0; i < batch->parts; i++)
        form.shape[i] = replay_shape_of(batch->part[i].t);
    return form;
}

static bool replay_same_form(const struct form *a, const struct form *b)
{
    bool same = a->parts == b->parts && a->mean == b->mean && a->adds == b->adds &&
                memcmp(&a->partition, &b->partition, sizeof a->partition) == 0;
    for (int i = 0; same && i < a->parts; i++) {
        const struct shape *p = &a->shape[i], *q = &b->shape[i];
        same = p->dtype == q->dtype && shape_equal(p->rank, p->dim, q->rank, q->dim);
    }
    return same;
}

/* The entry for a batch's form; NULL when there is none yet, or no room for one. */
static struct recording *replay_find(struct replay *r, const sb_batch *batch, bool mean)
{
    const int64_t layout = parameters_layout(r->model.weights);
    if (layout != r->layout) /* others are frozen now */
        replay_forget(r);
    r->layout = layout;
    const bool adds = replay_any_gradient(r->model.weights);
    const struct form wanted = replay_form_of(batch, mean, adds);
    for (int i = 0; i < r->count; i++)
        if (replay_same_form(&r->recording[i].form, &wanted))
            return &r->recording[i];
    if (r->count == MOST_GRAPHS)
        return NULL;
    r->recording[r->count++] = (struct recording){.form = wanted};
    return NULL; /* it occurs for the first time */
}

static bool replay_copy_batch(struct recording *n, const sb_batch *batch, const sb_device *device)
{
    for (int i = 0; i < batch->parts; i++) {
        const sb_tensor *to = n->batch.part[i].t, *from = batch->part[i].t;
        if (!device->copy(to->data, from->data, tensor_bytes(to)))
            return false;
    }
    return true;
}

/* Queues the optimiser's step, if it can be part of the graph. */
static bool replay_queue_update(struct replay *r, struct recording *n)
{
    struct optimiser_numbers numbers;
    n->updates = r->optimiser && n->form.mean && !n->form.adds &&
                 optimiser_plan_step(r->optimiser, &n->plan, &numbers);
    return !n->updates || optimiser_queue_step(r->optimiser, &n->plan, n->loss, r->numbers->data,
                                               r->outcome->data);
}

/* Queues a step's forward and backward, and its update, which the device records. */
static bool replay_queue(struct replay *r, struct recording *n, sb_random *random)
{
    sb_context context = {.partition = n->batch.partition};
    sb_tape tape;
    rounded_parameters_begin(r->model.weights, &tape, &context);
    sb_tape_random(&tape, random);
    sb_tensor *loss =
        r->model.kind->loss(r->model.self, &n->batch, n->form.mean ? SB_LOSS_MEAN : SB_LOSS_SUM);
    n->loss = loss ? loss->data : NULL;
    bool ok =
        loss && sb_tensor_dtype(loss) == SB_F32 && sb_backward(loss) && replay_queue_update(r, n);
    return sb_tape_end(&tape) && ok;
}

/* Swaps has_gradient with the parameters' flags. */
static void replay_exchange_gradients(struct replay *r, struct recording *n)
{
    const sb_parameters *set = r->model.weights;
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        sb_tensor *t = sb_parameters_get(set, i);
        const bool now = t->grad_current;
        t->grad_current = n->has_gradient[i];
        n->has_gradient[i] = now;
    }
}

/* Records the graph of a form, without changing the state of the host. */
static void replay_record(struct replay *r, struct recording *n, const sb_batch *batch,
                          sb_random random)
{
    const sb_parameters *set = r->model.weights;
    n->tried = true;
    n->position = random.position;
    n->has_gradient = memory_new((size_t)sb_parameters_count(set));
    if (!n->has_gradient || !batch_copy(&n->batch, batch, r->device))
        return;
    n->batch.partition = &n->form.partition;
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        n->has_gradient[i] = sb_parameters_get(set, i)->grad_current;
    r->device->private_memory(true);
    if (r->device->graphs->begin()) {
        const bool ok = replay_queue(r, n, &random);
        n->graph = r->device->graphs->end();
        if (!ok) {
            r->device->graphs->free(n->graph);
            n->graph = NULL;
        }
        replay_exchange_gradients(r, n);
    }
    r->device->private_memory(false);
    n->draws = random.position - n->position;
    r->graphs += n->graph != NULL;
}

static void replay_set_gradients(const struct replay *r, const bool *has_gradient)
{
    const sb_parameters *set = r->model.weights;
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        sb_parameters_get(set, i)->grad_current = has_gradient && has_gradient[i];
}

/* Uploads the numbers of the optimiser's step, for the gradients that the graph will leave; now
   there are none. If the plan of the step is not the graph's, the graph is dropped. */
static bool replay_prepare_update(struct replay *r, struct recording *n)
{
    struct optimiser_numbers numbers;
    char bytes[OPTIMISER_NUMBERS * ADAM_NUMBERS] = {0};
    const struct update_kernels *k = kernel_row(&update_rows, parameters_values(r->model.weights));
    replay_set_gradients(r, n->has_gradient);
    const bool same = k && optimiser_plan_step(r->optimiser, &r->plan, &numbers) &&
                      optimiser_same_plan(&r->plan, &n->plan);
    replay_set_gradients(r, NULL);
    for (int64_t i = 0; same && i < numbers.count; i++)
        k->adam_numbers(&numbers.step[i], bytes + i * ADAM_NUMBERS);
    r->rate = numbers.rate;
    if (same && r->device->upload(r->numbers->data, bytes, (size_t)numbers.count * ADAM_NUMBERS))
        return true;
    replay_drop(r, n);
    return false;
}

/* Reads the loss, and what the optimiser's step has found. */
static bool replay_read(struct replay *r, const struct recording *n, double *value)
{
    float loss;
    double outcome[UPDATE_OUTCOME];
    if (!n->updates) {
        const bool ok = r->device->download(&loss, n->loss, sizeof loss);
        *value = ok ? (double)loss : 0;
        return ok;
    }
    if (!r->device->download(outcome, r->outcome->data, sizeof outcome))
        return false;
    *value = outcome[0];
    if (isfinite(outcome[2]))
        optimiser_step_taken(r->optimiser, r->rate, outcome[1]);
    return true;
}

bool replay_run(struct replay *r, const sb_batch *batch, bool mean, sb_random *random,
                double *value)
{
    struct recording *n = r ? replay_find(r, batch, mean) : NULL;
    if (!n)
        return false;
    if (!n->tried)
        replay_record(r, n, batch, *random);
    if (!n->graph)
        failure_settled(); /* eager execution will do */
    if (!n->graph || (n->updates && !replay_prepare_update(r, n)) ||
        !replay_copy_batch(n, batch, r->device) ||
        !r->device->graphs->launch(n->graph, random->position - n->position) ||
        !replay_read(r, n, value))
        return false;
    replay_set_gradients(r, n->has_gradient);
    random->position += n->draws;
    r->launches++;
    return true;
}

int64_t replay_graphs(const struct replay *r)
{
    return r ? r->graphs : 0;
}

int64_t replay_launches(const struct replay *r)
{
    return r ? r->launches : 0;
}
