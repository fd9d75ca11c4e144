#include "models/training/replay.h"
#include "autograd/tape.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <string.h>

enum { MOST_GRAPHS = 64 }; /* shapes that come later go the plain way */

/* A shape, and what was noted when it came for the second time. */
struct noted {
    int64_t pairs, source, target; /* pairs, and the lengths that they are padded to */
    sb_partition partition;
    bool mean, adds;
    bool tried;
    struct plugin_graph *graph;
    sb_batch batch; /* whose tensors the graph reads */
    const void *loss;
    uint64_t position, draws; /* of the stream when it was noted; how many it takes */
    bool *has_gradient;       /* of each parameter, afterwards */
};

struct replay {
    const sb_device *device;
    sb_seq2seq *model;
    int count;
    struct noted noted[MOST_GRAPHS];
    int64_t graphs, launches;
};

struct replay *replay_new(sb_seq2seq *model)
{
    const sb_device *device = sb_device_in_use();
    struct replay *r = device->graphs ? memory_new(sizeof *r) : NULL;
    if (r) {
        r->device = device;
        r->model = model;
    }
    return r;
}

static void release(sb_batch *batch)
{
    sb_tensor_release(batch->source);
    sb_tensor_release(batch->source_lengths);
    sb_tensor_release(batch->target_in);
    sb_tensor_release(batch->target_out);
    sb_tensor_release(batch->target_lengths);
    *batch = (sb_batch){0};
}

void replay_free(struct replay *r)
{
    for (int i = 0; r && i < r->count; i++) {
        r->device->graphs->free(r->noted[i].graph);
        release(&r->noted[i].batch);
        memory_free(r->noted[i].has_gradient);
    }
    memory_free(r);
}

static bool any_gradient(const sb_parameters *set)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        if (sb_grad(sb_parameters_get(set, i)))
            return true;
    return false;
}

/* The entry for a batch's shape, made where there is none; NULL when there is no room. */
static struct noted *find(struct replay *r, const sb_batch *batch, const sb_partition *partition,
                          bool mean)
{
    const struct noted wanted = {.pairs = batch->pairs,
                                 .source = sb_tensor_dim(batch->source, 1),
                                 .target = sb_tensor_dim(batch->target_in, 1),
                                 .partition = partition ? *partition : (sb_partition){.items = {0}},
                                 .mean = mean,
                                 .adds = any_gradient(sb_seq2seq_parameters(r->model))};
    for (int i = 0; i < r->count; i++) {
        struct noted *n = &r->noted[i];
        if (n->pairs == wanted.pairs && n->source == wanted.source && n->target == wanted.target &&
            n->mean == wanted.mean && n->adds == wanted.adds &&
            memcmp(&n->partition, &wanted.partition, sizeof wanted.partition) == 0)
            return n;
    }
    if (r->count == MOST_GRAPHS)
        return NULL;
    r->noted[r->count++] = wanted;
    return NULL; /* it came for the first time */
}

static bool keep_batch(struct noted *n, const sb_batch *batch, const sb_device *device)
{
    n->batch = (sb_batch){.pairs = batch->pairs,
                          .targets = batch->targets,
                          .source = sb_tensor_to(batch->source, device),
                          .source_lengths = sb_tensor_to(batch->source_lengths, device),
                          .target_in = sb_tensor_to(batch->target_in, device),
                          .target_out = sb_tensor_to(batch->target_out, device),
                          .target_lengths = sb_tensor_to(batch->target_lengths, device)};
    return n->batch.source && n->batch.source_lengths && n->batch.target_in &&
           n->batch.target_out && n->batch.target_lengths;
}

static bool copy_batch(struct noted *n, const sb_batch *batch, const sb_device *device)
{
    sb_tensor *const to[] = {n->batch.source, n->batch.source_lengths, n->batch.target_in,
                             n->batch.target_out, n->batch.target_lengths};
    sb_tensor *const from[] = {batch->source, batch->source_lengths, batch->target_in,
                               batch->target_out, batch->target_lengths};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (!device->copy(to[i]->data, from[i]->data, tensor_bytes(to[i])))
            return false;
    return true;
}

/* Queues forward and backward, which are noted. */
static bool queue(struct replay *r, struct noted *n, sb_random *random)
{
    const sb_context context = {.partition = &n->partition};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &context);
    sb_tape_random(&tape, random);
    sb_tensor *loss =
        n->mean ? sb_seq2seq_loss(r->model, &n->batch) : sb_seq2seq_loss_sum(r->model, &n->batch);
    n->loss = loss ? loss->data : NULL;
    bool ok = loss && sb_tensor_dtype(loss) == SB_F32 && sb_backward(loss);
    return sb_tape_end(&tape) && ok;
}

/* Exchanges which parameters have a gradient for what has_gradient says. */
static void exchange_gradients(struct replay *r, struct noted *n)
{
    const sb_parameters *set = sb_seq2seq_parameters(r->model);
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        sb_tensor *t = sb_parameters_get(set, i);
        const bool now = t->grad_current;
        t->grad_current = n->has_gradient[i];
        n->has_gradient[i] = now;
    }
}

/* Makes the graph of a shape; the host is left as it was. */
static void note(struct replay *r, struct noted *n, const sb_batch *batch, sb_random random)
{
    const sb_parameters *set = sb_seq2seq_parameters(r->model);
    n->tried = true;
    n->position = random.position;
    n->has_gradient = memory_new((size_t)sb_parameters_count(set));
    if (!n->has_gradient || !keep_batch(n, batch, r->device))
        return;
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        n->has_gradient[i] = sb_parameters_get(set, i)->grad_current;
    r->device->private_memory(true);
    if (r->device->graphs->begin()) {
        const bool ok = queue(r, n, &random);
        n->graph = r->device->graphs->end();
        if (!ok) {
            r->device->graphs->free(n->graph);
            n->graph = NULL;
        }
        exchange_gradients(r, n);
    }
    r->device->private_memory(false);
    n->draws = random.position - n->position;
    r->graphs += n->graph != NULL;
}

bool replay_learn(struct replay *r, const sb_batch *batch, const sb_partition *partition, bool mean,
                  sb_random *random, double *value)
{
    struct noted *n = r ? find(r, batch, partition, mean) : NULL;
    if (!n)
        return false;
    if (!n->tried)
        note(r, n, batch, *random);
    if (!n->graph)
        failure_settled(); /* the plain way will do */
    float loss;
    if (!n->graph || !copy_batch(n, batch, r->device) ||
        !r->device->graphs->launch(n->graph, random->position - n->position) ||
        !r->device->download(&loss, n->loss, sizeof loss))
        return false;
    const sb_parameters *set = sb_seq2seq_parameters(r->model);
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
