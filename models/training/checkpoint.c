/* Reading checkpoints, resuming from them, and averages of them. */
#include "models/training/checkpoint.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/seq2seq_kind.h"
#include "models/training/checkpoint_json.h"
#include "models/training/checkpoint_save.h"
#include "models/training/fingerprint.h"
#include "models/training/model_file.h"
#include "nn/parts.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

/* Reads the whole of `count` parameters from number `first` on, (dim), and keeps what is here of
   it, in a flat buffer. */
static bool read_part(const sb_safetensors *file, const char *name, const sb_parameters *weights,
                      int64_t first, int64_t count, int rank, const int64_t *dim, sb_tensor *flat)
{
    sb_tensor *whole = tensor_new("checkpoint", sb_device_cpu(), flat->dtype, rank, dim);
    const bool ok = whole && sb_safetensors_read(file, name, whole) &&
                    parts_take(weights, flat, first, count, whole);
    sb_tensor_release(whole);
    return ok;
}

static bool read_parameter(const sb_safetensors *file, const sb_parameters *weights, int64_t i)
{
    int64_t dim[SB_MAX_RANK];
    const char *name = sb_parameters_name(weights, i);
    if (!parameters_is_cut(weights, i))
        return sb_safetensors_read(file, name, sb_parameters_get(weights, i));
    const int rank = parameters_whole(weights, i, dim);
    return read_part(file, name, weights, i, 1, rank, dim, parameters_values(weights));
}

static bool read_parameters(const sb_safetensors *file, sb_parameters *weights)
{
    bool ok = !parameters_ranks(weights) || parameters_flatten(weights);
    for (int64_t i = 0; ok && i < sb_parameters_count(weights); i++)
        ok = read_parameter(file, weights, i);
    return ok;
}

/* A tensor of the training state, which lies beside the parameters. */
static bool read_state(const sb_safetensors *file, const sb_parameters *weights,
                       const sb_named_tensor *item)
{
    sb_tensor *flat = (sb_tensor *)(uintptr_t)item->tensor;
    const int64_t n = sb_parameters_count(weights), size = parts_size(weights, 0, n);
    return parameters_ranks(weights) ? read_part(file, item->name, weights, 0, n, 1, &size, flat)
                                     : sb_safetensors_read(file, item->name, flat);
}

static sb_dtype stored_dtype(const sb_safetensors *file)
{
    const bool wide =
        sb_safetensors_count(file) > 0 && strcmp(sb_safetensors_dtype(file, 0), "F64") == 0;
    return wide ? SB_F64 : SB_F32;
}

/* Whether the file has this parameter. Its shapes are backed by as many bytes, so that settings
   which claim a huge model fail here, before there is any memory for it. */
static bool file_has(const void *file, const char *name, int rank, const int64_t *dim)
{
    int i = sb_safetensors_find(file, name);
    if (i < 0)
        return sb_fail("checkpoint: \"%s\", which its settings ask for, is missing", name);
    int its_rank = sb_safetensors_rank(file, i);
    const int64_t *its_dim = sb_safetensors_shape(file, i);
    return shape_equal(rank, dim, its_rank, its_dim) ||
           sb_fail("checkpoint: \"%s\" is %s, its settings ask for %s", name,
                   shape_text(its_rank, its_dim).text, shape_text(rank, dim).text);
}

/* The fingerprint of the tensors, which must be the one that the metadata name, if any. */
static bool take_fingerprint(const sb_safetensors *file, const struct metadata *d,
                             uint64_t *fingerprint)
{
    if (!fingerprint_file(file, fingerprint))
        return false;
    if (!d->has_fingerprint || *fingerprint == d->fingerprint)
        return true;
    return sb_fail("checkpoint: its tensors have the fingerprint %s, expected %s: the file was "
                   "changed after it was saved; use a copy that was not",
                   fingerprint_text(*fingerprint).text, fingerprint_text(d->fingerprint).text);
}

/* The kind that the file names, which is to be this one (NULL: one of the library's). */
static const sb_model_kind *find_kind(const struct metadata *d, const sb_model_kind *wanted)
{
    const char *name = sb_description_kind(d->model);
    if (!wanted)
        return sb_model_kind_find(name);
    if (strcmp(name, wanted->name) == 0)
        return wanted;
    return sb_fail("checkpoint: its model is of kind \"%s\", expected \"%s\"", name, wanted->name);
}

