/* softback translate */
#include "models/kinds.h"
#include "models/training/checkpoint.h"
#include "models/translation.h"
#include "program/options/options.h"
#include "program/run/kind.h"
#include "program/screen/foreign.h"
#include "program/screen/stream.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct translate_request {
    sb_decoding_options decoding;
    const char *task;
    int64_t count;
    const char *path, *base;
    struct texts texts;
};

#define ROW(member) FIELD(struct translate_request, member)

static const struct field translate_fields[] = {
    {"task", ROW(task), "translate held-out pairs of a built-in task", .argument = "NAME",
     .take = option_take_task},
    {"count", ROW(count), "number of pairs of --task [10]", 1, 1 << 20},
    {BASE_FIELD(struct translate_request)},
    {.rows = decoding_fields, .at = offsetof(struct translate_request, decoding)},
    {HEADING("Sampling:")},
    {"sample", ROW(decoding.sample), "sample each symbol by its probability"},
    {.rows = sampling_fields, .at = offsetof(struct translate_request, decoding)},
    {ARGUMENT, ROW(path)},
    {ARGUMENTS(struct translate_request, texts)},
    {0}};
#undef ROW

/* An output as one line. */
static void translate_print(const char *text)
{
    stream_print(text, true);
    putchar('\n');
}

/* Texts, each with the model's output: as a line, or compared with the target of its pair. */
static bool translate_texts(const struct translate_request *r, const sb_seq2seq *model, int64_t n,
                            const char *const texts[], const sb_pairs *pairs)
{
    char **output = memory_new((size_t)n * sizeof *output);
    bool ok = output ? sb_translate_texts(model, texts, n, &r->decoding, output)
                     : sb_fail("out of memory") != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        if (pairs) {
            const bool right = strcmp(output[i], sb_pairs_target(pairs, i)) == 0;
            printf("  %-32s -> %s%s\n", texts[i], foreign(foreign_line(output[i])),
                   right ? "" : "   wrong");
        } else {
            unknown_note(utf8_quote(texts[i]).text, sb_seq2seq_source(model), texts[i]);
            translate_print(output[i]);
        }
        sb_free(output[i]);
    }
    memory_free(output);
    return ok;
}

/* Held-out pairs of a task. */
static bool translate_task(const struct translate_request *r, const struct checkpoint *c)
{
    sb_pairs *pairs = task_pairs(r->task, &c->settings, SB_PART_TEST, r->count);
    const bool ok =
        pairs && translate_texts(r, c->subject.self, r->count, sb_pairs_sources(pairs), pairs);
    sb_pairs_free(pairs);
    return ok;
}

/* ---- lines of the standard input ---- */

enum { USUAL_BATCH = 64, MOST_NOTES = 5 };

struct line {
    int64_t number;
    char *text; /* NULL: it has been refused */
    char *output;
};

struct translation {
    const sb_seq2seq *model;
    sb_decoding_options options;
    struct lines lines;
    int64_t batch, count; /* lines of a batch: the most, and how many there are */
    struct line *line;
    int64_t refused, unknown; /* lines so far */
};

static void translate_refuse(struct translation *t, struct line *line, const char *reason)
{
    input_refuse(line->number, reason);
    memory_free(line->text);
    line->text = NULL;
    t->refused++;
}

static void translate_note_unknown(struct translation *t, const struct line *line)
{
    const sb_vocabulary *vocabulary = sb_seq2seq_source(t->model);
    char where[64];
    snprintf(where, sizeof where, INPUT ":%lld", (long long)line->number);
    if (t->unknown >= MOST_NOTES)
        t->unknown += unknown_count(vocabulary, line->text) > 0;
    else
        t->unknown += unknown_note(where, vocabulary, line->text);
}

/* Adds the current line to the batch. */
static bool translate_take(struct translation *t)
{
    const struct lines *lines = &t->lines;
    struct line *line = &t->line[t->count++];
    const struct lines_problem problem = lines_problem(lines);
    *line = (struct line){.number = lines->number};
    if (problem.text[0]) {
        translate_refuse(t, line, problem.text);
        return true;
    }
    line->text = memory_text_part(lines->text, lines->size);
    if (!line->text)
        return sb_fail("out of memory");
    translate_note_unknown(t, line);
    return true;
}

static bool translate_fill_batch(struct translation *t, bool *more)
{
    for (t->count = 0, *more = true; *more && t->count < t->batch;)
        if (!lines_next(&t->lines, more) || (*more && !translate_take(t)))
            return false;
    return true;
}

