/* Opening checkpoints, and resuming from them. */
#include "models/training/checkpoint.h"
#include "models/kinds.h"
#include "models/training/checkpoint_read.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

static bool checkpoint_build(struct checkpoint *c, const struct model_tensors *tensors,
                             const sb_model_kind *kind, const struct metadata *d)
{
    c->has_state = d->has_state;
    c->progress = d->progress;
    c->state = d->state;
    c->fingerprint = d->fingerprint;
    c->task = memory_text(d->task);
    if (!c->task)
        return sb_fail("checkpoint: out of memory");
    if (!settings_read(&c->settings, d->model))
        return false;
    c->settings.tuning.base = d->base;
    c->settings.model.transformer.ranks = sb_description_ranks(d->model);
    c->weights = sb_parameters_of(checkpoint_dtype(tensors->file), c->settings.trainer.seed);
    return c->weights && checkpoint_read_model(&c->subject, tensors, kind, c->weights, d);
}

/* Replaces the settings of the training in a description, and with them the adapters. */
static bool checkpoint_replace_training(sb_description *d, const struct settings *training)
{
    const sb_model_kind *kind = sb_model_kind_find(sb_description_kind(d));
    for (int i = 0; kind && setting_name(i); i++) {
        const struct field s = setting_at(i);
        if (s.group == FIELD_OF_TRAINING && model_has_setting(kind, s.name) &&
            !sb_description_set(d, s.name, field_read(&s, training).text))
            return false;
    }
    return kind != NULL;
}

/* The model of a file becomes the beginning of another training. */
static bool checkpoint_begin_training(struct metadata *d, const struct settings *training)
{
    if (d->has_base)
        return sb_fail("checkpoint: it has LoRA adapters; join them with their model first: "
                       "softback merge");
    d->has_state = false;
    d->base = d->fingerprint;
    return checkpoint_replace_training(d->model, training);
}

static struct checkpoint *checkpoint_make(const struct model_tensors *tensors,
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

static struct checkpoint *checkpoint_read(const struct model_tensors *tensors,
                                          const struct checkpoint_options *o)
{
    struct metadata d;
    if (!checkpoint_read_metadata(tensors->file, &d))
        return NULL;
    sb_description_set_ranks(d.model, o->ranks);
    struct checkpoint *c = !o->training || checkpoint_begin_training(&d, o->training)
                               ? checkpoint_make(tensors, o->kind, &d)
                               : NULL;
    metadata_free(&d);
    return c;
}

static bool checkpoint_is_readable(const sb_safetensors *file, const char *path)
{
    struct metadata d;
    if (!checkpoint_read_metadata(file, &d))
        return sb_fail("%s: %s", path, sb_error());
    metadata_free(&d);
    return true;
}

struct checkpoint *checkpoint_open(const char *path, const struct checkpoint_options *options)
{
    const struct checkpoint_options o = options ? *options : (struct checkpoint_options){0};
    sb_safetensors *file = sb_safetensors_open(path),
                   *base = file && o.base ? sb_safetensors_open(o.base) : NULL;
    const struct model_tensors tensors = {file, base, o.training != NULL};
    const bool opened = file && (!o.base || (base && checkpoint_is_readable(base, o.base)));
    struct checkpoint *c = opened ? checkpoint_read(&tensors, &o) : NULL;
    if (opened && !c)
        sb_fail("%s: %s", path, sb_error());
    sb_safetensors_close(file);
    sb_safetensors_close(base);
    return c;
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

uint64_t checkpoint_source_hash(const sb_source *source)
{
    return source->hash ? source->hash(source->object) >> 1 : 0; /* JSON's integers are signed */
}
