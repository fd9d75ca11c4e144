/* Reading checkpoints, resuming from them, and averages of them. */
#include "models/training/checkpoint.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/seq2seq_kind.h"
#include "models/training/checkpoint_read.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

static bool checkpoint_build(struct checkpoint *c, const struct model_tensors *tensors,
                             const sb_model_kind *kind, const struct metadata *d)
{
    c->has_state = d->has_state;
    c->progress = d->progress;
    c->state = d->state;
    c->task = memory_text(d->task);
    if (!c->task)
        return sb_fail("checkpoint: out of memory");
    if (!settings_read(&c->settings, d->model))
        return false;
    c->settings.tuning.base = d->base;
    c->settings.model.transformer.ranks = sb_description_ranks(d->model);
    c->weights = sb_parameters_of(checkpoint_dtype(tensors->file), c->settings.trainer.seed);
    if (!c->weights || !checkpoint_read_model(&c->subject, tensors, kind, c->weights, d))
        return false;
    c->model = c->subject.kind == &seq2seq_kind ? c->subject.self : NULL;
    return true;
}

bool metadata_of_file(const char *path, struct metadata *d)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return false;
    uint64_t fingerprint = 0;
    bool ok = checkpoint_read_metadata(file, d);
    if (ok && !checkpoint_fingerprint(file, d, &fingerprint)) {
        metadata_free(d);
        ok = false;
    }
    d->fingerprint = fingerprint;
    sb_safetensors_close(file);
    return ok || sb_fail("%s: %s", path, sb_error());
}

static struct checkpoint *make_checkpoint(const struct model_tensors *tensors,
                                          const sb_model_kind *kind, const struct metadata *d)
{
    struct checkpoint *c = memory_new(sizeof *c);
    if (!c)
        return sb_fail("checkpoint: out of memory");
    if (checkpoint_build(c, tensors, kind, d))
        return c;
    checkpoint_free(c);
    return NULL;
}

static struct checkpoint *read_checkpoint(const struct model_tensors *tensors,
                                          const sb_model_kind *kind, sb_communicator *ranks)
{
    struct metadata d;
    if (!checkpoint_read_metadata(tensors->file, &d))
        return NULL;
    sb_description_set_ranks(d.model, ranks);
    struct checkpoint *c = make_checkpoint(tensors, kind, &d);
    metadata_free(&d);
    return c;
}

struct checkpoint *checkpoint_load_kind(const char *path, const sb_model_kind *kind,
                                        sb_communicator *ranks)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return NULL;
    const struct model_tensors tensors = {.file = file};
    struct checkpoint *c = read_checkpoint(&tensors, kind, ranks);
    sb_safetensors_close(file);
    return c ? c : sb_fail("%s: %s", path, sb_error());
}

static bool checkpoint_is_readable(const sb_safetensors *file, const char *path)
{
    struct metadata d;
    if (!checkpoint_read_metadata(file, &d))
        return sb_fail("%s: %s", path, sb_error());
    metadata_free(&d);
    return true;
}

struct checkpoint *checkpoint_load_adapted(const char *path, const char *base,
                                           const sb_model_kind *kind)
{
    if (!base)
        return checkpoint_load_kind(path, kind, NULL);
    sb_safetensors *own = sb_safetensors_open(path), *its = own ? sb_safetensors_open(base) : NULL;
    const struct model_tensors tensors = {.file = own, .base = its};
    const bool readable = its && checkpoint_is_readable(its, base);
    struct checkpoint *c = readable ? read_checkpoint(&tensors, kind, NULL) : NULL;
    if (readable && !c)
        sb_fail("%s: %s", path, sb_error());
    sb_safetensors_close(own);
    sb_safetensors_close(its);
    return c;
}

/* Replaces the settings of the training in a description, and with them the adapters. */
static bool checkpoint_begin_training(sb_description *d, const struct settings *training)
{
    struct settings copy = *training; /* not const, as a setting can be written to */
    const sb_model_kind *kind = sb_model_kind_find(sb_description_kind(d));
    for (int i = 0; kind && setting_name(i); i++) {
        const struct setting s = setting_at(&copy, i);
        if (s.group == SETTING_OF_TRAINING && model_has_setting(kind, s.name) &&
            !sb_description_set(d, s.name, setting_read(&s).text))
            return false;
    }
    return kind != NULL;
}

