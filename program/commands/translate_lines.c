#include "program/commands/translate_lines.h"
#include "program/screen/input.h"
#include "program/screen/stream.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void translate_print(const char *text)
{
    stream_print(text, true);
    putchar('\n');
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

bool translate_lines(const sb_seq2seq *model, const sb_decoding_options *options)
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