/* Whether the settings of a file are known, where they are those of one of the library's kinds. */
static bool check_settings(const struct metadata *d, const sb_model_kind *kind)
{
    struct settings settings;
    for (int i = 0; model_kind_at(i); i++)
        if (model_kind_at(i) == kind)
            return settings_read(&settings, d->model);
    return true;
}

/* The model that the file describes, with its parameters. */
static bool read_model(sb_model *model, const sb_safetensors *file, const sb_model_kind *kind,
                       sb_parameters *weights, const struct metadata *d)
{
    kind = find_kind(d, kind);
    if (!kind || !check_settings(d, kind))
        return false;
    parameters_restrict(weights, file_has, file);
    const bool built = sb_model_build(model, kind, weights, d->model);
    parameters_restrict(weights, NULL, NULL);
    uint64_t fingerprint;
    if (built && (!d->has_fingerprint || take_fingerprint(file, d, &fingerprint)) &&
        read_parameters(file, weights))
        return true;
    if (built)
        sb_model_free(model);
    return false;
}

static bool build(struct checkpoint *c, const sb_safetensors *file, const struct metadata *d)
{
    c->has_state = d->has_state;
    c->progress = d->progress;
    c->state = d->state;
    c->task = memory_text(d->task);
    if (!c->task)
        return sb_fail("checkpoint: out of memory");
    if (!settings_read(&c->settings, d->model))
        return false;
    c->settings.model.transformer.ranks = sb_description_ranks(d->model);
    c->weights = sb_parameters_of(stored_dtype(file), c->settings.trainer.seed);
    if (!c->weights || !read_model(&c->subject, file, &seq2seq_kind, c->weights, d))
        return false;
    c->model = c->subject.self;
    return true;
}

static bool read_metadata(const sb_safetensors *file, struct metadata *d)
{
    const char *text = sb_safetensors_metadata(file, "softback");
    if (!text)
        return sb_fail("checkpoint: it has no description of a softback model");
    return metadata_read(text, d);
}

bool metadata_of_file(const char *path, struct metadata *d)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return false;
    uint64_t fingerprint = 0;
    bool ok = read_metadata(file, d);
    if (ok && !take_fingerprint(file, d, &fingerprint)) {
        metadata_free(d);
        ok = false;
    }
    d->fingerprint = fingerprint;
    sb_safetensors_close(file);
    return ok || sb_fail("%s: %s", path, sb_error());
}

static struct checkpoint *read_checkpoint(const sb_safetensors *file, sb_communicator *ranks)
{
    struct metadata d;
    if (!read_metadata(file, &d))
        return NULL;
    sb_description_set_ranks(d.model, ranks);
    struct checkpoint *c = memory_new(sizeof *c);
    bool ok = c ? build(c, file, &d) : sb_fail("checkpoint: out of memory") != NULL;
    metadata_free(&d);
    if (ok)
        return c;
    checkpoint_free(c);
    return NULL;
}

struct checkpoint *checkpoint_load(const char *path)
{
    return checkpoint_load_part(path, NULL);
}

struct checkpoint *checkpoint_load_part(const char *path, sb_communicator *ranks)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return NULL;
    struct checkpoint *c = read_checkpoint(file, ranks);
    sb_safetensors_close(file);
    return c ? c : sb_fail("%s: %s", path, sb_error());
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

/* The weights, and all that a trainer has beside them. */
static bool read_training(const sb_safetensors *file, sb_trainer *trainer,
                          const sb_trainer_state *state)
{
    sb_named_tensor item[STATE_TENSORS];
    int n = checkpoint_state(trainer, item);
    sb_parameters *weights = sb_trainer_subject(trainer)->weights;
    bool ok = read_parameters(file, weights);
    for (int i = 0; ok && i < n; i++)
        ok = read_state(file, weights, &item[i]);
    return ok && sb_trainer_restore(trainer, state);
}

bool checkpoint_resume(const struct checkpoint *c, const char *path, sb_trainer *trainer)
{
    if (!c->has_state)
        return sb_fail("checkpoint: %s holds a model, but no state of its training", path);
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = file && read_training(file, trainer, &c->state);
    sb_safetensors_close(file);
    return ok;
}

/* ---- averages ---- */

