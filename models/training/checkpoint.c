/* Reading and writing checkpoints, and the public functions for them. */
#include "models/training/checkpoint.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/training/metadata.h"
#include "models/training/model_file.h"
#include "nn/fingerprint.h"
#include "nn/layer.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- contents: the tensors of a file ---- */

/* Lists the parameters: all, or the adapters. */
static bool checkpoint_list_weights(struct stored_list *list, bool adapters)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < sb_parameters_count(list->set); i++) {
        const char *name = sb_parameters_name(list->set, i);
        if (!adapters || lora_is_adapter(name))
            ok = stored_add(list, "", name, &(struct stored){.i = i});
    }
    return ok;
}

/* Lists the moving average of a trainer, if there is one. */
static bool checkpoint_list_average(struct stored_list *list, const sb_trainer *trainer)
{
    sb_tensor *values = sb_average_values(sb_trainer_average(trainer));
    bool ok = true;
    for (int64_t i = 0; ok && values && i < sb_parameters_count(list->set); i++) {
        const struct stored item = {
            .i = i, .flat = values, .at = parameters_offset(list->set, values, i)};
        ok = parameters_is_frozen(list->set, i) ||
             stored_add(list, "average.", sb_parameters_name(list->set, i), &item);
    }
    return ok;
}

/* ---- reading ---- */

/* A file that is being read. */
struct reading {
    struct stored_file file;
    struct stored_file base;   /* of adapters: has what the file has not; not open: none */
    uint64_t base_fingerprint; /* that its metadata name */
    bool new_adapters;         /* adapters that the file lacks keep their initial values */
    struct metadata d;
    const sb_model_kind *kind;
    bool has_settings; /* the kind is one of the library's */
    struct settings settings;
};

static void reading_close(struct reading *r)
{
    stored_close(&r->file);
    stored_close(&r->base);
    metadata_free(&r->d);
}

bool metadata_of(const sb_safetensors *file, struct metadata *d)
{
    const char *text = sb_safetensors_metadata(file, "softback");
    if (!text)
        return sb_fail("checkpoint: its metadata does not describe a model of softback");
    return metadata_read(text, d);
}

/* Reads the metadata of an open file, also those of an optimiser. */
static bool reading_describe(struct reading *r)
{
    struct optimiser_counts counts;
    if (!metadata_of(r->file.tensors, &r->d))
        return false;
    if (!r->d.has_state)
        return true;
    if (!optimiser_read_counts(&r->file, &counts))
        return false;
    r->d.state.updates = counts.steps;
    r->d.state.plateau = counts.plateau;
    return true;
}

/* Opens the model that adapters are for. */
static bool reading_open_base(struct reading *r, const char *path)
{
    struct metadata d;
    if (!stored_open(&r->base, path))
        return false;
    if (!metadata_of(r->base.tensors, &d))
        return sb_fail("%s: %s", path, sb_error());
    r->base_fingerprint = d.fingerprint;
    metadata_free(&d);
    return true;
}

/* The kind of the file, which must be `wanted` (NULL: any of the library's), and its settings, all
   of which this version must know. */
static bool reading_take_kind(struct reading *r, const sb_model_kind *wanted)
{
    const char *name = sb_description_kind(r->d.model);
    if (wanted && strcmp(name, wanted->name) != 0)
        return sb_fail("checkpoint: its model is of kind \"%s\", expected \"%s\"", name,
                       wanted->name);
    r->kind = wanted ? wanted : sb_model_kind_find(name);
    for (int i = 0; model_kind_at(i); i++)
        r->has_settings |= model_kind_at(i) == r->kind;
    if (r->has_settings)
        return settings_read(&r->settings, r->d.model);
    r->settings = settings_default();
    return r->kind != NULL;
}

/* The file that has a parameter; NULL: none. */
static struct stored_file *reading_file_of(struct reading *r, const char *name)
{
    return sb_safetensors_find(r->file.tensors, name) >= 0                      ? &r->file
           : r->base.tensors && sb_safetensors_find(r->base.tensors, name) >= 0 ? &r->base
                                                                                : NULL;
}

