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
    char **texts;
    int texts_count;
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
    {0}};
#undef ROW

/* An output as one line. */
static void translate_print(const char *text)
{
    stream_print(text, true);
    putchar('\n');
}

static bool translate_arguments(const struct translate_request *r, const sb_seq2seq *model)
{
    const char *const *texts = (const char *const *)r->texts;
    char **output = memory_new((size_t)r->texts_count * sizeof *output);
    bool ok = output ? sb_translate_texts(model, texts, r->texts_count, &r->decoding, output)
                     : sb_fail("out of memory") != NULL;
    for (int i = 0; ok && i < r->texts_count; i++) {
        unknown_note("translate", utf8_quote(texts[i]).text, sb_seq2seq_source(model), texts[i]);
        translate_print(output[i]);
        sb_free(output[i]);
    }
    memory_free(output);
    return ok;
}

/* Held-out pairs of a task, each with the model's output. */
static bool translate_task(const struct translate_request *r, const struct checkpoint *c)
{
    sb_pairs *pairs = task_pairs(r->task, &c->settings, SB_PART_TEST, r->count);
    char **output = pairs ? memory_new((size_t)r->count * sizeof *output) : NULL;
    bool ok = output && sb_translate_texts(c->subject.self, sb_pairs_sources(pairs), r->count,
                                           &r->decoding, output);
    for (int64_t i = 0; ok && i < r->count; i++) {
        bool right = strcmp(output[i], sb_pairs_target(pairs, i)) == 0;
        printf("  %-32s -> %s%s\n", sb_pairs_source(pairs, i), foreign(foreign_line(output[i])),
               right ? "" : "   wrong");
        sb_free(output[i]);
    }
    if (pairs && !output)
        sb_fail("out of memory");
    memory_free(output);
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
    input_refuse("translate", line->number, reason);
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
        t->unknown += unknown_note("translate", where, vocabulary, line->text);
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

static void translate_answer(struct translation *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        struct line *line = &t->line[i];
        translate_print(line->output ? line->output : "");
        sb_free(line->output);
        memory_free(line->text);
        *line = (struct line){0};
    }
    fflush(stdout);
}

static void translate_free(struct translation *t)
{
    for (int64_t i = 0; t->line && i < t->count; i++) {
        sb_free(t->line[i].output);
        memory_free(t->line[i].text);
    }
    memory_free(t->line);
    lines_end(&t->lines);
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
        ok = translate_fill_batch(&t, &more) && (t.count == 0 || translate_decode_batch(&t));
        if (ok)
            translate_answer(&t);
    }
    translate_free(&t);
    if (!ok)
        return false;
    if (t.unknown > MOST_NOTES)
        fprintf(stderr, "softback translate: %lld more lines have symbols unknown to the model\n",
                (long long)t.unknown - MOST_NOTES);
    return t.refused == 0 ||
           sb_fail("lines that could not be translated: %lld", (long long)t.refused);
}

/* ---- the command ---- */

static int translate(const struct translate_request *r)
{
    const struct checkpoint_options options = {.kind = &seq2seq_kind, .base = r->base};
    struct checkpoint *c = checkpoint_open(r->path, &options);
    bool ok = c && (r->task          ? translate_task(r, c)
                    : r->texts_count ? translate_arguments(r, c->subject.self)
                                     : translate_lines(c->subject.self, &r->decoding));
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("translate");
}

static int translate_run(struct options *o)
{
    struct translate_request request = {.count = 10};
    options_arguments(o, &request.path, NULL, NULL);
    options_rest(o, &request.texts, &request.texts_count);
    const int wrong = options_read(o, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.path)
        return command_misused("translate", "give a model file");
    if (request.task && request.texts_count)
        return command_misused("translate", "give either texts or --task, not both");
    if (!request.decoding.sample && options_given(o, OF_SAMPLING))
        return command_misused("translate", "--%s needs --sample", options_given(o, OF_SAMPLING));
    if (request.decoding.sample && request.decoding.beam_width > 1)
        return command_misused("translate", "--sample and --beam cannot be combined; use one");
    return translate(&request);
}

const struct command command_translate = {
    .name = "translate",
    .summary = "writes a model's outputs for texts",
    .arguments = "MODEL [TEXT...]\nMODEL --task NAME",
    .help = "Writes a model's output for each text, or for each line of the standard input.\vEach "
            "output is one line: line ends and control characters are written as \\n, \\r, \\x1b.",
    .fields = translate_fields,
    .run = translate_run,
};
