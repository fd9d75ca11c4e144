/* Language models, trained and evaluated on documents. */
#include "models/data/windows.h"
#include "models/kinds.h"
#include "program/run/kind.h"
#include "program/run/log.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/buffer.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- a built-in task as texts: "source = target", a document for each pair ---- */

/* Its pairs, each with the prompt "source = " for its source. */
static sb_pairs *task_prompts(const char *task, const struct settings *s, sb_part part,
                              int64_t count)
{
    sb_pairs *pairs = task_pairs(task, s, part, count), *prompts = pairs ? sb_pairs_new() : NULL;
    bool ok = prompts != NULL;
    for (int64_t i = 0; ok && i < count; i++) {
        char *prompt = memory_format("%s = ", sb_pairs_source(pairs, i));
        ok = prompt ? sb_pairs_add(prompts, prompt, sb_pairs_target(pairs, i))
                    : sb_fail("out of memory") != NULL;
        memory_free(prompt);
    }
    sb_pairs_free(pairs);
    if (ok)
        return prompts;
    sb_pairs_free(prompts);
    return NULL;
}

static sb_documents *task_documents(const char *task, const sb_pairs *prompts)
{
    sb_documents *documents = sb_documents_new();
    bool ok = documents != NULL;
    for (int64_t i = 0; ok && i < sb_pairs_count(prompts); i++) {
        char *line =
            memory_format("%s%s", sb_pairs_source(prompts, i), sb_pairs_target(prompts, i));
        ok = line ? sb_documents_add(documents, task, line, strlen(line), SB_DOCUMENTS_LINES)
                  : sb_fail("out of memory") != NULL;
        memory_free(line);
    }
    if (ok)
        return documents;
    sb_documents_free(documents);
    return NULL;
}

/* ---- texts ---- */

/* What it is trained and evaluated on. */
struct language_data {
    sb_documents *train, *held;
    sb_vocabulary *vocabulary;
    sb_windows *windows, *held_windows;
};

enum { TASK_DOCUMENTS = 20000, TASK_HELD = 500, HELD_PART = 20 };

static sb_documents *language_task_documents(const struct training *t, sb_part part, int64_t count)
{
    sb_pairs *pairs = task_prompts(t->task, &t->settings, part, count);
    sb_documents *documents = pairs ? task_documents(t->task, pairs) : NULL;
    sb_pairs_free(pairs);
    return documents;
}

static sb_documents *language_read(const char *const *paths, int n, sb_document_cut cut)
{
    sb_documents *documents = sb_documents_new();
    bool ok = documents != NULL;
    for (int i = 0; ok && i < n; i++)
        ok = sb_documents_read(documents, paths[i], cut);
    if (ok)
        return documents;
    sb_documents_free(documents);
    return NULL;
}

static bool language_read_files(struct training *t)
{
    const struct training_request *r = t->request;
    struct language_data *x = t->data;
    const sb_document_cut cut = t->settings.documents;
    sb_documents *all = language_read(r->files, r->file_count, cut);
    if (all && r->valid) {
        x->train = all;
        x->held = language_read(&r->valid, 1, cut);
        return x->held != NULL;
    }
    const bool ok = all && sb_documents_divide(all, HELD_PART, &x->train, &x->held);
    sb_documents_free(all);
    return ok;
}

static bool language_open_texts(struct training *t)
{
    struct language_data *x = t->data;
    if (t->task) {
        x->train = language_task_documents(t, SB_PART_TRAIN, TASK_DOCUMENTS);
        x->held = language_task_documents(t, SB_PART_VALID, TASK_HELD);
    } else if (!language_read_files(t)) {
        return false;
    }
    if (!x->train || !x->held)
        return false;
    const uint64_t held = sb_documents_hash(x->held);
    t->progress.data_hash = (sb_documents_hash(x->train) * 31 + held) >> 1; /* as JSON has them */
    t->progress.held_hash = held >> 1;
    return true;
}

/* ---- windows ---- */

