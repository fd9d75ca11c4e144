/* Writing checkpoints, also of models that are cut over ranks. */
#include "models/training/checkpoint_save.h"
#include "models/description_parts.h"
#include "models/training/checkpoint.h"
#include "models/training/fingerprint.h"
#include "models/training/metadata.h"
#include "nn/lora_layer.h"
#include "nn/optimiser_parts.h"
#include "nn/parts.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/safetensors_codec.h"
#include "tensor/safetensors_source.h"
#include <string.h>

int checkpoint_state(const sb_trainer *trainer, sb_named_tensor item[STATE_TENSORS])
{
    int n = 0;
    sb_optimiser *optimiser = sb_trainer_optimiser(trainer);
    if (sb_optimiser_moment(optimiser, 0))
        item[n++] = (sb_named_tensor){"optimiser.moment.0", sb_optimiser_moment(optimiser, 0)};
    if (sb_optimiser_moment(optimiser, 1))
        item[n++] = (sb_named_tensor){"optimiser.moment.1", sb_optimiser_moment(optimiser, 1)};
    if (sb_trainer_average(trainer))
        item[n++] = (sb_named_tensor){"average", sb_average_values(sb_trainer_average(trainer))};
    return n;
}

/* The contents of a file: the parameters, and a training state if there is one. */
struct contents {
    sb_parameters *weights;
    int n, states;
    int64_t *number; /* of each of the n parameters in the set */
    sb_named_tensor state[STATE_TENSORS];
    sb_tensor *steps; /* one of these, which is not as long as the gradients; or NULL */
    struct source_item *items;
};

/* Lists the parameters: all, or the adapters. */
static bool checkpoint_list_parameters(struct contents *c, bool adapters)
{
    const int64_t count = sb_parameters_count(c->weights);
    c->number = memory_new((size_t)count * sizeof *c->number + 1);
    for (int64_t i = 0; c->number && i < count; i++)
        if (!adapters || lora_is_adapter(sb_parameters_name(c->weights, i)))
            c->number[c->n++] = i;
    return c->number || sb_fail("checkpoint: out of memory");
}

/* Lists what a training state adds. */
static bool checkpoint_list_states(struct contents *c, const sb_trainer *trainer)
{
    const sb_optimiser *optimiser = sb_trainer_optimiser(trainer);
    c->states = checkpoint_state(trainer, c->state);
    if (!optimiser_steps_differ(optimiser))
        return true;
    c->steps = optimiser_steps_new(optimiser);
    c->state[c->states++] = (sb_named_tensor){"optimiser.steps", c->steps};
    return c->steps != NULL;
}

static void checkpoint_list_items(struct contents *c)
{
    for (int i = 0; i < c->n; i++) {
        struct source_item *item = &c->items[i];
        *item = (struct source_item){.name = sb_parameters_name(c->weights, c->number[i]),
                                     .dtype = sb_parameters_dtype(c->weights)};
        item->rank = parameters_whole(c->weights, c->number[i], item->dim);
    }
    const int64_t all = sb_parameters_count(c->weights);
    for (int i = 0; i < c->states; i++) {
        const sb_tensor *t = c->state[i].tensor;
        const int64_t size = t == c->steps ? all : parts_size(c->weights, t, 0, all);
        c->items[c->n + i] = (struct source_item){
            .name = c->state[i].name, .dtype = t->dtype, .rank = 1, .dim = {size}};
    }
}

/* ---- the fingerprint ---- */

/* The position of this rank's part of a parameter: in `flat` it begins at element `offset`. In the
   tensor of the file, the whole parameter begins at element `base`. */
struct place {
    uint64_t key; /* the tensor's */
    const sb_tensor *flat;
    int64_t offset, base;
};

/* Adds the terms of this rank's part of parameter i. If all ranks hold the same, only the first
   one adds them. */