/* Whether the file has this parameter. Its shapes match the size of the file, so settings of a huge
   model fail here, before memory is allocated for it. */
static bool reading_has(const void *reading, const char *name, int rank, const int64_t *dim)
{
    struct reading *r = (struct reading *)(uintptr_t)reading;
    const struct stored_file *file = reading_file_of(r, name);
    if (!file && r->new_adapters && lora_is_adapter(name))
        return true;
    if (!file)
        return sb_fail("checkpoint: its settings require \"%s\", which is missing", name);
    const int i = sb_safetensors_find(file->tensors, name);
    int its_rank = sb_safetensors_rank(file->tensors, i);
    const int64_t *its_dim = sb_safetensors_shape(file->tensors, i);
    return shape_equal(rank, dim, its_rank, its_dim) ||
           sb_fail("checkpoint: \"%s\" is %s; its settings require %s", name,
                   shape_text(its_rank, its_dim).text, shape_text(rank, dim).text);
}

static bool reading_is_base(const struct reading *r, uint64_t fingerprint)
{
    return fingerprint == r->d.base ||
           sb_fail(
               "checkpoint: its adapters are for the model with the fingerprint %s, but that of "
               "--base has %s",
               fingerprint_text(r->d.base).text, fingerprint_text(fingerprint).text);
}

/* A file of adapters needs its base, and no other file has one. */
static bool reading_check_base(const struct reading *r)
{
    if (!r->base.tensors)
        return !r->d.adapters ||
               sb_fail(
                   "checkpoint: it has LoRA adapters alone, for the model with the fingerprint "
                   "%s; join both with softback merge, or give that model with --base to softback "
                   "translate, evaluate, generate or classify",
                   fingerprint_text(r->d.base).text);
    if (!r->d.adapters)
        return sb_fail("checkpoint: it is a whole model; --base is for files of LoRA adapters");
    return reading_is_base(r, r->base_fingerprint);
}

/* The values of the parameters. */
static bool reading_weights(struct reading *r, sb_parameters *weights)
{
    struct stored_list list = {.set = weights};
    uint64_t fingerprint;
    bool ok = (!parameters_ranks(weights) || parameters_flatten(weights)) &&
              checkpoint_list_weights(&list, false);
    for (int64_t k = 0; ok && k < list.n; k++) {
        struct stored_file *file = reading_file_of(r, list.item[k].name);
        ok = (!file && r->new_adapters) || stored_read(file ? file : &r->file, &list, k);
    }
    stored_free(&list);
    return ok && (!r->base.tensors ||
                  (stored_read_rest(&r->base, &fingerprint) && reading_is_base(r, fingerprint)));
}

/* Builds the model in a set of weights, which after a failure can only be freed. */
static bool reading_model(struct reading *r, sb_model *model, sb_parameters *weights)
{
    if (!reading_check_base(r) || !fine_tuning_prepare(&r->settings.tuning, weights))
        return false;
    parameters_restrict(weights, reading_has, r);
    const bool built = sb_model_build(model, r->kind, weights, r->d.model);
    parameters_restrict(weights, NULL, NULL);
    if (built && reading_weights(r, weights))
        return true;
    if (built)
        sb_model_free(model);
    return false;
}

/* Reads what is left of a file, and compares its fingerprint with the one that it names. */
static bool checkpoint_end(struct stored_file *file, uint64_t named)
{
    uint64_t fingerprint;
    if (!stored_read_rest(file, &fingerprint))
        return false;
    return fingerprint == named ||
           sb_fail("checkpoint: its tensors have the fingerprint %s, expected %s: the file was "
                   "changed after it was saved; use an unchanged copy",
                   fingerprint_text(fingerprint).text, fingerprint_text(named).text);
}

