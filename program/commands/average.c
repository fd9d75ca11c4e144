/* softback average */
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include <stdio.h>

struct average_request {
    const char *out;
    struct texts models;
};

static const struct field average_fields[] = {{"out", FIELD(struct average_request, out),
                                               "write the averaged model to FILE",
                                               .argument = "FILE"},
                                              {ARGUMENTS(struct average_request, models)},
                                              {0}};

static bool average_check_paths(const struct average_request *r)
{
    struct paths paths = {0};
    paths_add_model(&paths, r->out);
    for (int i = 0; i < r->models.count; i++)
        paths_add(&paths, PATH_READ, "MODEL", r->models.text[i]);
    return paths_check(&paths);
}

static bool average_run(struct options *o)
{
    struct average_request r = {0};
    if (!options_read(o, &r))
        return false;
    if (!r.out || r.models.count < 1)
        return command_misused("give --out FILE and the model files");
    if (!average_check_paths(&r))
        return command_failed();
    const char *const *paths = (const char *const *)r.models.text;
    struct checkpoint *c = checkpoint_open(paths[0], NULL);
    bool ok = c && checkpoint_average(c, r.models.count - 1, paths + 1);
    if (ok) {
        const struct checkpoint_contents mean = {
            .settings = &c->settings, .task = c->task, .is_new = true};
        ok = checkpoint_save(r.out, &c->subject, &mean, NULL);
    }
    checkpoint_free(c);
    if (ok)
        printf("%s is the mean of %d models\n", foreign(r.out), r.models.count);
    return ok || command_failed();
}

const struct command command_average = {
    .summary = "averages the parameters of checkpoints",
    .arguments = "--out FILE MODEL...",
    .help = "Averages the parameters of models with the same settings and vocabularies, such as "
            "the last checkpoints of a run.",
    .fields = average_fields,
    .run = average_run,
};