static bool is_of_training(const char *name)
{
    struct settings any;
    const int i = setting_find(name);
    return i >= 0 && setting_at(&any, i).group != SETTING_OF_MODEL;
}

/* Whether the parameters of models of two descriptions mean the same. */
static bool same_described(const sb_description *a, const sb_description *b)
{
    const char *name;
    bool same = description_same_vocabularies(a, b);
    for (int64_t i = 0; same && (name = sb_description_name(a, i)); i++) {
        const char *value = sb_description_get(b, name);
        same = is_of_training(name) || (value && strcmp(value, sb_description_value(a, i)) == 0);
    }
    return same;
}

static bool check_same_model(const sb_model *first, const sb_model *model, const char *path)
{
    sb_description *a = sb_model_describe(first), *b = sb_model_describe(model);
    const bool same = a && b && first->kind == model->kind && same_described(a, b) &&
                      sb_parameters_dtype(first->weights) == sb_parameters_dtype(model->weights);
    if (a && b && !same)
        sb_fail("average: %s is another model than the first", path);
    sb_description_free(a);
    sb_description_free(b);
    return same;
}

/* mean += (one - mean) / count */
static bool add_to_mean(const struct checkpoint *into, const struct checkpoint *c, int count)
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
        struct checkpoint *c = checkpoint_load(paths[i]);
        bool ok = c && check_same_model(&into->subject, &c->subject, paths[i]);
        ok = ok && add_to_mean(into, c, i + 2);
        checkpoint_free(c);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- models of any kind ---- */

static bool load(sb_model *model, const sb_safetensors *file, const sb_model_kind *kind,
                 sb_parameters *weights)
{
    struct metadata d;
    if (!file || !read_metadata(file, &d))
        return false;
    const bool ok = read_model(model, file, kind, weights, &d);
    metadata_free(&d);
    return ok;
}

bool sb_model_load(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                   const char *path)
{
    if (!model || !weights || !path)
        return fail_null("model_load", !model ? "model" : weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("model_load: the set has %lld parameters already; it must be empty",
                       (long long)sb_parameters_count(weights));
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = load(model, file, kind, weights);
    sb_safetensors_close(file);
    return ok;
}

sb_seq2seq *sb_seq2seq_load(sb_parameters *weights, const char *path)
{
    if (!weights || !path)
        return fail_null("seq2seq_load", weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("seq2seq_load: the set has %lld parameters already; it must be empty",
                       (long long)sb_parameters_count(weights));
    sb_model model;
    return sb_model_load(&model, &seq2seq_kind, weights, path) ? model.self : NULL;
}

/* Whether a file describes the model that a trainer has. */
static bool describes(const struct metadata *d, const sb_description *own)
{
    const char *name;
    for (int64_t i = 0; (name = sb_description_name(own, i)); i++) {
        const char *its = sb_description_get(d->model, name), *mine = sb_description_value(own, i);
        if (!its || strcmp(its, mine) != 0)
            return sb_fail("checkpoint: \"%s\" is %s in the file, the trainer's model has %s", name,
                           its ? its : "missing", mine);
    }
    return description_same_vocabularies(d->model, own) ||
           sb_fail("checkpoint: its vocabularies are not those of the trainer's model");
}

static bool check_training(const struct metadata *d, const sb_trainer *trainer)
{
    const sb_model *model = sb_trainer_subject(trainer);
    if (!find_kind(d, model->kind))
        return false;
    sb_description *own = sb_model_describe(model);
    const bool same = own && describes(d, own);
    sb_description_free(own);
    if (!same)
        return false;
    if (!d->has_state)
        return sb_fail("checkpoint: it holds a model, but no state of its training");
    return d->progress.data_hash == source_mark(sb_trainer_source(trainer)) ||
           sb_fail("checkpoint: the data are not those with which its training was begun");
}

static bool resume(const sb_safetensors *file, sb_trainer *trainer)
{
    struct metadata d;
    uint64_t fingerprint;
    if (!file || !read_metadata(file, &d))
        return false;
    const bool ok = check_training(&d, trainer) && take_fingerprint(file, &d, &fingerprint) &&
                    read_training(file, trainer, &d.state);
    metadata_free(&d);
    return ok;
}

bool sb_checkpoint_resume(sb_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return fail_null("checkpoint_resume", trainer ? "path" : "trainer");
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = resume(file, trainer);
    sb_safetensors_close(file);
    return ok;
}
