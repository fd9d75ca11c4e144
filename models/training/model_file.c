#include "models/training/model_file.h"
#include "models/classifier_kind.h"
#include "models/description_parts.h"
#include "models/language_kind.h"
#include "models/seq2seq_kind.h"
#include "models/training/checkpoint_read.h"
#include "models/training/checkpoint_save.h"
#include "tensor/failure.h"
#include <math.h>
#include <string.h>

bool sb_model_save(const sb_model *model, const char *path)
{
    if (!model || !path)
        return fail_null("model_save", model ? "path" : "model");
    struct metadata d = {.model = sb_model_describe(model), .task = ""};
    return checkpoint_write(path, model->weights, NULL, &d);
}

/* The hash of a source in files, to detect other data. */
static uint64_t model_file_source_hash(const sb_source *source)
{
    return source->hash ? source->hash(source->object) >> 1 : 0; /* JSON's integers are signed */
}

bool sb_checkpoint_save(const sb_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return fail_null("checkpoint_save", trainer ? "path" : "trainer");
    const sb_model *model = sb_trainer_subject(trainer);
    struct metadata d = {.model = sb_model_describe(model), .task = "", .has_state = true};
    d.state = sb_trainer_save(trainer);
    d.progress.data_hash = model_file_source_hash(sb_trainer_source(trainer));
    d.progress.best.unit_error = d.progress.best.bleu = NAN;
    return checkpoint_write(path, model->weights, trainer, &d);
}

static bool model_file_load(sb_model *model, const sb_safetensors *file, const sb_model_kind *kind,
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

bool sb_model_load(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                   const char *path)
{
    if (!model || !weights || !path)
        return fail_null("model_load", !model ? "model" : weights ? "path" : "weights");
    if (sb_parameters_count(weights) > 0)
        return sb_fail("model_load: the set has %lld parameters already; it must be empty",
                       (long long)sb_parameters_count(weights));
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = model_file_load(model, file, kind, weights);
    sb_safetensors_close(file);
    return ok;
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
    sb_model model;
    return sb_model_load(&model, &seq2seq_kind, weights, path) ? model.self : NULL;
}

bool sb_language_model_save(const sb_language_model *model, const char *path)
{
    if (!model || !path)
        return fail_null("language_model_save", model ? "path" : "model");
    const sb_model subject = sb_language_model_as_model((sb_language_model *)(uintptr_t)model);
    return sb_model_save(&subject, path);
}

sb_language_model *sb_language_model_load(sb_parameters *weights, const char *path)
{
    if (!weights || !path)
        return fail_null("language_model_load", weights ? "path" : "weights");
    sb_model model;
    return sb_model_load(&model, &language_model_kind, weights, path) ? model.self : NULL;
}

bool sb_classifier_save(const sb_classifier *model, const char *path)
{
    if (!model || !path)
        return fail_null("classifier_save", model ? "path" : "model");
    const sb_model subject = sb_classifier_as_model((sb_classifier *)(uintptr_t)model);
    return sb_model_save(&subject, path);
}

sb_classifier *sb_classifier_load(sb_parameters *weights, const char *path)
{
    if (!weights || !path)
        return fail_null("classifier_load", weights ? "path" : "weights");
    sb_model model;
    return sb_model_load(&model, &classifier_kind, weights, path) ? model.self : NULL;
}

/* Whether a file describes the model that a trainer has. */
static bool model_file_describes(const struct metadata *d, const sb_description *own)
{
    const char *name;
    for (int64_t i = 0; (name = sb_description_name(own, i)); i++) {
        const char *its = sb_description_get(d->model, name), *mine = sb_description_value(own, i);
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
    return d->progress.data_hash == model_file_source_hash(sb_trainer_source(trainer)) ||
           sb_fail("checkpoint: the data differ from those that its training was started with");
}

static bool model_file_resume(const sb_safetensors *file, sb_trainer *trainer)
{
    struct metadata d;
    uint64_t fingerprint;
    if (!file || !checkpoint_read_metadata(file, &d))
        return false;
    const bool ok = model_file_check_training(&d, trainer) &&
                    checkpoint_fingerprint(file, &d, &fingerprint) &&
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
