#include "models/checkpoint.h"
#include "models/checkpoint_json.h"
#include "nn/parts.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_source.h"
#include <stdio.h>
#include <string.h>

enum { STATE_TENSORS = 3 };

/* What a training state adds to the parameters: the moments and the moving average. */
static int state_tensors(const sb_trainer *trainer, sb_named_tensor item[STATE_TENSORS])
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

static char *describe(const struct settings *settings, const char *task, const sb_seq2seq *model,
                      const sb_trainer *trainer, const struct progress *progress)
{
    struct description d = {.settings = *settings,
                            .task = (char *)(uintptr_t)task,
                            .source = sb_seq2seq_source(model),
                            .target = sb_seq2seq_target(model),
                            .has_state = trainer != NULL};
    if (trainer) {
        d.state = sb_trainer_save(trainer);
        d.progress = *progress;
    }
    return description_write(&d);
}

/* ---- saving ---- */

/* What a file is written from: the parameters, and the training state that lies beside them. */
struct contents {
    sb_parameters *weights;
    int n, states;
    sb_named_tensor state[STATE_TENSORS];
    struct source_item *items;
};

/* The whole of an item, also where ranks hold parts of it. */
static sb_tensor *fetch(void *context, int i)
{
    const struct contents *c = context;
    const sb_parameters *w = c->weights;
    const sb_tensor *state = i < c->n ? NULL : c->state[i - c->n].tensor;
    if (state)
        return parameters_ranks(w) ? parts_join(w, state, 0, c->n)
                                   : sb_tensor_retain((sb_tensor *)(uintptr_t)state);
    return parameters_is_cut(w, i) ? parts_join(w, parameters_values(w), i, 1)
                                   : sb_tensor_retain(sb_parameters_get(w, i));
}

static void list_items(struct contents *c)
{
    for (int i = 0; i < c->n; i++) {
        struct source_item *item = &c->items[i];
        *item = (struct source_item){.name = sb_parameters_name(c->weights, i),
                                     .dtype = sb_parameters_dtype(c->weights)};
        item->rank = parameters_whole(c->weights, i, item->dim);
    }
    for (int i = 0; i < c->states; i++)
        c->items[c->n + i] = (struct source_item){.name = c->state[i].name,
                                                  .dtype = c->state[i].tensor->dtype,
                                                  .rank = 1,
                                                  .dim = {parts_size(c->weights, 0, c->n)}};
}

/* Ranks that hold parts go through the items together, and the first writes them. */
static bool write_contents(const char *path, const char *text, struct contents *c)
{
    sb_communicator *ranks = parameters_ranks(c->weights);
    const char *const metadata[][2] = {{"softback", text}};
    const struct source source = {c->n + c->states, c->items, fetch, c};
    list_items(c);
    return (!ranks || parameters_flatten(c->weights)) &&
           source_save(sb_communicator_rank(ranks) == 0 ? path : NULL, &source, 1, metadata);
}

bool checkpoint_save(const char *path, const struct settings *settings, const char *task,
                     const sb_seq2seq *model, const sb_trainer *trainer,
                     const struct progress *progress)
{
    struct contents c = {.weights = sb_seq2seq_parameters(model)};
    c.n = (int)sb_parameters_count(c.weights);
    c.states = trainer ? state_tensors(trainer, c.state) : 0;
    c.items = memory_new((size_t)(c.n + c.states) * sizeof *c.items);
    char *text = c.items ? describe(settings, task, model, trainer, progress)
                         : sb_fail("checkpoint: out of memory");
    const bool ok = text && write_contents(path, text, &c);
    memory_free(text);
    memory_free(c.items);
    return ok;
}

/* ---- loading ---- */

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

/* The model that the file describes, with its parameters. */
static sb_seq2seq *read_model(const sb_safetensors *file, sb_parameters *weights,
                              const struct description *d)
{
    parameters_restrict(weights, file_has, file);
    sb_seq2seq *model = sb_seq2seq_for(weights, d->source, d->target, &d->settings.model);
    parameters_restrict(weights, NULL, NULL);
    if (model && read_parameters(file, weights))
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
    int n = state_tensors(trainer, item);
    sb_parameters *weights = sb_seq2seq_parameters(sb_trainer_model(trainer));
    bool ok = read_parameters(file, weights);
    for (int i = 0; ok && i < n; i++)
        ok = read_state(file, weights, &item[i]);
    sb_safetensors_close(file);
    return ok && sb_trainer_restore(trainer, &c->state);
}

static bool same_vocabulary(const sb_vocabulary *a, const sb_vocabulary *b)
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
    for (int i = 0; setting_at(i); i++)
        if (setting_at(i)->group == SETTING_OF_MODEL &&
            strcmp(setting_get(&mine, setting_at(i)).text, setting_get(&its, setting_at(i)).text) !=
                0)
            return false;
    return sb_parameters_dtype(a->weights) == sb_parameters_dtype(b->weights) &&
           same_vocabulary(sb_seq2seq_source(a->model), sb_seq2seq_source(b->model)) &&
           same_vocabulary(sb_seq2seq_target(a->model), sb_seq2seq_target(b->model));
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

bool sb_seq2seq_save(const sb_seq2seq *model, const char *path)
{
    if (!model || !path)
        return fail_null("seq2seq_save", model ? "path" : "model");
    struct settings settings = settings_default();
    settings.model = *sb_seq2seq_options_of(model);
    return checkpoint_save(path, &settings, "", model, NULL, NULL);
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
