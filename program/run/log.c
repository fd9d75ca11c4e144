#include "program/run/log.h"
#include "teach/report/run_log.h"
#include "tensor/file.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The step of a complete line. */
static bool log_step_of(const char *line, size_t size, int64_t *at)
{
    struct json json;
    if (!json_read(&json, "log", line, size))
        return false;
    const json_t *step = json_object_get(json.value, "step");
    *at = json_is_integer(step) ? json_integer_value(step) : -1;
    json_free(&json);
    return *at >= 0 || sb_fail("log: it has no step");
}

/* How many bytes of the log to keep: without an incomplete last line. -1, with a message, where
   it cannot be read. */
static long log_kept(FILE *log, const char *path, int64_t step)
{
    char *line = NULL;
    size_t room = 0;
    long keep = 0;
    int64_t at = 0;
    ssize_t size;
    errno = 0;
    for (int64_t n = 1;
         keep >= 0 && (size = getline(&line, &room, log)) > 0 && line[size - 1] == '\n'; n++) {
        if (!(n == 1 && strcmp(line, SIGNATURE_LOG) == 0) &&
            !log_step_of(line, (size_t)size, &at)) {
            sb_fail(
                "log: line %lld of %s is not a line of a training log: %s; mend it, or move the "
                "log away",
                (long long)n, path, sb_error());
            keep = -1;
        } else if (at > step) {
            break;
        } else {
            keep = ftell(log);
        }
    }
    if (keep >= 0 && (ferror(log) || errno == ENOMEM)) {
        sb_fail("log: cannot read %s: %s", path, strerror(errno));
        keep = -1;
    }
    free(line);
    return keep;
}

bool log_begins(const char *head)
{
    const size_t size = strcspn(head, "\n"), least = strlen("{\"softback\"");
    const bool whole = head[size] == '\n';
    return !head[0] || (size >= least && strncmp(head, SIGNATURE_LOG, size + whole) == 0);
}

/* A log that keeps no line starts again with the signature. */
static bool log_cut_back(FILE *log, const char *path, bool file, int64_t step)
{
    const long keep = file && step > 0 ? log_kept(log, path, step) : 0;
    if (keep < 0)
        return false;
    const bool cut = !file || (fflush(log) == 0 && ftruncate(fileno(log), keep) == 0 &&
                               fseek(log, keep, SEEK_SET) == 0);
    return (cut && (keep > 0 || fputs(SIGNATURE_LOG, log) >= 0)) ||
           sb_fail("log: cannot write %s: %s", path, strerror(errno));
}

FILE *log_open(const char *path, int64_t step)
{
    struct stat about;
    const int descriptor = file_descriptor(path, O_RDWR | O_CREAT, 0666);
    FILE *log = descriptor >= 0 ? fdopen(descriptor, "r+") : NULL;
    if (!log)
        return sb_fail("log: cannot open %s: %s", path, strerror(errno));
    /* /dev/null and pipes keep nothing, and have no lock, as many runs may write to them */
    const bool file = fstat(descriptor, &about) != 0 || S_ISREG(about.st_mode);
    if (file && flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        sb_fail("log: another training run writes %s; wait for its end", path);
    else if (log_cut_back(log, path, file, step))
        return log;
    fclose(log);
    return NULL;
}

static bool log_write_line(FILE *log, json_t *line)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(6);
    if (log && !line)
        return sb_fail("log: out of memory for a line");
    errno = 0; /* opening a file may have left another reason */
    bool ok =
        !log || (json_dumpf(line, log, flags) == 0 && fputc('\n', log) != EOF && fflush(log) == 0);
    const int reason = errno;
    json_decref(line);
    return ok ||
           sb_fail("log: cannot write a line: %s", reason ? strerror(reason) : "out of memory");
}

json_t *log_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

bool log_step(FILE *log, int64_t step, const sb_trained *t)
{
    json_t *line = json_pack("{s:I, s:o, s:o, s:o, s:I}", "step", (json_int_t)step, "loss",
                             log_number(t->loss), "rate", log_number(t->rate), "norm",
                             log_number(t->norm), "symbols", (json_int_t)t->targets);
    const bool ok = t->sent <= 0 || json_object_set_new(line, "sent", json_integer(t->sent)) == 0;
    return log_write_line(log, json_if(ok, line));
}

