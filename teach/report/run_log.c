#include "teach/report/run_log.h"
#include "models/text/lines.h"
#include "models/training/diagnosis.h"
#include "tensor/error.h"
#include "tensor/file.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LONGEST_LINE = 1 << 27 };

static double number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : json_is_true(value) ? 1 : (double)NAN;
}

/* The n numbers of an array. */
static bool fill(double *values, const json_t *array, int64_t n)
{
    const int64_t size = (int64_t)json_array_size(array);
    if (size == 0)
        return sb_fail("a diagnosis in the log holds no numbers");
    if (size != n)
        return sb_fail("a diagnosis in the log has %lld numbers; %lld are expected",
                       (long long)size, (long long)n);
    for (int64_t i = 0; i < n; i++)
        values[i] = number(json_array_get(array, (size_t)i));
    return true;
}

/* Every diagnosis must have the same count. */
static bool read_numbers(double **values, const json_t *array, int64_t *n)
{
    *n = *n > 0 ? *n : (int64_t)json_array_size(array);
    *values = memory_new((size_t)(*n + 1) * sizeof **values);
    return *values ? fill(*values, array, *n) : sb_fail("out of memory for the log") != NULL;
}

/* A row for each parameter, one after the other. */
static bool read_histograms(double **values, const json_t *rows, int64_t parameters)
{
    if ((int64_t)json_array_size(rows) != parameters)
        return sb_fail("a diagnosis in the log has %zu histograms; %lld are expected",
                       json_array_size(rows), (long long)parameters);
    *values = memory_new((size_t)(parameters * DIAGNOSIS_BINS) * sizeof **values);
    bool ok = *values || sb_fail("out of memory for the log");
    for (int64_t i = 0; ok && i < parameters; i++)
        ok = fill(*values + i * DIAGNOSIS_BINS, json_array_get(rows, (size_t)i), DIAGNOSIS_BINS);
    return ok;
}

static bool add_diagnosis(struct run_log *log, double step, const json_t *json)
{
    if (!memory_room(&log->diagnosis, log->diagnoses, &log->diagnoses_room, sizeof *log->diagnosis))
        return sb_fail("out of memory for the log");
    struct run_diagnosis *d = &log->diagnosis[log->diagnoses++];
    *d = (struct run_diagnosis){.step = step};
    return read_numbers(&d->of[RUN_GRADIENTS], json_object_get(json, "gradients"),
                        &log->parameters) &&
           read_numbers(&d->of[RUN_SATURATED], json_object_get(json, "saturated"), &log->heads) &&
           read_numbers(&d->of[RUN_EVENNESS], json_object_get(json, "evenness"), &log->heads) &&
           read_histograms(&d->of[RUN_HISTOGRAMS], json_object_get(json, "histograms"),
                           log->parameters);
}

static struct run_line line_of(const json_t *json)
{
    static const char *const names[RUN_VALUES] = {
        "step",          "loss",           "rate",           "norm",        "held_out_loss",
        "held_out_loss", "held_out_error", "held_out_texts", "guess_error", "guess_loss",
        "best"};
    struct run_line line;
    for (int v = 0; v < RUN_VALUES; v++)
        line.of[v] = number(json_object_get(json, names[v]));
    line.of[RUN_PERPLEXITY] = exp(line.of[RUN_PERPLEXITY]);
    line.of[RUN_EXACT] = 100 * (1 - line.of[RUN_EXACT]);
    line.of[RUN_GUESS] = 100 * (1 - line.of[RUN_GUESS]);
    return line;
}

/* Seconds are summed, as each line has those since the last one. */
static bool read_line(struct run_log *log, const char *text, int64_t place, const char *path)
{
    struct json read;
    if (!json_read(&read, "log", text, strlen(text)))
        return sb_fail("line %lld of %s is not a line of a training log: %s", (long long)place,
                       path, sb_error());
    const json_t *const json = read.value;
    const struct run_line line = line_of(json);
    const double seconds = number(json_object_get(json, "seconds")), step = line.of[RUN_STEP];
    bool ok = true;
    if (!(step >= 0))
        ok = sb_fail("line %lld of %s is not a line of a training log", (long long)place, path);
    else if (!isnan(seconds))
        log->seconds = isnan(log->seconds) ? seconds : log->seconds + seconds;
    else if (json_object_get(json, "gradients"))
        ok = add_diagnosis(log, step, json);
    else if (memory_room(&log->line, log->count, &log->room, sizeof *log->line))
        log->line[log->count++] = line;
    else
        ok = sb_fail("out of memory for the log");
    json_free(&read);
    return ok;
}

struct log_file {
    FILE *file;
    const char *path;
};

static int64_t read_file(void *from, char *bytes, size_t room)
{
    const struct log_file *log = from;
    errno = 0;
    const size_t size = fread(bytes, 1, room, log->file);
    if (size == room || !ferror(log->file))
        return (int64_t)size;
    sb_fail("cannot read %s: %s", log->path, strerror(errno));
    return -1;
}

long long run_log_format(const char *line)
{
    const size_t size = strlen(SIGNATURE_LOG_START);
    return strncmp(line, SIGNATURE_LOG_START, size) == 0 ? strtoll(line + size, NULL, 10) : -1;
}

