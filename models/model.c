#include "models/model.h"
#include "models/data/batch_parts.h"
#include "models/decoding/generator.h"
#include "models/kinds.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include <stdio.h>
#include <string.h>

#define DECLARE(name) extern const sb_model_kind name##_kind;
#define ENTRY(name) &name##_kind,
MODELS(DECLARE)

static const sb_model_kind *const kinds[] = {MODELS(ENTRY) NULL};

const sb_model_kind *model_kind_at(int i)
{
    return i >= 0 && i < (int)(sizeof kinds / sizeof *kinds) ? kinds[i] : NULL;
}

const sb_model_kind *sb_model_kind_find(const char *name)
{
    char all[256] = "";
    if (!name)
        return fail_null("model_kind", "name");
    for (int i = 0; kinds[i]; i++) {
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, i ? ", %s" : "%s", kinds[i]->name);
    }
    return sb_fail("model_kind: \"%.60s\" is none of %s", name, all);
}

bool words_have(const char *words, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == size && strncmp(at, word, size) == 0)
            return true;
    return false;
}

bool model_splits(const sb_model_kind *kind, const char *what)
{
    return words_have(kind->splits ? kind->splits : "batch threads", what);
}

/* For other ranks, which hold parts of the weights, within a pass. */
static bool model_waits(const sb_model *model)
{
    return model->weights && sb_communicator_size(parameters_ranks(model->weights)) > 1;
}

int model_shares(const sb_model *model, const sb_batch *batch, int64_t wanted)
{
    if (!model->weights || model_waits(model) || sb_device_in_use() != sb_device_cpu() ||
        !model_splits(model->kind, "threads"))
        return 1;
    const int64_t shares = wanted > 0 ? wanted : batch_shares(batch, model->weights);
    return (int)(shares < batch->items ? shares : batch->items > 0 ? batch->items : 1);
}

/* The memory of their first places goes back to the device. */
bool model_join(sb_parameters *weights)
{
    const sb_device *device = sb_device_in_use();
    if (device == sb_device_cpu())
        return true;
    const bool ok = parameters_join(weights);
    sb_device_trim(device);
    return ok;
}

bool sb_model_build(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                    const sb_description *description)
{
    if (!model || !kind || !weights || !description)
        return fail_null("model_build", !model     ? "model"
                                        : !kind    ? "kind"
                                        : !weights ? "weights"
                                                   : "description");
    if (!kind->build)
        return sb_fail("model_build: the kind \"%s\" has no function `build`", kind->name);
    const struct parameters_mark mark = parameters_mark(weights);
    *model = (sb_model){.kind = kind, .weights = weights};
    model->self = kind->build(weights, description);
    if (model->self && model_join(weights))
        return true;
    sb_model_free(model);
    parameters_return(weights, &mark);
    return false;
}

void sb_model_free(sb_model *model)
{
    if (!model)
        return;
    if (model->self && model->kind->free)
        model->kind->free(model->self);
    *model = (sb_model){0};
}

sb_description *sb_model_describe(const sb_model *model)
{
    if (!model || !model->kind)
        return fail_null("model_describe", model ? "kind" : "model");
    if (!model->kind->describe)
        return sb_fail("model_describe: the kind \"%s\" has no function `describe`",
                       model->kind->name);
    sb_description *d = sb_description_new(model->kind->name);
    if (d && model->kind->describe(model->self, d))
        return d;
    sb_description_free(d);
    return NULL;
}

bool sb_model_decode(const sb_model *model, const char *const *texts, int64_t n,
                     const sb_decoding_options *options, sb_decoded outputs[])
{
    struct generator generator = {0};
    if (!model || !model->kind)
        return fail_null("decode", model ? "kind" : "model");
    if (!model->kind->generator)
        return sb_fail("decode: the kind \"%s\" has no function `generator`", model->kind->name);
    if (!model->kind->generator(model->self, &generator))
        return false;
    generator.waits = model_waits(model);
    return generator_decode(&generator, texts, n, options, outputs);
}