static json_t *log_numbers(int64_t n, const double *x)
{
    json_t *array = json_array();
    bool ok = true;
    for (int64_t i = 0; i < n; i++)
        ok = json_array_append_new(array, log_number(x[i])) == 0 && ok;
    return json_if(ok, array);
}

json_t *log_table(int64_t rows, int64_t columns, const int64_t *counts)
{
    json_t *table = json_array();
    bool ok = true;
    for (int64_t i = 0; i < rows; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < columns; j++)
            ok = json_array_append_new(row, json_integer(counts[i * columns + j])) == 0 && ok;
        ok = json_array_append_new(table, row) == 0 && ok;
    }
    return json_if(ok, table);
}

bool log_diagnosis(FILE *log, int64_t step, const struct diagnosis *d)
{
    return log_write_line(log, json_pack("{s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)step,
                                         "gradients", log_numbers(d->parameters, d->gradient),
                                         "histograms",
                                         log_table(d->parameters, DIAGNOSIS_BINS, d->histogram),
                                         "saturated", log_numbers(d->heads, d->saturated),
                                         "evenness", log_numbers(d->heads, d->evenness)));
}

bool log_seconds(FILE *log, int64_t step, double seconds)
{
    return log_write_line(log,
                          json_pack("{s:I, s:f}", "step", (json_int_t)step, "seconds", seconds));
}

/* How often each target is one of a batch, to which texts have one of these names. */
struct frequencies {
    double *count, all;
    int64_t ids, room;
};

static const sb_tensor *frequencies_targets(const sb_batch *batch)
{
    for (int i = 0; i < batch->parts; i++)
        if (strcmp(batch->part[i].name, "target_out") == 0 ||
            strcmp(batch->part[i].name, "label") == 0)
            return batch->part[i].t;
    return NULL;
}

static bool frequencies_add(struct frequencies *f, const sb_tensor *targets)
{
    const int64_t n = targets ? sb_tensor_size(targets) : 0;
    double *id = memory_new((size_t)(n + 1) * sizeof *id);
    bool ok = (id || sb_fail("log: out of memory")) && (n == 0 || sb_tensor_read(targets, id));
    for (int64_t i = 0; ok && i < n; i++) {
        for (; ok && f->ids <= (int64_t)id[i]; f->ids += ok)
            ok = memory_room(&f->count, f->ids, &f->room, sizeof *f->count) ||
                 sb_fail("log: out of memory");
        if (ok && id[i] >= 0) { /* -1: none */
            f->count[(int64_t)id[i]]++;
            f->all++;
        }
    }
    memory_free(id);
    return ok;
}

/* By Laplace's rule of succession target k costs -ln (n_k + 1) / (n + ids), in any order. */
bool guess_make(struct guess *guess, const sb_source *held)
{
    struct frequencies f = {0};
    bool ok = held->seek(held->object, (sb_data_position){0, 0});
    for (int64_t i = 0, n = ok ? held->batches(held->object) : 0; ok && i < n; i++) {
        const sb_batch *batch = held->next(held->object);
        ok = batch && frequencies_add(&f, frequencies_targets(batch));
    }
    double most = 0, loss = lgamma(f.all + (double)f.ids) - lgamma((double)f.ids);
    for (int64_t k = 0; k < f.ids; k++) {
        most = fmax(most, f.count[k]);
        loss -= lgamma(f.count[k] + 1);
    }
    *guess = (struct guess){f.all > 0 ? 1 - most / f.all : NAN, f.all > 0 ? loss / f.all : NAN};
    memory_free(f.count);
    return ok;
}

bool log_evaluation(FILE *log, int64_t step, const sb_evaluation *e, const struct guess *guess,
                    bool best)
{
    json_t *line = json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "held_out_loss",
                             log_number(e->loss), "held_out_error", log_number(e->error));
    const struct {
        bool known;
        const char *name;
        json_t *value;
    } others[] = {
        {!isnan(e->error), "held_out_texts", json_integer(e->items)},
        {!isnan(guess->loss), "guess_error", log_number(guess->error)},
        {!isnan(guess->loss), "guess_loss", log_number(guess->loss)},
        {!isnan(e->bleu), "held_out_unit_error", log_number(e->unit_error)},
        {!isnan(e->bleu), "held_out_bleu", log_number(e->bleu)},
        {true, "best", json_boolean(best)},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].known)
            ok = json_object_set_new(line, others[i].name, others[i].value) == 0 && ok;
        else
            json_decref(others[i].value);
    return log_write_line(log, json_if(ok, line));
}