bool metadata_of_file(const char *path, struct metadata *d)
{
    struct stored_file file;
    if (!stored_open(&file, path))
        return false;
    bool ok = metadata_of(file.tensors, d);
    if (ok && !checkpoint_end(&file, d->fingerprint)) {
        metadata_free(d);
        ok = false;
    }
    stored_close(&file);
    return ok || sb_fail("%s: %s", path, sb_error());
}

/* Reads the state of a trainer whose model has been read from the file. */
static bool checkpoint_read_state(struct stored_file *file, sb_trainer *trainer,
                                  const sb_trainer_state *state, uint64_t fingerprint)
{
    struct stored_list average = {.set = sb_trainer_subject(trainer)->weights};
    bool ok = sb_trainer_restore(trainer, state) &&
              optimiser_read(file, sb_trainer_optimiser(trainer), true) &&
              checkpoint_list_average(&average, trainer);
    for (int64_t k = 0; ok && k < average.n; k++)
        ok = stored_read(file, &average, k);
    stored_free(&average);
    return ok && checkpoint_end(file, fingerprint);
}

/* ---- opening ---- */

/* Replaces the settings of the training in a description, and with them the adapters. */
static bool checkpoint_replace_training(sb_description *d, const struct settings *training)
{
    const sb_model_kind *kind = sb_model_kind_find(sb_description_kind(d));
    for (int i = 0; kind && setting_name(i); i++) {
        const struct field s = setting_at(i);
        if (s.group == FIELD_OF_TRAINING && field_is_of(&s, kind) &&
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

/* The dtype of the parameters of a file. */
static sb_dtype checkpoint_dtype(const sb_safetensors *file)
{
    const bool wide =
        sb_safetensors_count(file) > 0 && strcmp(sb_safetensors_dtype(file, 0), "F64") == 0;
    return wide ? SB_F64 : SB_F32;
}

static bool checkpoint_take(struct checkpoint *c, struct reading *r, bool resumes)
{
    const struct metadata *d = &r->d;
    c->has_state = d->has_state;
    c->progress = d->progress;
    c->state = d->state;
    c->fingerprint = d->fingerprint;
    c->task = memory_text(d->task);
    if (!c->task)
        return sb_fail("checkpoint: out of memory");
    c->settings = r->settings;
    c->settings.tuning.base = d->base;
    c->settings.model.transformer.ranks = sb_description_ranks(d->model);
    c->weights = sb_parameters_of(checkpoint_dtype(r->file.tensors), c->settings.trainer.seed);
    if (!c->weights || !reading_model(r, &c->subject, c->weights))
        return false;
    if (!resumes || !d->has_state)
        return checkpoint_end(&r->file, d->fingerprint);
    c->file = r->file;
    r->file = (struct stored_file){0};
    return true;
}

static struct checkpoint *checkpoint_read(struct reading *r, const struct checkpoint_options *o)
{
    if (!reading_describe(r))
        return NULL;
    sb_description_set_ranks(r->d.model, o->ranks);
    if ((o->training && !checkpoint_begin_training(&r->d, o->training)) ||
        !reading_take_kind(r, o->kind))
        return NULL;
    struct checkpoint *c = memory_new(sizeof *c);
    if (!c)
        return sb_fail("checkpoint: out of memory");
    if (checkpoint_take(c, r, o->resumes))
        return c;
    checkpoint_free(c);
    return NULL;
}

struct checkpoint *checkpoint_open(const char *path, const struct checkpoint_options *options)
{
    const struct checkpoint_options o = options ? *options : (struct checkpoint_options){0};
    struct reading r = {.new_adapters = o.training != NULL};
    const bool opened = stored_open(&r.file, path) && (!o.base || reading_open_base(&r, o.base));
    struct checkpoint *c = opened ? checkpoint_read(&r, &o) : NULL;
    if (opened && !c)
        sb_fail("%s: %s", path, sb_error());
    reading_close(&r);
    return c;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    stored_close(&checkpoint->file);
    sb_model_free(&checkpoint->subject);
    sb_parameters_free(checkpoint->weights);
    memory_free(checkpoint->task);
    memory_free(checkpoint);
}

bool checkpoint_resume(struct checkpoint *c, sb_trainer *trainer)
{
    if (!c->has_state)
        return sb_fail("checkpoint: it has a model, but no training state");
    const bool ok = checkpoint_read_state(&c->file, trainer, &c->state, c->fingerprint);
    stored_close(&c->file);
    return ok;
}

uint64_t checkpoint_source_hash(const sb_source *source)
{
    return source->hash ? source->hash(source->object) >> 1 : 0; /* JSON's integers are signed */
}

/* ---- saving ---- */

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

/* Ranks that hold parts of the model call it together, and the first writes. */
static bool checkpoint_write_list(const char *path, const struct stored_list *list,
                                  const struct checkpoint_contents *w, struct metadata *d)
{
    struct state_text state;
    const char *pair[1 + STATE_PAIRS][2] = {{"softback"}};
    const bool writes = sb_communicator_rank(parameters_ranks(list->set)) == 0;
    if (!stored_fingerprint(list, &d->fingerprint))
        return false;
    if (w->trainer) {
        optimiser_write(sb_trainer_optimiser(w->trainer), &state);
        memcpy(pair + 1, state.pair, sizeof state.pair);
    }
    char *text = metadata_write(d);
    pair[0][1] = text;
    const bool is_new = writes && w->is_new && !checkpoint_is_written(path, d);
    const bool ok = text && stored_save(path, list, is_new, w->trainer ? 1 + STATE_PAIRS : 1,
                                        (const char *const(*)[2])pair);
    memory_free(text);
    return ok;
}

static bool checkpoint_write(const char *path, const sb_model *model,
                             const struct checkpoint_contents *w, struct metadata *d)
{
    struct stored_list list = {.set = model->weights};
    const bool ok = checkpoint_list_weights(&list, d->adapters) &&
                    (!w->trainer || (optimiser_list(sb_trainer_optimiser(w->trainer), &list) &&
                                     checkpoint_list_average(&list, w->trainer))) &&
                    checkpoint_write_list(path, &list, w, d);
    stored_free(&list);
    return ok;
}

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
    const bool ok = d && fields_describe(settings_fields, settings, model->kind, d) &&
                    checkpoint_add_model(d, own);
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

/* ---- the public functions ---- */

static bool model_file_save(const char *owner, const sb_model *model, const char *path,
                            const struct settings *settings)
{
    const struct checkpoint_contents contents = {.settings = settings};
    if (!model || !path)
        return fail_null(owner, model ? "path" : "model");
    return checkpoint_save(path, model, &contents, NULL);
}

bool sb_model_save(const sb_model *model, const char *path)
{
    return model_file_save("model_save", model, path, NULL);
}

bool sb_seq2seq_save(const sb_seq2seq *model, const char *path)
{
    const sb_model subject = sb_seq2seq_as_model((sb_seq2seq *)(uintptr_t)model);
    struct settings settings = settings_default();
    if (model)
        settings.model = *sb_seq2seq_options_of(model);
    return model_file_save("seq2seq_save", model ? &subject : NULL, path, &settings);
}

bool sb_language_model_save(const sb_language_model *model, const char *path)
{
    const sb_model subject = sb_language_model_as_model((sb_language_model *)(uintptr_t)model);
    return model_file_save("language_model_save", model ? &subject : NULL, path, NULL);
}

bool sb_classifier_save(const sb_classifier *model, const char *path)
{
    const sb_model subject = sb_classifier_as_model((sb_classifier *)(uintptr_t)model);
    return model_file_save("classifier_save", model ? &subject : NULL, path, NULL);
}

bool sb_checkpoint_save(const sb_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return fail_null("checkpoint_save", trainer ? "path" : "trainer");
    const uint64_t hash = checkpoint_source_hash(sb_trainer_source(trainer));
    const struct progress progress = {
        .data_hash = hash, .source_hash = hash, .best = {.unit_error = NAN, .bleu = NAN}};
    const struct checkpoint_contents contents = {.trainer = trainer, .progress = &progress};
    return checkpoint_save(path, sb_trainer_subject(trainer), &contents, NULL);
}

static bool model_file_read(sb_model *model, struct reading *r, const sb_model_kind *kind,
                            sb_parameters *weights)
{
    if (!metadata_of(r->file.tensors, &r->d) || !reading_take_kind(r, kind) ||
        !reading_model(r, model, weights))
        return false;
    if (checkpoint_end(&r->file, r->d.fingerprint))
        return true;
    sb_model_free(model);
    return false;
}

static bool model_file_load(const char *owner, sb_model *model, const sb_model_kind *kind,
                            sb_parameters *weights, const char *path)
{
    if (!model || !weights || !path)
        return fail_null(owner, !model ? "model" : weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("%s: the set has %lld parameters already; it must be empty", owner,
                       (long long)sb_parameters_count(weights));
    struct reading r = {.kind = NULL};
    const bool ok = stored_open(&r.file, path) && model_file_read(model, &r, kind, weights);
    reading_close(&r);
    return ok;
}

bool sb_model_load(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                   const char *path)
{
    return model_file_load("model_load", model, kind, weights, path);
}

sb_seq2seq *sb_seq2seq_load(sb_parameters *weights, const char *path)
{
    sb_model m;
    return model_file_load("seq2seq_load", &m, &seq2seq_kind, weights, path) ? m.self : NULL;
}

sb_language_model *sb_language_model_load(sb_parameters *weights, const char *path)
{
    sb_model m;
    return model_file_load("language_model_load", &m, &language_model_kind, weights, path) ? m.self
                                                                                           : NULL;
}

sb_classifier *sb_classifier_load(sb_parameters *weights, const char *path)
{
    sb_model m;
    return model_file_load("classifier_load", &m, &classifier_kind, weights, path) ? m.self : NULL;
}

/* Whether a file describes the model that a trainer has. softback train writes settings as they
   were given, so defaults are filled in first; values of other kinds are no settings. */
static bool model_file_describes(struct reading *r, const sb_description *own)
{
    const char *name;
    sb_transformer_options *o = &r->settings.model.transformer;
    const bool settings = r->has_settings && sb_transformer_complete(o, o);
    for (int64_t i = 0; (name = sb_description_name(own, i)); i++) {
        const char *its = sb_description_get(r->d.model, name),
                   *mine = sb_description_value(own, i);
        const int known = settings && its ? setting_find(name) : -1;
        const struct field_text filled =
            known >= 0 ? setting_get(&r->settings, known) : (struct field_text){""};
        its = known >= 0 ? filled.text : its;
        if (!its || strcmp(its, mine) != 0)
            return sb_fail("checkpoint: \"%s\" is %s in the file, but %s in the trainer's model",
                           name, its ? its : "missing", mine);
    }
    return description_same_words(r->d.model, own) ||
           sb_fail("checkpoint: its vocabularies or labels differ from the trainer's model");
}

static bool model_file_check_training(struct reading *r, const sb_trainer *trainer)
{
    const sb_model *model = sb_trainer_subject(trainer);
    if (!reading_take_kind(r, model->kind))
        return false;
    sb_description *own = sb_model_describe(model);
    const bool same = own && model_file_describes(r, own);
    sb_description_free(own);
    if (!same)
        return false;
    if (!r->d.has_state)
        return sb_fail("checkpoint: it has a model, but no training state");
    return r->d.progress.source_hash == checkpoint_source_hash(sb_trainer_source(trainer)) ||
           sb_fail("checkpoint: the data differ from those that its training was started with");
}

bool sb_checkpoint_resume(sb_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return fail_null("checkpoint_resume", trainer ? "path" : "trainer");
    struct reading r = {.kind = NULL};
    const bool ok = stored_open(&r.file, path) && reading_describe(&r) &&
                    model_file_check_training(&r, trainer) &&
                    reading_weights(&r, sb_trainer_subject(trainer)->weights) &&
                    checkpoint_read_state(&r.file, trainer, &r.d.state, r.d.fingerprint);
    reading_close(&r);
    return ok;
}
