#include "models/training/checkpoint_read.h"
#include "models/kinds.h"
#include "models/training/checkpoint_save.h"
#include "models/training/fingerprint.h"
#include "nn/parts.h"
#include "tensor/failure.h"
#include <stdio.h>
#include <string.h>

/* A file and its format. */
struct stored {
    const sb_safetensors *file;
    int format;
};

struct stored_name {
    char text[256];
};

/* The name of a parameter in a file: in format 1, gate and up have each other's. */
static struct stored_name read_name(const struct stored *s, const char *name)
{
    static const char *const halves[] = {".gate.weight", ".up.weight", ".gate.bias", ".up.bias"};
    const size_t length = strlen(name);
    struct stored_name own, other;
    snprintf(own.text, sizeof own.text, "%s", name);
    for (int i = 0; s->format < 2 && i < 4; i++) {
        const size_t end = strlen(halves[i]);
        if (length < end || strcmp(name + length - end, halves[i]) != 0)
            continue;
        snprintf(other.text, sizeof other.text, "%.*s%s", (int)(length - end), name, halves[i ^ 1]);
        return sb_safetensors_find(s->file, other.text) >= 0 ? other : own;
    }
    return own;
}

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

static bool read_parameter(const struct stored *s, const sb_parameters *weights, int64_t i)
{
    int64_t dim[SB_MAX_RANK];
    const struct stored_name name = read_name(s, sb_parameters_name(weights, i));
    if (!parameters_is_cut(weights, i))
        return sb_safetensors_read(s->file, name.text, sb_parameters_get(weights, i));
    const int rank = parameters_whole(weights, i, dim);
    return read_part(s->file, name.text, weights, i, 1, rank, dim, parameters_values(weights));
}

static bool read_parameters(const struct stored *s, sb_parameters *weights)
{
    bool ok = !parameters_ranks(weights) || parameters_flatten(weights);
    for (int64_t i = 0; ok && i < sb_parameters_count(weights); i++)
        ok = read_parameter(s, weights, i);
    return ok;
}

/* A tensor of the training state. */
static bool read_state(const sb_safetensors *file, const sb_parameters *weights,
                       const sb_named_tensor *item)
{
    sb_tensor *flat = (sb_tensor *)(uintptr_t)item->tensor;
    const int64_t n = sb_parameters_count(weights), size = parts_size(weights, 0, n);
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
static bool checkpoint_read_file_has(const void *stored, const char *name, int rank,
                                     const int64_t *dim)
{
    const struct stored *s = stored;
    const int i = sb_safetensors_find(s->file, read_name(s, name).text);
    if (i < 0)
        return sb_fail("checkpoint: its settings require \"%s\", which is missing", name);
    int its_rank = sb_safetensors_rank(s->file, i);
    const int64_t *its_dim = sb_safetensors_shape(s->file, i);
    return shape_equal(rank, dim, its_rank, its_dim) ||
           sb_fail("checkpoint: \"%s\" is %s; its settings require %s", name,
                   shape_text(its_rank, its_dim).text, shape_text(rank, dim).text);
}

bool checkpoint_fingerprint(const sb_safetensors *file, const struct metadata *d,
                            uint64_t *fingerprint)
{
    if (!fingerprint_file(file, fingerprint))
        return false;
    if (!d->has_fingerprint || *fingerprint == d->fingerprint)
        return true;
    return sb_fail("checkpoint: its tensors have the fingerprint %s, expected %s: the file was "
                   "changed after it was saved; use an unchanged copy",
                   fingerprint_text(*fingerprint).text, fingerprint_text(d->fingerprint).text);
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

/* Checks that this version knows all settings of a file, for kinds of the library. */
static bool checkpoint_read_check_settings(const struct metadata *d, const sb_model_kind *kind)
{
    struct settings settings;
    for (int i = 0; model_kind_at(i); i++)
        if (model_kind_at(i) == kind)
            return settings_read(&settings, d->model);
    return true;
}

bool checkpoint_read_model(sb_model *model, const sb_safetensors *file, const sb_model_kind *kind,
                           sb_parameters *weights, const struct metadata *d)
{
    kind = checkpoint_kind(d, kind);
    if (!kind || !checkpoint_read_check_settings(d, kind))
        return false;
    const struct stored stored = {file, d->format};
    parameters_restrict(weights, checkpoint_read_file_has, &stored);
    const bool built = sb_model_build(model, kind, weights, d->model);
    parameters_restrict(weights, NULL, NULL);
    uint64_t fingerprint;
    if (built && (!d->has_fingerprint || checkpoint_fingerprint(file, d, &fingerprint)) &&
        read_parameters(&stored, weights))
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

bool checkpoint_read_training(const sb_safetensors *file, int format, sb_trainer *trainer,
                              const sb_trainer_state *state)
{
    const struct stored stored = {file, format};
    sb_named_tensor item[STATE_TENSORS];
    int n = checkpoint_state(trainer, item);
    sb_parameters *weights = sb_trainer_subject(trainer)->weights;
    bool ok = read_parameters(&stored, weights);
    for (int i = 0; ok && i < n; i++)
        ok = read_state(file, weights, &item[i]);
    return ok && sb_trainer_restore(trainer, state);
}
