#include "teach/report/run_log.h"
#include "models/training/diagnosis.h"
#include "teach/report/signature.h"
#include "tensor/error.h"
#include "tensor/memory.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The *n numbers of an array; every diagnosis must have the same count. */
static double *numbers(const json_t *array, int64_t *n)
{
    const int64_t size = (int64_t)json_array_size(array);
    if (size == 0)
        return sb_fail("a diagnosis in the log holds no numbers");
    if (*n > 0 && size != *n)
        return sb_fail("a diagnosis in the log has %lld numbers; %lld are expected",
                       (long long)size, (long long)*n);
    double *values = memory_new((size_t)size * sizeof *values);
    for (int64_t i = 0; values && i < size; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        values[i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    *n = size;
    return values ? values : sb_fail("out of memory for the log");
}

/* A row for each parameter, one after the other. */
static double *histograms_of(const json_t *rows, int64_t parameters)
{
    if ((int64_t)json_array_size(rows) != parameters)
        return sb_fail("a diagnosis in the log has %zu histograms; %lld are expected",
                       json_array_size(rows), (long long)parameters);
    double *all = memory_new((size_t)(parameters * DIAGNOSIS_BINS) * sizeof *all);
    int64_t bins = DIAGNOSIS_BINS;
    bool ok = all || sb_fail("out of memory for the log");
    for (int64_t i = 0; ok && i < parameters; i++) {
        double *row = numbers(json_array_get(rows, (size_t)i), &bins);
        ok = row != NULL;
        if (ok)
            memcpy(all + i * DIAGNOSIS_BINS, row, DIAGNOSIS_BINS * sizeof *row);
        memory_free(row);
    }
    if (ok)
        return all;
    memory_free(all);
    return NULL;
}

/* Logs of earlier versions have the earlier name. */
static const json_t *saturated_of(const json_t *json)
{
    const json_t *saturated = json_object_get(json, "saturated");
    return saturated ? saturated : json_object_get(json, "deaf");
}

static bool add_diagnosis(struct run_log *log, double step, const json_t *json)
{
    if (!memory_room(&log->diagnosis, log->diagnoses, &log->diagnoses_room, sizeof *log->diagnosis))
        return sb_fail("out of memory for the log");
    struct run_diagnosis *d = &log->diagnosis[log->diagnoses++];
    *d = (struct run_diagnosis){.step = step};
    d->gradients = numbers(json_object_get(json, "gradients"), &log->parameters);
    d->saturated = d->gradients ? numbers(saturated_of(json), &log->heads) : NULL;
    d->evenness = d->saturated ? numbers(json_object_get(json, "evenness"), &log->heads) : NULL;
    const json_t *rows = json_object_get(json, "histograms");
    if (d->evenness && rows)
        d->histograms = histograms_of(rows, log->parameters);
    return d->evenness && (d->histograms || !rows);
}

/* Seconds are summed, as each line has those since the last one. */
static void add_seconds(struct run_log *log, double seconds)
{
    log->seconds = isnan(log->seconds) ? seconds : log->seconds + seconds;
}

static bool read_line(struct run_log *log, const char *text, int64_t place, const char *path)
{
    json_t *json = json_loads(text, 0, NULL);
    const struct run_line line = {.step = number(json, "step"),
                                  .loss = number(json, "loss"),
                                  .rate = number(json, "rate"),
                                  .norm = number(json, "norm"),
                                  .held_out_loss = number(json, "held_out_loss"),
                                  .held_out_error = number(json, "held_out_error")};
    bool ok = line.step >= 0 ||
              sb_fail("line %lld of %s is not a line of a training log", (long long)place, path);
    const double seconds = number(json, "seconds");
    if (ok && !isnan(seconds))
        add_seconds(log, seconds);
    else if (ok)
        ok = json_object_get(json, "gradients") ? add_diagnosis(log, line.step, json)
                                                : add(log, &line);
    json_decref(json);
    return ok;
}

bool run_log_read(struct run_log *log, const char *path)
{
    *log = (struct run_log){.seconds = NAN};
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT || sb_fail("cannot open %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t room = 0;
    bool ok = true;
    errno = 0;
    for (int64_t place = 1; ok && getline(&text, &room, file) > 0 && strchr(text, '\n'); place++)
        ok = (place == 1 && strcmp(text, SIGNATURE_LOG) == 0) || read_line(log, text, place, path);
    if (ok && ferror(file))
        ok = sb_fail("cannot read %s: %s", path, strerror(errno));
    free(text);
    fclose(file);
    if (!ok)
        run_log_free(log);
    return ok;
}

void run_log_free(struct run_log *log)
{
    for (int64_t i = 0; i < log->diagnoses; i++) {
        memory_free(log->diagnosis[i].gradients);
        memory_free(log->diagnosis[i].histograms);
        memory_free(log->diagnosis[i].saturated);
        memory_free(log->diagnosis[i].evenness);
    }
    memory_free(log->diagnosis);
    memory_free(log->line);
    *log = (struct run_log){0};
}
