#include "models/report/run_log.h"
#include "tensor/error.h"
#include "tensor/memory.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double number(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool add(struct run_log *log, const struct run_line *line)
{
    if (!memory_room(&log->line, log->count, &log->room, sizeof *log->line))
        return sb_fail("out of memory for the log");
    log->line[log->count++] = *line;
    return true;
}

static bool read_line(struct run_log *log, const char *text, const char *path)
{
    json_t *json = json_loads(text, 0, NULL);
    const struct run_line line = {.step = number(json, "step"),
                                  .loss = number(json, "loss"),
                                  .rate = number(json, "rate"),
                                  .norm = number(json, "norm"),
                                  .held_out_loss = number(json, "held_out_loss"),
                                  .held_out_error = number(json, "held_out_error")};
    json_decref(json);
    if (!(line.step >= 0))
        return sb_fail("line %lld of %s is not of a log of training", (long long)log->count + 1,
                       path);
    return add(log, &line);
}

bool run_log_read(struct run_log *log, const char *path)
{
    *log = (struct run_log){0};
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT || sb_fail("cannot open %s: %s", path, strerror(errno));
    char text[4096];
    bool ok = true;
    while (ok && fgets(text, sizeof text, file) && strchr(text, '\n'))
        ok = read_line(log, text, path);
    fclose(file);
    if (!ok)
        run_log_free(log);
    return ok;
}

void run_log_free(struct run_log *log)
{
    memory_free(log->line);
    *log = (struct run_log){0};
}