/* As read_checkpoint, for another training. */
static struct checkpoint *begin_checkpoint(const struct model_tensors *tensors,
                                           const struct settings *training, sb_communicator *ranks)
{
    struct metadata d;
    struct checkpoint *c = NULL;
    uint64_t fingerprint;
    if (!checkpoint_read_metadata(tensors->file, &d))
        return NULL;
    if (d.has_base)
        sb_fail("checkpoint: it has LoRA adapters; join them with their model first: softback "
                "merge");
    else if (checkpoint_begin_training(d.model, training) &&
             checkpoint_fingerprint(tensors->file, &d, &fingerprint)) {
        sb_description_set_ranks(d.model, ranks);
        d.has_state = false;
        d.base = fingerprint;
        c = make_checkpoint(tensors, NULL, &d);
    }
    metadata_free(&d);
    return c;
}

struct checkpoint *checkpoint_load_from(const char *path, const struct settings *training,
                                        sb_communicator *ranks)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return NULL;
    const struct model_tensors tensors = {.file = file, .new_adapters = true};
    struct checkpoint *c = begin_checkpoint(&tensors, training, ranks);
    sb_safetensors_close(file);
    return c ? c : sb_fail("%s: %s", path, sb_error());
}

struct checkpoint *checkpoint_load(const char *path)
{
    return checkpoint_load_kind(path, &seq2seq_kind, NULL);
}

struct checkpoint *checkpoint_load_part(const char *path, sb_communicator *ranks)
{
    return checkpoint_load_kind(path, &seq2seq_kind, ranks);
}

struct checkpoint *checkpoint_load_any(const char *path)
{
    return checkpoint_load_kind(path, NULL, NULL);
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    sb_model_free(&checkpoint->subject);
    sb_parameters_free(checkpoint->weights);
    memory_free(checkpoint->task);
    memory_free(checkpoint);
}

bool checkpoint_resume(const struct checkpoint *c, const char *path, sb_trainer *trainer)
{
    if (!c->has_state)
        return sb_fail("checkpoint: %s has a model, but no training state", path);
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = file && checkpoint_read_training(file, trainer, &c->state);
    sb_safetensors_close(file);
    return ok;
}

/* ---- averages ---- */

static bool checkpoint_is_of_training(const char *name)
{
    struct settings any;
    const int i = setting_find(name);
    return i >= 0 && setting_at(&any, i).group != SETTING_OF_MODEL;
}

/* Whether the models of two descriptions have the same architecture and vocabularies. */
static bool checkpoint_same_described(const sb_description *a, const sb_description *b)
{
    const char *name;
    bool same = description_same_words(a, b);
    for (int64_t i = 0; same && (name = sb_description_name(a, i)); i++) {
        const char *value = sb_description_get(b, name);
        same = checkpoint_is_of_training(name) ||
               (value && strcmp(value, sb_description_value(a, i)) == 0);
    }
    return same;
}

static bool checkpoint_check_same_model(const sb_model *first, const sb_model *model,
                                        const char *path)
{
    sb_description *a = sb_model_describe(first), *b = sb_model_describe(model);
    const bool same = a && b && first->kind == model->kind && checkpoint_same_described(a, b) &&
                      sb_parameters_dtype(first->weights) == sb_parameters_dtype(model->weights);
    if (a && b && !same)
        sb_fail("average: %s differs from the first in architecture, vocabulary or dtype", path);
    sb_description_free(a);
    sb_description_free(b);
    return same;
}

/* mean += (one - mean) / count */
static bool checkpoint_add_to_mean(const struct checkpoint *into, const struct checkpoint *c,
                                   int count)
{
    if (!parameters_flatten(c->weights))
        return false;
    sb_tensor *mean = parameters_values(into->weights), *one = parameters_values(c->weights);
    enum { CHUNK = 2048 };
    double x[CHUNK], y[CHUNK];
    bool ok = true;
    for (int64_t start = 0, n, size = tensor_size(mean); ok && start < size; start += n) {
        n = size - start < CHUNK ? size - start : CHUNK;
        ok = tensor_read_part(mean, start, n, x) && tensor_read_part(one, start, n, y);
        for (int64_t i = 0; ok && i < n; i++)
            x[i] += (y[i] - x[i]) / count;
        ok = ok && tensor_write_part(mean, start, n, x);
    }
    return ok;
}

bool checkpoint_average(struct checkpoint *into, int n, const char *const paths[])
{
    if (!parameters_flatten(into->weights))
        return false;
    for (int i = 0; i < n; i++) {
        struct checkpoint *c = checkpoint_load_kind(paths[i], into->subject.kind, NULL);
        bool ok = c && checkpoint_check_same_model(&into->subject, &c->subject, paths[i]);
        ok = ok && checkpoint_add_to_mean(into, c, i + 2);
        checkpoint_free(c);
        if (!ok)
            return false;
    }
    return true;
}
