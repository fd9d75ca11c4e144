/* softback average */
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include <stdio.h>

struct average_request {
    const char *out;
    char **models;
    int count;
};

static const struct field average_fields[] = {{"out", FIELD(struct average_request, out),
                                               "write the averaged model to FILE",
                                               .argument = "FILE"},
                                              {0}};

static bool average_check_paths(const struct average_request *r)
{
    struct paths paths = {0};
    paths_add_model(&paths, r->out);
    for (int i = 0; i < r->count; i++)
        paths_add(&paths, PATH_READ, "MODEL", r->models[i]);
    return paths_check(&paths);
}

static int average(const struct average_request *request)
{
    if (!average_check_paths(request))
        return command_failed("average");
    struct checkpoint *c = checkpoint_open(request->models[0], NULL);
    bool ok =
        c && checkpoint_average(c, request->count - 1, (const char *const *)request->models + 1);
    if (ok) {
        const struct checkpoint_contents mean = {
            .settings = &c->settings, .task = c->task, .is_new = true};
        ok = checkpoint_save(request->out, &c->subject, &mean, NULL);
    }
    checkpoint_free(c);
    if (ok)
        printf("%s is the mean of %d models\n", foreign(request->out), request->count);
    return ok ? EXIT_OK : command_failed("average");
}

static int average_run(struct options *o)
{
    struct average_request request = {0};
    options_rest(o, &request.models, &request.count);
    const int wrong = options_read(o, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.out || request.count < 1)
        return command_misused("average", "give --out FILE and the model files");
    return average(&request);
}

const struct command command_average = {
    .name = "average",
    .summary = "averages the parameters of checkpoints",
    .arguments = "--out FILE MODEL...",
    .help = "Averages the parameters of models with the same settings and vocabularies, such as "
            "the last checkpoints of a run.",
    .fields = average_fields,
    .run = average_run,
};