static sb_vocabulary *language_learn(const struct training *t)
{
    const struct language_data *x = t->data;
    const struct settings *s = &t->settings;
    const sb_vocabulary_options options = {
        .units = s->units == SB_UNITS_AUTO ? SB_UNITS_CHARACTERS : s->units, .size = s->vocabulary};
    if (t->loaded)
        return sb_vocabulary_retain(sb_language_model_vocabulary(t->loaded->subject.self));
    return sb_vocabulary_new(sb_documents_texts(x->train), sb_documents_count(x->train), &options);
}

/* All that the model may read at a time, where it may read everything. */
static int64_t language_window(const struct settings *s)
{
    return s->model.context > 0 ? s->model.context : s->data.batch_symbols;
}

/* The most windows of a batch. */
static int64_t language_batch_windows(const struct settings *s)
{
    const int64_t fit = s->data.batch_symbols / language_window(s);
    return fit < 1 ? 1 : fit < s->data.batch_pairs ? fit : s->data.batch_pairs;
}

static bool language_open_data(struct training *t)
{
    struct language_data *x = t->data;
    const struct settings *s = &t->settings;
    sb_windows_options options = {.seed = s->trainer.seed,
                                  .length = language_window(s),
                                  .batch_windows = s->data.batch_pairs,
                                  .batch_symbols = s->data.batch_symbols};
    x->vocabulary = language_learn(t);
    x->windows = x->vocabulary ? sb_windows_new(x->train, x->vocabulary, &options) : NULL;
    options.fixed = true;
    x->held_windows = x->windows ? sb_windows_new(x->held, x->vocabulary, &options) : NULL;
    if (!x->held_windows)
        return false;
    t->source = sb_windows_as_source(x->windows);
    t->held_source = sb_windows_as_source(x->held_windows);
    t->batch_items = language_batch_windows(s);
    t->epoch_items = sb_windows_symbols(x->windows) / language_window(s);
    return true;
}

static sb_model language_make(const struct training *t)
{
    const struct language_data *x = t->data;
    return sb_language_model_as_model(
        sb_language_model_for(t->weights, x->vocabulary, &t->settings.model));
}

static void language_close(struct training *t)
{
    struct language_data *x = t->data;
    sb_windows_free(x->windows);
    sb_windows_free(x->held_windows);
    sb_vocabulary_release(x->vocabulary);
    sb_documents_free(x->train);
    sb_documents_free(x->held);
}

/* ---- what it says of itself ---- */

static void language_describe_texts(const struct training *t, FILE *out)
{
    const struct training_request *r = t->request;
    const struct language_data *x = t->data;
    const sb_documents *rest = x->train, *held = x->held;
    const int64_t n = sb_documents_count(rest);
    fprintf(out, "%-10s %s bytes", t->task ? "task" : foreign(paths_name(r->data)),
            count_text(sb_documents_bytes(rest)).text);
    if (t->task)
        fprintf(out, " of %s", t->task);
    if (r->file_count > 1)
        fprintf(out, " of %d files", r->file_count);
    fprintf(out, " in %s %s; %s bytes %s\n", count_text(n).text, n == 1 ? "document" : "documents",
            count_text(sb_documents_bytes(held)).text, r->valid ? "to evaluate on" : "held out");
}

static void language_describe(const struct training *t, FILE *out)
{
    const struct language_data *x = t->data;
    const int64_t unknown = sb_windows_unknown(x->held_windows);
    language_describe_texts(t, out);
    fprintf(out, "text       %s, %s different symbols; %s to learn\n",
            sb_units_description(sb_vocabulary_units(x->vocabulary)),
            count_text(sb_vocabulary_symbols(x->vocabulary)).text,
            count_text(sb_windows_symbols(x->windows)).text);
    if (unknown > 0)
        fprintf(out,
                "warning    %s symbols to evaluate on do not occur in the text that is "
                "learned\n",
                count_text(unknown).text);
    fprintf(out, "context    windows of up to %s symbols\n",
            count_text(language_window(&t->settings)).text);
}

static double language_bits(double loss, int64_t symbols, int64_t bytes)
{
    return loss * (double)symbols / (log(2) * (double)bytes);
}