static bool run_log_check_first(const struct lines *lines, const char *path)
{
    const size_t size = strlen(SIGNATURE_LOG) - 1; /* without its LF */
    const long long format = run_log_format(lines->text);
    if (lines->size == size && memcmp(lines->text, SIGNATURE_LOG, size) == 0)
        return true;
    if (format < 0)
        return sb_fail(
            "line 1 of %s is not that of a training log, %.*s; train the model anew with "
            "this version, or name another log",
            path, (int)size, SIGNATURE_LOG);
    return sb_fail("the log %s: its format is %lld, expected %d; train the model anew with this "
                   "version",
                   path, format, LOG_FORMAT);
}

/* The last line, if it does not end, is one that is being written. */
static bool read_lines(struct run_log *log, struct lines *lines, const char *path)
{
    bool ok = true, more = true;
    while (ok && (ok = lines_next(lines, &more)) && more && !lines->ended) {
        const struct lines_problem problem = lines_problem(lines);
        if (problem.text[0])
            ok = sb_fail("line %lld of %s: %s", (long long)lines->number, path, problem.text);
        else
            ok = lines->number == 1 ? run_log_check_first(lines, path)
                                    : read_line(log, lines->text, lines->number, path);
    }
    return ok;
}

/* Opening a pipe without a writer would wait for one. */
static FILE *open_log(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode))
        return sb_fail("the log %s is a pipe, expected a file", path);
    FILE *file = fopen(path, "r");
    return file ? file : sb_fail("cannot open %s: %s", path, strerror(errno));
}

bool run_log_read(struct run_log *log, const char *path)
{
    *log = (struct run_log){.seconds = NAN};
    if (!file_exists(path))
        return true;
    struct lines lines = {0};
    struct log_file file = {open_log(path), path};
    const bool ok = file.file && lines_begin(&lines, path, LONGEST_LINE, read_file, &file) &&
                    read_lines(log, &lines, path);
    lines_end(&lines);
    if (file.file)
        fclose(file.file);
    if (!ok)
        run_log_free(log);
    return ok;
}

void run_log_free(struct run_log *log)
{
    for (int64_t i = 0; i < log->diagnoses; i++)
        for (int n = 0; n < RUN_NUMBERS; n++)
            memory_free(log->diagnosis[i].of[n]);
    memory_free(log->diagnosis);
    memory_free(log->line);
    *log = (struct run_log){0};
}

/* ---- what counts in the end ---- */

/* The mean training loss of the lines from `from` on, n at most; NaN without any. */
static double mean_loss(const struct run_log *log, int64_t from, int64_t n)
{
    double sum = 0, count = 0;
    for (int64_t i = from < 0 ? 0 : from; i < log->count && n > 0; i++)
        if (!isnan(log->line[i].of[RUN_LOSS])) {
            sum += log->line[i].of[RUN_LOSS];
            count++;
            n--;
        }
    return count > 0 ? sum / count : (double)NAN;
}

/* The training loss: of the first line, and of tenths of the lines. */
static void end_losses(struct run_end *end, const struct run_log *run)
{
    int64_t last = run->count, n = 0, losses = 0;
    for (int64_t i = 0; i < run->count; i++)
        losses += !isnan(run->line[i].of[RUN_LOSS]);
    const int64_t tenth = losses > 10 ? (losses + 9) / 10 : 1;
    end->first_loss = mean_loss(run, 0, 1);
    while (last > 0 && n < tenth)
        n += !isnan(run->line[--last].of[RUN_LOSS]);
    end->last_loss = end->least_loss = mean_loss(run, last, tenth);
    for (int64_t from = 0; from < last; from += tenth)
        end->least_loss = fmin(end->least_loss, mean_loss(run, from, tenth));
}

struct run_end run_end(const struct run_log *run)
{
    struct run_end end = {.steps = run->count > 0 ? 0 : (double)NAN,
                          .best_step = NAN,
                          .held_out_loss = NAN,
                          .exact = NAN,
                          .texts = NAN,
                          .guess = NAN,
                          .guess_loss = NAN,
                          .least_held_out = NAN,
                          .least_step = NAN,
                          .last_held_out = NAN};
    double early = NAN; /* the least held-out loss of the first two thirds */
    end_losses(&end, run);
    for (int64_t i = 0; i < run->count; i++)
        end.steps = fmax(end.steps, run->line[i].of[RUN_STEP]);
    for (int64_t i = 0; i < run->count; i++) {
        const double *of = run->line[i].of, held_out = of[RUN_HELD_OUT_LOSS];
        if (!isnan(held_out)) {
            end.last_held_out = held_out;
            end.least_step = held_out >= end.least_held_out ? end.least_step : of[RUN_STEP];
            end.least_held_out = fmin(end.least_held_out, held_out);
            early = 3 * of[RUN_STEP] <= 2 * end.steps ? end.least_held_out : early;
        }
        if (of[RUN_BEST] == 1) {
            end.best_step = of[RUN_STEP];
            end.held_out_loss = held_out;
            end.exact = of[RUN_EXACT];
            end.texts = of[RUN_TEXTS];
            end.guess = of[RUN_GUESS];
            end.guess_loss = of[RUN_GUESS_LOSS];
        }
    }
    end.falls = end.last_held_out < 0.97 * early;
    return end;
}