static bool checkpoint_add_part(const sb_parameters *weights, int64_t i, const struct place *p,
                                uint64_t *sum)
{
    enum { CHUNK = 2048 };
    uint64_t buffer[CHUNK];
    const struct part part = parameters_part(weights, i);
    const size_t width = sb_dtype_bytes(p->flat->dtype);
    if (!parameters_is_cut(weights, i) && sb_communicator_rank(parameters_ranks(weights)) > 0)
        return true;
    for (int64_t at = 0, n; at < part.rows * part.here; at += n) {
        const int64_t row = at / part.here, column = at % part.here;
        const char *data = (const char *)p->flat->data + (size_t)(p->offset + at) * width;
        n = part.here - column < CHUNK ? part.here - column : CHUNK;
        if (!p->flat->device->download(buffer, data, (size_t)n * width))
            return false;
        *sum += fingerprint_elements(p->key, p->flat->dtype,
                                     p->base + row * part.of + part.first + column, n, buffer);
    }
    return true;
}

/* Adds the terms of a state's tensor, which is as long as all gradients together. */
static bool checkpoint_add_state(const struct contents *c, uint64_t key, const sb_tensor *flat,
                                 uint64_t *sum)
{
    struct place place = {.key = key, .flat = flat};
    if (flat == c->steps) {
        if (sb_communicator_rank(parameters_ranks(c->weights)) == 0)
            *sum += fingerprint_elements(key, flat->dtype, 0, tensor_size(flat), flat->data);
        return true;
    }
    for (int64_t i = 0; i < sb_parameters_count(c->weights); i++) {
        const int64_t size = parts_size(c->weights, flat, i, 1);
        place.offset = parameters_offset(c->weights, flat, i);
        if (size > 0 && !checkpoint_add_part(c->weights, i, &place, sum))
            return false;
        place.base += size;
    }
    return true;
}

/* Parts of ranks are not joined: each rank adds up the terms of its own. */
static bool checkpoint_fingerprint_of(const struct contents *c, uint64_t *sum)
{
    sb_communicator *ranks = parameters_ranks(c->weights);
    *sum = 0;
    for (int i = 0; i < c->n + c->states; i++) {
        const struct source_item *item = &c->items[i];
        const struct fingerprint_tensor t =
            fingerprint_tensor(item->name, codec_of(item->dtype)->name, item->rank, item->dim);
        const struct place place = {
            .key = t.key, .flat = i < c->n ? sb_parameters_get(c->weights, c->number[i]) : NULL};
        *sum += sb_communicator_rank(ranks) == 0 ? t.term : 0;
        if (place.flat ? !checkpoint_add_part(c->weights, c->number[i], &place, sum)
                       : !checkpoint_add_state(c, t.key, c->state[i - c->n].tensor, sum))
            return false;
    }
    return fingerprint_sum(ranks, sum);
}

/* ---- the file ---- */

/* The whole tensor of an item, joined if ranks hold parts of it. */
static sb_tensor *checkpoint_fetch(void *context, int i)
{
    const struct contents *c = context;
    const sb_parameters *w = c->weights;
    const sb_tensor *state = i < c->n ? NULL : c->state[i - c->n].tensor;
    if (state)
        return parameters_ranks(w) && state != c->steps
                   ? parts_join(w, state, 0, sb_parameters_count(w))
                   : sb_tensor_retain((sb_tensor *)(uintptr_t)state);
    const int64_t number = c->number[i];
    return parameters_is_cut(w, number) ? parts_join(w, parameters_values(w), number, 1)
                                        : sb_tensor_retain(sb_parameters_get(w, number));
}

/* Whether a file has these tensors and is of the same kind; the settings may differ, as those of a
   resumed run. */
static bool checkpoint_is_written(const char *path, const struct metadata *d)
{
    struct metadata its;
    if (!file_exists(path) || !metadata_of_file(path, &its))
        return false;
    const bool same = its.fingerprint == d->fingerprint && its.has_best == d->has_best &&
                      its.has_state == d->has_state;
    metadata_free(&its);
    return same;
}