/* Perplexity of a symbol, and the loss as bits a byte, which other units can be compared by. */
static void language_measure(const struct training *t, const sb_evaluation *e, int digits,
                             char *text, size_t size)
{
    const struct language_data *x = t->data;
    const sb_windows *held = x->held_windows;
    const double bits = language_bits(e->loss, sb_windows_symbols(held), sb_windows_bytes(held));
    snprintf(text, size,
             digits > 1 ? ", perplexity %.*f, %.*f bits a byte"
                        : "  perplexity %.*f  bits/byte %.*f",
             digits + 1, exp(e->loss), digits + 2, bits);
}

static bool language_add_item(struct buffer *buffer, const struct training *t,
                              const sb_batch *batch, int64_t item)
{
    const struct language_data *x = t->data;
    return bad_batch_add_text(buffer, x->vocabulary, batch, "target_out", "target_lengths", item);
}

/* ---- for a report ---- */

enum { REPORT_SYMBOLS = 48 };

/* The first symbols of a held-out document; NULL without a message where it has none. */
static int32_t *language_begin_of(const struct training *t, int64_t document, int64_t *n)
{
    const struct language_data *x = t->data;
    const char *text = sb_documents_text(x->held, document);
    int32_t *ids = text[0] ? sb_vocabulary_encode(x->vocabulary, text, n, NULL) : NULL;
    int64_t most = language_window(&t->settings) - 1;
    most = most < REPORT_SYMBOLS ? most : REPORT_SYMBOLS;
    *n = ids && *n < most ? *n : most;
    return ids;
}

static bool language_watch(struct training *t)
{
    struct language_data *x = t->data;
    const sb_documents *held = x->held;
    int32_t *ids[MOST_WATCHED];
    int64_t length[MOST_WATCHED], n = 0;
    bool ok = true;
    for (int64_t i = 0; ok && n < MOST_WATCHED && i < sb_documents_count(held); i++) {
        ids[n] = language_begin_of(t, i, &length[n]);
        ok = ids[n] || !sb_documents_text(held, i)[0];
        if (ids[n] && !t->drawn)
            ok = (t->drawn = sb_vocabulary_decode(x->vocabulary, ids[n], length[n])) != NULL;
        if (ids[n] && --length[n] > 0) /* the last one is only predicted */
            n++;
        else
            sb_free(ids[n]);
    }
    t->watched = ok && n > 0 ? sb_window_batch_new(n, (const int32_t *const *)ids, length) : NULL;
    ok = ok && (n == 0 || t->watched);
    while (n > 0)
        sb_free(ids[--n]);
    return ok;
}

/* ---- evaluation: how well it predicts texts, and of a task, whether it writes what follows
   "source = " ---- */

struct measured_documents {
    sb_documents *documents;
    sb_pairs *prompts; /* of a task; else NULL */
    int64_t symbols, unknown;
    double loss, exact; /* share of the pairs; NAN without */
};

static bool evaluate_read_documents(const struct evaluate_request *r, const struct checkpoint *c,
                                    struct measured_documents *e)
{
    if (r->task) {
        e->prompts = task_prompts(r->task, &c->settings, SB_PART_TEST, r->count);
        e->documents = e->prompts ? task_documents(r->task, e->prompts) : NULL;
        return e->documents != NULL;
    }
    e->documents = sb_documents_new();
    return e->documents && sb_documents_read(e->documents, r->data, c->settings.documents);
}

static bool evaluate_windows(const struct checkpoint *c, struct measured_documents *e)
{
    const int64_t context = c->settings.model.context;
    const sb_windows_options options = {
        .length = context > 0 ? context : c->settings.data.batch_symbols, .fixed = true};
    sb_windows *windows =
        sb_windows_new(e->documents, sb_language_model_vocabulary(c->subject.self), &options);
    if (!windows)
        return false;
    const sb_source source = sb_windows_as_source(windows);
    sb_evaluation evaluation;
    const bool ok = sb_evaluate(&c->subject, &source, NULL, NULL, &evaluation);
    e->loss = ok ? evaluation.loss : NAN;
    e->symbols = sb_windows_symbols(windows);
    e->unknown = sb_windows_unknown(windows);
    sb_windows_free(windows);
    return ok;
}

