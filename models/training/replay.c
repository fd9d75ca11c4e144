#include "models/training/replay.h"
#include "models/data/batch_parts.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
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
};

struct replay {
    const sb_device *device;
    sb_model model;
    int64_t layout; /* of the gradients that the graphs write */
    int count;
    struct recording recording[MOST_GRAPHS];
    int64_t graphs, launches;
};

struct replay *replay_new(const sb_model *model)
{
    const sb_device *device = sb_device_in_use();
    struct replay *r = device->graphs ? memory_new(sizeof *r) : NULL;
    if (r) {
        r->device = device;
        r->model = *model;
    }
    return r;
}

static void replay_forget(struct replay *r)
{
    for (int i = 0; i < r->count; i++) {
        r->device->graphs->free(r->recording[i].graph);
        batch_release(&r->recording[i].batch);
        memory_free(r->recording[i].has_gradient);
    }
    r->count = 0;
}

void replay_free(struct replay *r)
{
    if (r)
        replay_forget(r);
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

static bool replay_keep_batch(struct recording *n, const sb_batch *batch, const sb_device *device)
{
    n->batch = *batch;
    n->batch.partition = &n->form.partition;
    for (int i = 0; i < batch->parts; i++)
        n->batch.part[i].t = sb_tensor_to(batch->part[i].t, device);
    return batch_is_whole(&n->batch);
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

/* Queues forward and backward, which the device records. */
static bool replay_queue(struct replay *r, struct recording *n, sb_random *random)
{
    const sb_context context = {.partition = n->batch.partition};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &context);
    sb_tape_random(&tape, random);
    sb_tensor *loss =
        r->model.kind->loss(r->model.self, &n->batch, n->form.mean ? SB_LOSS_MEAN : SB_LOSS_SUM);
    n->loss = loss ? loss->data : NULL;
    bool ok = loss && sb_tensor_dtype(loss) == SB_F32 && sb_backward(loss);
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
    if (!n->has_gradient || !replay_keep_batch(n, batch, r->device))
        return;
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
    float loss;
    if (!n->graph || !replay_copy_batch(n, batch, r->device) ||
        !r->device->graphs->launch(n->graph, random->position - n->position) ||
        !r->device->download(&loss, n->loss, sizeof loss))
        return false;
    const sb_parameters *set = r->model.weights;
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        sb_parameters_get(set, i)->grad_current = n->has_gradient[i];
    random->position += n->draws;
    r->launches++;
    *value = (double)loss;
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
