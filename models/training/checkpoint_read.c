#include "models/training/checkpoint_read.h"
#include "models/kinds.h"
#include "models/training/checkpoint_save.h"
#include "models/training/fingerprint.h"
#include "nn/lora_layer.h"
#include "nn/optimiser_parts.h"
#include "nn/parts.h"
#include "tensor/failure.h"
#include <string.h>

/* Reads `count` whole parameters from parameter `first` on, as a tensor of shape dim, and keeps
   this rank's part in a flat buffer. */
static bool read_part(const sb_safetensors *file, const char *name, const sb_parameters *weights,
                      int64_t first, int64_t count, int rank, const int64_t *dim, sb_tensor *flat)
{
    sb_tensor *whole = tensor_new("checkpoint", sb_device_cpu(), flat->dtype, rank, dim);
    const bool ok = whole && sb_safetensors_read(file, name, whole) &&
                    parts_take(weights, flat, first, count, whole);
    sb_tensor_release(whole);
    return ok;
}

/* The file that has a parameter; NULL: none. */
static const sb_safetensors *file_of(const struct model_tensors *t, const char *name)
{
    return sb_safetensors_find(t->file, name) >= 0              ? t->file
           : t->base && sb_safetensors_find(t->base, name) >= 0 ? t->base
                                                                : NULL;
}

static bool read_parameter(const struct model_tensors *tensors, const sb_parameters *weights,
                           int64_t i)
{
    int64_t dim[SB_MAX_RANK];
    const char *name = sb_parameters_name(weights, i);
    const sb_safetensors *file = file_of(tensors, name);
    if (!file) /* a new adapter, as the model was built */
        return true;
    if (!parameters_is_cut(weights, i))
        return sb_safetensors_read(file, name, sb_parameters_get(weights, i));
    const int rank = parameters_whole(weights, i, dim);
    return read_part(file, name, weights, i, 1, rank, dim, parameters_values(weights));
}

static bool read_parameters(const struct model_tensors *tensors, sb_parameters *weights)
{
    bool ok = !parameters_ranks(weights) || parameters_flatten(weights);
    for (int64_t i = 0; ok && i < sb_parameters_count(weights); i++)
        ok = read_parameter(tensors, weights, i);
    return ok;
}

/* A tensor of the training state. */
static bool read_state(const sb_safetensors *file, const sb_parameters *weights,
                       const sb_named_tensor *item)
{
    sb_tensor *flat = (sb_tensor *)(uintptr_t)item->tensor;
    const int64_t n = sb_parameters_count(weights), size = parts_size(weights, flat, 0, n);
    return parameters_ranks(weights) ? read_part(file, item->name, weights, 0, n, 1, &size, flat)
                                     : sb_safetensors_read(file, item->name, flat);
}

sb_dtype checkpoint_dtype(const sb_safetensors *file)
{
    const bool wide =
        sb_safetensors_count(file) > 0 && strcmp(sb_safetensors_dtype(file, 0), "F64") == 0;
    return wide ? SB_F64 : SB_F32;
}

/* Whether the file has this parameter. Its shapes match the size of the file, so settings of a huge
   model fail here, before memory is allocated for it. */
static bool checkpoint_read_file_has(const void *tensors_, const char *name, int rank,
                                     const int64_t *dim)
{
    const struct model_tensors *tensors = tensors_;
    const sb_safetensors *file = file_of(tensors, name);
    if (!file && tensors->new_adapters && lora_is_adapter(name))
        return true;
    if (!file)
        return sb_fail("checkpoint: its settings require \"%s\", which is missing", name);
    const int i = sb_safetensors_find(file, name);
    int its_rank = sb_safetensors_rank(file, i);
    const int64_t *its_dim = sb_safetensors_shape(file, i);
    return shape_equal(rank, dim, its_rank, its_dim) ||
           sb_fail("checkpoint: \"%s\" is %s; its settings require %s", name,
                   shape_text(its_rank, its_dim).text, shape_text(rank, dim).text);
}

bool checkpoint_is_unchanged(const sb_safetensors *file, const struct metadata *d)
{
    uint64_t fingerprint;
    if (!fingerprint_file(file, &fingerprint))
        return false;
    return fingerprint == d->fingerprint ||
           sb_fail("checkpoint: its tensors have the fingerprint %s, expected %s: the file was "
                   "changed after it was saved; use an unchanged copy",
                   fingerprint_text(fingerprint).text, fingerprint_text(d->fingerprint).text);
}