/* Ranks that hold parts go through the items together, and the first writes them. */
static bool checkpoint_write_contents(const char *path, struct contents *c, bool is_new,
                                      struct metadata *d)
{
    sb_communicator *ranks = parameters_ranks(c->weights);
    struct source source = {c->n + c->states, c->items, checkpoint_fetch, c, false};
    path = sb_communicator_rank(ranks) == 0 ? path : NULL;
    checkpoint_list_items(c);
    if ((ranks && !parameters_flatten(c->weights)) ||
        !checkpoint_fingerprint_of(c, &d->fingerprint))
        return false;
    char *text = metadata_write(d);
    const char *const metadata[][2] = {{"softback", text}};
    source.is_new = path && is_new && !checkpoint_is_written(path, d);
    const bool ok = text && source_save(path, &source, 1, metadata);
    memory_free(text);
    return ok;
}

static bool checkpoint_write(const char *path, const sb_model *model,
                             const struct checkpoint_contents *w, struct metadata *d)
{
    struct contents c = {.weights = model->weights};
    bool ok = checkpoint_list_parameters(&c, d->adapters) &&
              (!w->trainer || checkpoint_list_states(&c, w->trainer));
    c.items = ok ? memory_new((size_t)(c.n + c.states) * sizeof *c.items + 1) : NULL;
    ok = ok && (c.items || sb_fail("checkpoint: out of memory")) &&
         checkpoint_write_contents(path, &c, w->is_new, d);
    memory_free(c.items);
    memory_free(c.number);
    sb_tensor_release(c.steps);
    return ok;
}

/* ---- the metadata ---- */

/* Adds what else describes the model: vocabularies, labels, and values that are not settings. */
static bool checkpoint_add_model(sb_description *d, const sb_description *own)
{
    sb_vocabulary *vocabulary;
    const char *name;
    bool ok = true;
    for (int64_t i = 0; ok && (name = sb_description_name(own, i)); i++)
        ok = sb_description_get(d, name) ||
             sb_description_set(d, name, sb_description_value(own, i));
    for (int64_t i = 0; ok && (name = description_vocabulary_at(own, i, &vocabulary)); i++)
        ok = sb_description_add_vocabulary(d, name, vocabulary);
    for (int64_t i = 0; ok && sb_description_label(own, i); i++)
        ok = sb_description_add_label(d, sb_description_label(own, i));
    return ok;
}

/* All settings of the kind, as they were given, and the rest of the model; NULL: a failure. */
static sb_description *checkpoint_describe(const struct settings *settings, const sb_model *model)
{
    sb_description *own = sb_model_describe(model);
    if (!own || !settings)
        return own;
    sb_description *d = sb_description_new(model->kind->name);
    const bool ok = d && settings_write(settings, model->kind, d) && checkpoint_add_model(d, own);
    sb_description_free(own);
    if (ok)
        return d;
    sb_description_free(d);
    return NULL;
}

bool checkpoint_save(const char *path, const sb_model *model, const struct checkpoint_contents *w,
                     uint64_t *fingerprint)
{
    struct metadata d = {.model = checkpoint_describe(w->settings, model),
                         .task = (char *)(uintptr_t)(w->task ? w->task : ""),
                         .has_best = w->best,
                         .has_state = w->trainer != NULL,
                         .has_base = w->settings && w->settings->tuning.lora > 0};
    if (d.has_best)
        d.best = (struct best_model){w->progress->best_step, w->progress->data_hash};
    if (d.has_state) {
        d.state = sb_trainer_save(w->trainer);
        d.progress = *w->progress;
    }
    if (w->settings)
        d.base = w->settings->tuning.base;
    d.adapters = d.has_base && !d.has_state; /* alone */
    const bool ok = d.model && checkpoint_write(path, model, w, &d);
    sb_description_free(d.model);
    if (ok && fingerprint)
        *fingerprint = d.fingerprint;
    return ok;
}
