/* Reading checkpoints, resuming from them, and averages of them. */
#include "models/training/checkpoint.h"
#include "models/training/checkpoint_json.h"
#include "models/training/checkpoint_save.h"
#include "models/training/fingerprint.h"
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
    int i = sb_safetensors_find(file, "output.bias");
    return i >= 0 && strcmp(sb_safetensors_dtype(file, i), "F64") == 0 ? SB_F64 : SB_F32;
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

/* The fingerprint of the tensors, which must be the one that the description names, if any. */
static bool take_fingerprint(const sb_safetensors *file, const struct description *d,
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

/* The model that the file describes, with its parameters. */
static sb_seq2seq *read_model(const sb_safetensors *file, sb_parameters *weights,
                              const struct description *d)
{
    parameters_restrict(weights, file_has, file);
    sb_seq2seq *model = sb_seq2seq_for(weights, d->source, d->target, &d->settings.model);
    parameters_restrict(weights, NULL, NULL);
    uint64_t fingerprint;
    if (model && (!d->has_fingerprint || take_fingerprint(file, d, &fingerprint)) &&
        read_parameters(file, weights))
        return model;
    sb_seq2seq_free(model);
    return NULL;
}

static bool build(struct checkpoint *c, const sb_safetensors *file, const struct description *d)
{
    c->settings = d->settings;
    c->has_state = d->has_state;
    c->progress = d->progress;
    c->state = d->state;
    c->task = memory_text(d->task);
    if (!c->task)
        return sb_fail("checkpoint: out of memory");
    c->weights = sb_parameters_of(stored_dtype(file), d->settings.trainer.seed);
    c->model = c->weights ? read_model(file, c->weights, d) : NULL;
    return c->model != NULL;
}

static bool read_description(const sb_safetensors *file, struct description *d)
{
    const char *text = sb_safetensors_metadata(file, "softback");
    if (!text)
        return sb_fail("checkpoint: it has no description of a softback model");
    return description_read(text, d);
}

bool description_of_file(const char *path, struct description *d)
{
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return false;
    uint64_t fingerprint = 0;
    bool ok = read_description(file, d);
    if (ok && !take_fingerprint(file, d, &fingerprint)) {
        description_free(d);
        ok = false;
    }
    d->fingerprint = fingerprint;
    sb_safetensors_close(file);
    return ok || sb_fail("%s: %s", path, sb_error());
}

static struct checkpoint *read_checkpoint(const sb_safetensors *file, sb_communicator *ranks)
{
    struct description d;
    if (!read_description(file, &d))
        return NULL;
    d.settings.model.transformer.ranks = ranks;
    struct checkpoint *c = memory_new(sizeof *c);
    bool ok = c ? build(c, file, &d) : sb_fail("checkpoint: out of memory") != NULL;
    description_free(&d);
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
    sb_seq2seq_free(checkpoint->model);
    sb_parameters_free(checkpoint->weights);
    memory_free(checkpoint->task);
    memory_free(checkpoint);
}

bool checkpoint_resume(const struct checkpoint *c, const char *path, sb_trainer *trainer)
{
    if (!c->has_state)
        return sb_fail("checkpoint: %s holds a model, but no state of its training", path);
    sb_safetensors *file = sb_safetensors_open(path);
    if (!file)
        return false;
    sb_named_tensor item[STATE_TENSORS];
    int n = checkpoint_state(trainer, item);
    sb_parameters *weights = sb_trainer_subject(trainer)->weights;
    bool ok = read_parameters(file, weights);
    for (int i = 0; ok && i < n; i++)
        ok = read_state(file, weights, &item[i]);
    sb_safetensors_close(file);
    return ok && sb_trainer_restore(trainer, &c->state);
}

bool description_same_vocabulary(const sb_vocabulary *a, const sb_vocabulary *b)
{
    int64_t n = sb_vocabulary_size(a);
    bool same = sb_vocabulary_units(a) == sb_vocabulary_units(b) && n == sb_vocabulary_size(b);
    for (int32_t id = 0; same && id < n; id++)
        same = strcmp(sb_vocabulary_symbol(a, id), sb_vocabulary_symbol(b, id)) == 0;
    return same;
}

/* Whether the parameters of two models mean the same. */
static bool same_model(const struct checkpoint *a, const struct checkpoint *b)
{
    struct settings mine = {.model = *sb_seq2seq_options_of(a->model)};
    struct settings its = {.model = *sb_seq2seq_options_of(b->model)};
    for (int i = 0; setting_name(i); i++)
        if (setting_at(&mine, i).group == SETTING_OF_MODEL &&
            strcmp(setting_get(&mine, i).text, setting_get(&its, i).text) != 0)
            return false;
    return sb_parameters_dtype(a->weights) == sb_parameters_dtype(b->weights) &&
           description_same_vocabulary(sb_seq2seq_source(a->model), sb_seq2seq_source(b->model)) &&
           description_same_vocabulary(sb_seq2seq_target(a->model), sb_seq2seq_target(b->model));
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
        bool ok = c && (same_model(into, c) ||
                        sb_fail("average: %s is another model than the first", paths[i]));
        ok = ok && add_to_mean(into, c, i + 2);
        checkpoint_free(c);
        if (!ok)
            return false;
    }
    return true;
}

sb_seq2seq *sb_seq2seq_load(sb_parameters *weights, const char *path)
{
    if (!weights || !path)
        return fail_null("seq2seq_load", weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("seq2seq_load: the set has %lld parameters already; it must be empty",
                       (long long)sb_parameters_count(weights));
    sb_safetensors *file = sb_safetensors_open(path);
    struct description d;
    if (!file || !read_description(file, &d)) {
        sb_safetensors_close(file);
        return NULL;
    }
    sb_seq2seq *model = read_model(file, weights, &d);
    description_free(&d);
    sb_safetensors_close(file);
    return model;
}