/* Whether an output is the target of a pair. */
static bool evaluate_is_exact(const sb_vocabulary *vocabulary, const sb_decoded *d,
                              const char *target, bool *exact)
{
    char *text = sb_vocabulary_decode(vocabulary, d->ids, d->length);
    *exact = text && d->ended && strcmp(text, target) == 0;
    sb_free(text);
    return text != NULL;
}

static bool evaluate_task(const struct evaluate_request *r, const sb_language_model *model,
                          struct measured_documents *e)
{
    const int64_t n = sb_pairs_count(e->prompts);
    int64_t right = 0;
    e->exact = NAN;
    if (!e->prompts)
        return true;
    sb_decoded *d = memory_new((size_t)n * sizeof *d);
    const bool decoded =
        d ? sb_continue_texts(model, sb_pairs_sources(e->prompts), n, &r->decoding, d)
          : sb_fail("out of memory for %lld pairs", (long long)n) != NULL;
    bool ok = decoded;
    for (int64_t i = 0; ok && i < n; i++) {
        bool is = false;
        ok = evaluate_is_exact(sb_language_model_vocabulary(model), &d[i],
                               sb_pairs_target(e->prompts, i), &is);
        right += is;
    }
    e->exact = (double)right / (double)n;
    if (decoded)
        sb_decoded_free(n, d);
    memory_free(d);
    return ok;
}

static double evaluate_bits(const struct measured_documents *e)
{
    return language_bits(e->loss, e->symbols, sb_documents_bytes(e->documents));
}

static json_t *evaluate_language_json(const struct measured_documents *e)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "documents",
                     (json_int_t)sb_documents_count(e->documents), "bytes",
                     (json_int_t)sb_documents_bytes(e->documents), "symbols",
                     (json_int_t)e->symbols, "unknown", (json_int_t)e->unknown, "loss",
                     log_number(e->loss), "perplexity", log_number(exp(e->loss)), "bits_per_byte",
                     log_number(evaluate_bits(e)), "exact_match", log_number(e->exact));
}

static void evaluate_language_table(const struct measured_documents *e)
{
    const int64_t n = sb_documents_count(e->documents);
    printf("text            %s bytes in %s %s, %s symbols to predict\n",
           count_text(sb_documents_bytes(e->documents)).text, count_text(n).text,
           n == 1 ? "document" : "documents", count_text(e->symbols).text);
    if (e->unknown > 0)
        printf("unknown         %s symbols that the model does not know\n",
               count_text(e->unknown).text);
    printf("loss            %.4f nats a symbol, perplexity %.4f\n", e->loss, exp(e->loss));
    printf("bits a byte     %.4f\n", evaluate_bits(e));
    if (e->prompts)
        printf("exact match     %.2f %% of the targets, after \"source = \"\n", 100 * e->exact);
}

static bool evaluate_language(const struct evaluate_request *r, const struct checkpoint *c,
                              json_t **json)
{
    struct measured_documents e = {0};
    const bool ok = (r->show == 0 || sb_fail("--show is for encoder-decoders; softback generate "
                                             "shows what a language model writes")) &&
                    evaluate_read_documents(r, c, &e) && evaluate_windows(c, &e) &&
                    evaluate_task(r, c->subject.self, &e);
    if (ok && r->json)
        *json = evaluate_language_json(&e);
    else if (ok)
        evaluate_language_table(&e);
    sb_documents_free(e.documents);
    sb_pairs_free(e.prompts);
    return ok;
}

const struct training_kind training_language_model = {
    .title = "a language model",
    .trained = "a language model on texts",
    .file = "a text, or on several, with one --data each",
    .items = "windows",
    .model = &language_model_kind,
    .several_files = true,
    .data_size = sizeof(struct language_data),
    .open_texts = language_open_texts,
    .open_data = language_open_data,
    .make = language_make,
    .close = language_close,
    .describe = language_describe,
    .scores = 1 << BEST_LOSS,
    .measure = language_measure,
    .add_item = language_add_item,
    .evaluate = evaluate_language,
    .watch = language_watch,
    .report = &report_language};
