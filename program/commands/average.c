/* softback average */
#include "models/training/checkpoint.h"
#include "program/run/paths.h"
#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "program/screen/options.h"
#include <stdio.h>

enum { KEY_OUT = 1, MOST_MODELS = 64 };

struct average_request {
    const char *out;
    int count;
    const char *path[MOST_MODELS];
};

static error_t average_parse(int key, char *argument, struct argp_state *state)
{
    struct average_request *request = state->input;
    switch (key) {
    case KEY_OUT:
        request->out = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (request->count == MOST_MODELS)
            options_refuse(state, "at most %d models can be averaged", MOST_MODELS);
        request->path[request->count++] = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool average_check_paths(const struct average_request *r)
{
    struct paths paths = {0};
    paths_add(&paths, PATH_CREATED, "--out", r->out);
    for (int i = 0; i < r->count; i++)
        paths_add(&paths, PATH_READ, "MODEL", r->path[i]);
    return paths_check(&paths);
}

static int average(const struct average_request *request)
{
    if (!average_check_paths(request))
        return command_failed("average");
    struct checkpoint *c = checkpoint_open(request->path[0], NULL);
    bool ok = c && checkpoint_average(c, request->count - 1, request->path + 1);
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

static int average_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"out", KEY_OUT, "FILE", 0, "write the averaged model to FILE", 0}, {0}};
    const struct argp argp = {options,
                              average_parse,
                              "--out FILE MODEL...",
                              "Averages the parameters of models with the same settings and "
                              "vocabularies, such as the last checkpoints of a run.",
                              NULL,
                              NULL,
                              NULL};
    struct average_request request = {0};
    int wrong = command_parse(&argp, "average", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.out || request.count < 1)
        return command_misused("average", "give --out FILE and the model files");
    return average(&request);
}

const struct command command_average = {"average", "averages the parameters of checkpoints",
                                        average_run};
