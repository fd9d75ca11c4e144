/* softback info */
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/training/checkpoint.h"
#include "nn/fingerprint.h"
#include "program/options/options.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/storage.h"
#include <stdio.h>

struct info_request {
    bool devices;
    const char *path;
};

static const struct field info_fields[] = {
    {"devices", FIELD(struct info_request, devices), "show the devices of this build"},
    {ARGUMENT, FIELD(struct info_request, path), "give one model"},
    {0}};

/* Those of the model with its defaults filled in, then the others of its kind. */
static void info_show_settings(const struct checkpoint *c, const sb_description *d)
{
    struct settings settings = c->settings;
    for (int i = 0; setting_name(i); i++) {
        const char *own = sb_description_get(d, setting_name(i));
        const struct field_text given = setting_get(&settings, i);
        if (setting_is_of(i, c->subject.kind) && (own || given.text[0]))
            printf("  %-18s %s\n", setting_name(i), foreign(own ? own : given.text));
    }
}

static void info_show_vocabularies(const sb_description *d)
{
    sb_vocabulary *vocabulary;
    const char *name;
    for (int64_t i = 0; (name = description_vocabulary_at(d, i, &vocabulary)); i++)
        printf("%-6s  %s, %s symbols\n", name,
               sb_units_description(sb_vocabulary_units(vocabulary)),
               count_text(sb_vocabulary_symbols(vocabulary)).text);
}

static void info_show_parameters(const struct checkpoint *c)
{
    const sb_parameters *weights = c->weights;
    printf("parameters: %s numbers of %s, fingerprint %s\n",
           count_text(sb_parameters_size(weights)).text,
           sb_dtype_name(sb_parameters_dtype(weights)), fingerprint_text(c->fingerprint).text);
    for (int64_t i = 0; i < sb_parameters_count(weights); i++) {
        const sb_tensor *t = sb_parameters_get(weights, i);
        printf("  %-52s %s\n", foreign(sb_parameters_name(weights, i)), tensor_shape(t).text);
    }
}

static void info_show(const struct checkpoint *c, const sb_description *d)
{
    const bool pairs = c->subject.kind == &seq2seq_kind;
    if (!pairs)
        printf("kind    %s\n", c->subject.kind->name);
    printf("model   trained on %s%s\n",
           c->task[0] ? "the task "
           : pairs    ? "pairs from files"
                      : "files",
           foreign(c->task));
    info_show_vocabularies(d);
    for (int64_t i = 0; sb_description_label(d, i); i++)
        printf("label   %s\n", foreign(sb_description_label(d, i)));
    if (c->has_state)
        printf("state   after step %s; --resume continues\n", count_text(c->state.steps).text);
    info_show_parameters(c);
    printf("settings:\n");
    info_show_settings(c, d);
}

static bool info_show_model(const char *path)
{
    struct checkpoint *c = checkpoint_open(path, NULL);
    sb_description *d = c ? sb_model_describe(&c->subject) : NULL;
    if (d)
        info_show(c, d);
    sb_description_free(d);
    checkpoint_free(c);
    return d || command_failed();
}

static bool info_run(struct options *o)
{
    struct info_request r = {0};
    if (!options_read(o, &r))
        return false;
    if (!r.devices && !r.path)
        return command_misused("give a model file or --devices");
    if (r.devices) {
        machine_print_cpu();
        machine_print_cuda();
    }
    return !r.path || info_show_model(r.path);
}

const struct command command_info = {
    .summary = "shows the contents of a model file, or the devices",
    .arguments = "MODEL\n--devices",
    .help = "Shows the contents of a model file, or the devices.",
    .fields = info_fields,
    .run = info_run,
};