const sb_model_kind *checkpoint_kind(const struct metadata *d, const sb_model_kind *wanted)
{
    const char *name = sb_description_kind(d->model);
    if (!wanted)
        return sb_model_kind_find(name);
    if (strcmp(name, wanted->name) == 0)
        return wanted;
    return sb_fail("checkpoint: its model is of kind \"%s\", expected \"%s\"", name, wanted->name);
}

/* For kinds of the library, checks that this version knows all settings of a file, and prepares the
   adapters that they ask for. */
static bool checkpoint_read_take_settings(const struct metadata *d, const sb_model_kind *kind,
                                          sb_parameters *weights)
{
    struct settings settings;
    for (int i = 0; model_kind_at(i); i++)
        if (model_kind_at(i) == kind)
            return settings_read(&settings, d->model) &&
                   fine_tuning_prepare(&settings.tuning, weights);
    return true;
}

/* A file of adapters needs its base, and no other file has one. */
static bool checkpoint_check_base(const struct model_tensors *t, const struct metadata *d)
{
    uint64_t fingerprint;
    if (!t->base)
        return !d->adapters ||
               sb_fail(
                   "checkpoint: it has LoRA adapters alone, for the model with the fingerprint "
                   "%s; join both with softback merge, or give that model with --base to softback "
                   "translate, evaluate, generate or classify",
                   fingerprint_text(d->base).text);
    if (!d->adapters)
        return sb_fail("checkpoint: it is a whole model; --base is for files of LoRA adapters");
    if (!fingerprint_file(t->base, &fingerprint))
        return false;
    return fingerprint == d->base ||
           sb_fail(
               "checkpoint: its adapters are for the model with the fingerprint %s, but that of "
               "--base has %s",
               fingerprint_text(d->base).text, fingerprint_text(fingerprint).text);
}

bool checkpoint_read_model(sb_model *model, const struct model_tensors *tensors,
                           const sb_model_kind *kind, sb_parameters *weights,
                           const struct metadata *d)
{
    kind = checkpoint_kind(d, kind);
    if (!kind || !checkpoint_check_base(tensors, d) ||
        !checkpoint_read_take_settings(d, kind, weights))
        return false;
    parameters_restrict(weights, checkpoint_read_file_has, tensors);
    const bool built = sb_model_build(model, kind, weights, d->model);
    parameters_restrict(weights, NULL, NULL);
    if (built && checkpoint_is_unchanged(tensors->file, d) && read_parameters(tensors, weights))
        return true;
    if (built)
        sb_model_free(model);
    return false;
}

bool checkpoint_read_metadata(const sb_safetensors *file, struct metadata *d)
{
    const char *text = sb_safetensors_metadata(file, "softback");
    if (!text)
        return sb_fail("checkpoint: its metadata does not describe a model of softback");
    return metadata_read(text, d);
}

bool metadata_of_file(const char *path, struct metadata *d)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return false;
    bool ok = checkpoint_read_metadata(file, d);
    if (ok && !checkpoint_is_unchanged(file, d)) {
        metadata_free(d);
        ok = false;
    }
    sb_safetensors_close(file);
    return ok || sb_fail("%s: %s", path, sb_error());
}

/* The steps of parameters, where they differ. */
static bool read_steps(const sb_safetensors *file, sb_optimiser *optimiser)
{
    if (sb_safetensors_find(file, "optimiser.steps") < 0)
        return true;
    sb_tensor *steps = optimiser_steps_new(optimiser);
    const bool ok = steps && sb_safetensors_read(file, "optimiser.steps", steps) &&
                    optimiser_take_steps(optimiser, steps);
    sb_tensor_release(steps);
    return ok;
}

bool checkpoint_read_training(const sb_safetensors *file, sb_trainer *trainer,
                              const sb_trainer_state *state)
{
    sb_named_tensor item[STATE_TENSORS];
    int n = checkpoint_state(trainer, item);
    sb_parameters *weights = sb_trainer_subject(trainer)->weights;
    const struct model_tensors tensors = {.file = file};
    bool ok = read_parameters(&tensors, weights);
    for (int i = 0; ok && i < n; i++)
        ok = read_state(file, weights, &item[i]);
    return ok && sb_trainer_restore(trainer, state) &&
           read_steps(file, sb_trainer_optimiser(trainer));
}
