#include "models/training/model_file.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/training/checkpoint_read.h"
#include "tensor/failure.h"
#include <math.h>
#include <string.h>

/* ---- saving ---- */

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
    const struct progress progress = {.data_hash =
                                          checkpoint_source_hash(sb_trainer_source(trainer)),
                                      .best = {.unit_error = NAN, .bleu = NAN}};
    const struct checkpoint_contents contents = {.trainer = trainer, .progress = &progress};
    return checkpoint_save(path, sb_trainer_subject(trainer), &contents, NULL);
}

/* ---- loading ---- */

static bool model_file_read(sb_model *model, const sb_safetensors *file, const sb_model_kind *kind,
                            sb_parameters *weights)
{
    struct metadata d;
    if (!file || !checkpoint_read_metadata(file, &d))
        return false;
    const struct model_tensors tensors = {.file = file};
    const bool ok = checkpoint_read_model(model, &tensors, kind, weights, &d);
    metadata_free(&d);
    return ok;
}

static bool model_file_load(const char *owner, sb_model *model, const sb_model_kind *kind,
                            sb_parameters *weights, const char *path)
{
    if (!model || !weights || !path)
        return fail_null(owner, !model ? "model" : weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("%s: the set has %lld parameters already; it must be empty", owner,
                       (long long)sb_parameters_count(weights));
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = model_file_read(model, file, kind, weights);
    sb_safetensors_close(file);
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

/* ---- resuming ---- */

/* Whether a file describes the model that a trainer has. softback train writes settings as they
   were given, so defaults are filled in first; values of other kinds are no settings. */
static bool model_file_describes(const struct metadata *d, const sb_description *own)
{
    const char *name;
    struct settings all;
    sb_transformer_options *o = &all.model.transformer;
    const bool settings = settings_read(&all, d->model) && sb_transformer_complete(o, o);
    for (int64_t i = 0; (name = sb_description_name(own, i)); i++) {
        const char *its = sb_description_get(d->model, name), *mine = sb_description_value(own, i);
        const int known = settings && its ? setting_find(name) : -1;
        const struct field_text filled =
            known >= 0 ? setting_get(&all, known) : (struct field_text){""};
        its = known >= 0 ? filled.text : its;
        if (!its || strcmp(its, mine) != 0)
            return sb_fail("checkpoint: \"%s\" is %s in the file, but %s in the trainer's model",
                           name, its ? its : "missing", mine);
    }
    return description_same_words(d->model, own) ||
           sb_fail("checkpoint: its vocabularies or labels differ from the trainer's model");
}

static bool model_file_check_training(const struct metadata *d, const sb_trainer *trainer)
{
    const sb_model *model = sb_trainer_subject(trainer);
    if (!checkpoint_kind(d, model->kind))
        return false;
    sb_description *own = sb_model_describe(model);
    const bool same = own && model_file_describes(d, own);
    sb_description_free(own);
    if (!same)
        return false;
    if (!d->has_state)
        return sb_fail("checkpoint: it has a model, but no training state");
    const struct progress *p = &d->progress;
    const uint64_t hash = p->source_hash ? p->source_hash : p->data_hash;
    return hash == checkpoint_source_hash(sb_trainer_source(trainer)) ||
           sb_fail("checkpoint: the data differ from those that its training was started with");
}

static bool model_file_resume(const sb_safetensors *file, sb_trainer *trainer)
{
    struct metadata d;
    if (!file || !checkpoint_read_metadata(file, &d))
        return false;
    const bool ok = model_file_check_training(&d, trainer) && checkpoint_is_unchanged(file, &d) &&
                    checkpoint_read_training(file, trainer, &d.state);
    metadata_free(&d);
    return ok;
}

bool sb_checkpoint_resume(sb_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return fail_null("checkpoint_resume", trainer ? "path" : "trainer");
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = model_file_resume(file, trainer);
    sb_safetensors_close(file);
    return ok;
}
