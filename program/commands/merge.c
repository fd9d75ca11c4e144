/* softback merge */
#include "models/training/checkpoint.h"
#include "nn/layer.h"
#include "nn/lora.h"
#include "program/options/options.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include "tensor/storage.h"
#include <stdio.h>

struct merge_request {
    const char *base, *adapters, *out;
};

static const struct field merge_fields[] = {
    {"out", FIELD(struct merge_request, out), "write the merged model to FILE", .argument = "FILE"},
    {ARGUMENT, FIELD(struct merge_request, base)},
    {ARGUMENT, FIELD(struct merge_request, adapters), "give a model and its adapters"},
    {0}};

static bool merge_check_paths(const struct merge_request *r)
{
    struct paths paths = {0};
    paths_add_model(&paths, r->out);
    paths_add(&paths, PATH_READ, "BASE", r->base);
    paths_add(&paths, PATH_READ, "ADAPTERS", r->adapters);
    return paths_check(&paths);
}

/* Copies the weights of the joined model, which has the adapters besides, into the plain one. */
static bool merge_copy(const sb_parameters *from, sb_parameters *to)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < sb_parameters_count(to); i++) {
        sb_tensor *t = sb_parameters_get(to, i);
        const sb_tensor *joined = sb_parameters_find(from, sb_parameters_name(to, i));
        ok = joined
                 ? t->device->copy(t->data, joined->data, tensor_bytes(t))
                 : sb_fail("the adapters' model has no \"%s\"", sb_parameters_name(to, i)) != NULL;
    }
    return ok;
}

static bool merge_run(struct options *o)
{
    struct merge_request r = {0};
    if (!options_read(o, &r))
        return false;
    if (!r.out || !r.adapters)
        return command_misused("give --out FILE, the model, and the file of its adapters");
    if (!merge_check_paths(&r))
        return command_failed();
    struct checkpoint *joined =
        checkpoint_open(r.adapters, &(struct checkpoint_options){.base = r.base});
    struct checkpoint *plain = joined ? checkpoint_open(r.base, NULL) : NULL;
    bool ok =
        plain && sb_lora_merge(joined->weights) && merge_copy(joined->weights, plain->weights);
    if (ok) {
        const struct checkpoint_contents merged = {
            .settings = &plain->settings, .task = plain->task, .is_new = true};
        ok = checkpoint_save(r.out, &plain->subject, &merged, NULL);
    }
    checkpoint_free(plain);
    checkpoint_free(joined);
    if (ok)
        printf("%s is %s with its adapters\n", foreign(r.out), foreign(r.base));
    return ok || command_failed();
}

const struct command command_merge = {
    .summary = "adds LoRA adapters to the weights of their model",
    .arguments = "--out FILE BASE ADAPTERS",
    .help = "Adds LoRA adapters, which softback train --from BASE --lora RANK has trained, to the "
            "weights of their model.\vThe result needs neither file, and is as fast as BASE.",
    .fields = merge_fields,
    .run = merge_run,
};