/* Decodes one line alone; refuses it when that fails. */
static void translate_decode_one(struct translation *t, struct line *line)
{
    sb_decoding_options options = t->options;
    options.seed ^= (uint64_t)line->number * 0x9e3779b97f4a7c15u; /* a random stream of its own */
    line->output = sb_translate(t->model, line->text, &options);
    if (!line->output)
        translate_refuse(t, line, sb_error());
}

/* Decodes the lines that were not refused: together, or one by one when that fails. */
static bool translate_decode_batch(struct translation *t)
{
    const char **text = memory_new((size_t)t->count * sizeof(char *) + 1);
    char **output = memory_new((size_t)t->count * sizeof(char *) + 1);
    int64_t n = 0;
    for (int64_t i = 0; text && i < t->count; i++)
        if (t->line[i].text)
            text[n++] = t->line[i].text;
    bool ok = text && output;
    bool together = ok && !t->options.sample && n > 0 &&
                    sb_translate_texts(t->model, text, n, &t->options, output);
    for (int64_t i = 0, next = 0; ok && i < t->count; i++)
        if (t->line[i].text && together)
            t->line[i].output = output[next++];
        else if (t->line[i].text)
            translate_decode_one(t, &t->line[i]);
    memory_free(text);
    memory_free(output);
    return ok || sb_fail("out of memory");
}

/* Frees the lines of the batch, after it answers them, unless decoding has failed. */
static void translate_end_batch(struct translation *t, bool answers)
{
    for (int64_t i = 0; i < t->count; i++) {
        struct line *line = &t->line[i];
        if (answers)
            translate_print(line->output ? line->output : "");
        sb_free(line->output);
        memory_free(line->text);
    }
    fflush(stdout);
}

/*
 * Lines are decoded in batches, and a batch is answered as soon as it is done. A line that cannot
 * be translated (not UTF-8, too long) is reported on standard error and answered by an empty line,
 * so that output line i answers input line i. False, with a message, when there was such a line, or
 * on a failure.
 */
static bool translate_lines(const sb_seq2seq *model, const sb_decoding_options *options)
{
    struct translation t = {.model = model, .options = *options};
    t.batch = isatty(STDIN_FILENO)       ? 1
              : options->batch_pairs > 0 ? options->batch_pairs
                                         : USUAL_BATCH;
    t.line = memory_new((size_t)t.batch * sizeof *t.line);
    bool ok = t.line ? input_begin(&t.lines) : sb_fail("out of memory") != NULL;
    for (bool more = true; ok && more && !ferror(stdout);) {
        ok = translate_fill_batch(&t, &more) && translate_decode_batch(&t);
        translate_end_batch(&t, ok);
    }
    memory_free(t.line);
    lines_end(&t.lines);
    if (!ok)
        return false;
    if (t.unknown > MOST_NOTES)
        fprintf(stderr, "softback translate: %lld more lines have symbols unknown to the model\n",
                (long long)t.unknown - MOST_NOTES);
    return t.refused == 0 ||
           sb_fail("lines that could not be translated: %lld", (long long)t.refused);
}

/* ---- the command ---- */

static bool translate_check(const struct options *o, const struct translate_request *r)
{
    const bool sample = r->decoding.sample;
    return (r->path || command_misused("give a model file")) &&
           (!r->task || !r->texts.count ||
            command_misused("give either texts or --task, not both")) &&
           (sample || !options_given(o, OF_SAMPLING) ||
            command_misused("--%s needs --sample", options_given(o, OF_SAMPLING))) &&
           (!sample || r->decoding.beam_width <= 1 ||
            command_misused("--sample and --beam cannot be combined; use one"));
}

static bool translate_run(struct options *o)
{
    struct translate_request r = {.count = 10};
    if (!options_read(o, &r) || !translate_check(o, &r))
        return false;
    struct checkpoint *c = checkpoint_open(r.path, &(struct checkpoint_options){.base = r.base});
    const char *const *texts = (const char *const *)r.texts.text;
    const bool ok =
        c && training_kind_check(c, r.path, &training_seq2seq) &&
        (r.task          ? translate_task(&r, c)
         : r.texts.count ? translate_texts(&r, c->subject.self, r.texts.count, texts, NULL)
                         : translate_lines(c->subject.self, &r.decoding));
    checkpoint_free(c);
    return ok || command_failed();
}

const struct command command_translate = {
    .summary = "writes a model's outputs for texts",
    .arguments = "MODEL [TEXT...]\nMODEL --task NAME",
    .help = "Writes a model's output for each text, or for each line of the standard input.\vEach "
            "output is one line: line ends and control characters are written as \\n, \\r, \\x1b.",
    .fields = translate_fields,
    .run = translate_run,
};
