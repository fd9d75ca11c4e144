/* softback attend: attention as a picture in the terminal. */
#include "autograd/tape.h"
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/screen/foreign.h"
#include "program/screen/stream.h"
#include "teach/explain/model.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct attend_request {
    const char *attention; /* "cross", "encoder" or "decoder"; NULL: the model's first */
    int64_t layer, head;   /* from 1; 0: the last layer, the mean over heads */
    const char *target;    /* instead of the model's output */
    bool numbers;
    const char *path, *text;
};

#define ROW(member) FIELD(struct attend_request, member)

static const struct field attend_fields[] = {
    {"kind", ROW(attention), "attention: cross, or encoder, decoder (self-attention) [cross]",
     .argument = "WORD", .take = option_take_attention},
    {"layer", ROW(layer), "layer, from 1 [the last]", 1, 1000},
    {"head", ROW(head), "head, from 1 [the mean over heads]", 1, 1 << 16},
    {"target", ROW(target), "target text [the model's output]", .argument = "TEXT"},
    {"numbers", ROW(numbers), "print numbers instead of shades"},
    {.rows = machine_fields},
    {ARGUMENT, ROW(path)},
    {ARGUMENT, ROW(text), "give one text, in quotes"},
    {0}};
#undef ROW

static int attend_widest(const sb_example_axis *axis)
{
    int most = 1;
    for (int64_t i = 0; i < axis->length; i++) {
        int n = utf8_columns(subject_label(axis, i).text);
        most = n > most ? n : most;
    }
    return most;
}

/* That of a column: of its label, or of a number. */
static int attend_width(const sb_example_axis *axis, int64_t j, bool numbers)
{
    const int least = numbers ? 4 : 1, n = utf8_columns(subject_label(axis, j).text);
    return n > least ? n : least;
}

static void attend_print_cell(double w, int width, bool numbers)
{
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    if (numbers) {
        printf(" %*.2f", width, w);
        return;
    }
    static const char *const colours[] = {"", "\033[38;5;25m", "\033[38;5;32m", "\033[38;5;39m",
                                          "\033[38;5;45m"};
    const int shade = w < 0.05 ? 0 : w < 0.2 ? 1 : w < 0.4 ? 2 : w < 0.7 ? 3 : 4;
    const bool coloured = shade > 0 && terminal_has_colour(STDOUT_FILENO);
    printf(" %s", coloured ? colours[shade] : "");
    for (int i = 0; i < width; i++)
        fputs(shades[shade], stdout);
    fputs(coloured ? "\033[0m" : "", stdout);
}

/* The weights (1, H, rows, columns) of a head; 0: the mean over all. */
static void attend_draw(const sb_tensor *w, int64_t head, const sb_example_axis *rows,
                        const sb_example_axis *cols, bool numbers)
{
    const int margin = attend_widest(rows);
    printf("%*s", margin, "");
    for (int64_t j = 0; j < cols->length; j++) {
        const struct subject_label label = subject_label(cols, j);
        const int spare = attend_width(cols, j, numbers) - utf8_columns(label.text);
        printf(" %*s%s%*s", numbers ? spare : 0, "", label.text, numbers ? 0 : spare, "");
    }
    putchar('\n');
    for (int64_t i = 0; i < rows->length; i++) {
        const struct subject_label label = subject_label(rows, i);
        printf("%*s%s", margin - utf8_columns(label.text), "", label.text);
        for (int64_t j = 0; j < cols->length; j++)
            attend_print_cell(subject_weight(w, head - 1, i, j), attend_width(cols, j, numbers),
                              numbers);
        putchar('\n');
    }
}

static bool attend_check_place(const struct attend_request *r, const struct subject *s,
                               const sb_example_attention *at)
{
    if (r->layer > at->layers && s->example.attentions > 1)
        return sb_fail("--layer: there is no layer %lld; the %s's last one is %d",
                       (long long)r->layer, at->self ? at->name : "decoder", at->layers);
    if (r->layer > at->layers)
        return sb_fail("--layer: there is no layer %lld; the last one is %d", (long long)r->layer,
                       at->layers);
    return r->head <= s->example.heads ||
           sb_fail("--head: there is no head %lld; the last one is %lld", (long long)r->head,
                   (long long)s->example.heads);
}

/* Runs the model on the text and draws the requested weights. */
static bool attend_run_and_draw(const struct attend_request *r, const struct subject *s,
                                const sb_example_attention *at)
{
    const int64_t layer = r->layer ? r->layer : at->layers;
    sb_attentions found;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = s->model.kind->attentions(s->model.self, s->example.batch, &found);
    if (ok) {
        attend_draw(found.map[at->first + layer - 1].weights, r->head, &at->queries, &at->keys,
                    r->numbers);
        sb_free(found.map);
    }
    return sb_tape_end(&tape) && ok;
}

static void attend_explain(const struct attend_request *r, const struct subject *s,
                           const sb_example_attention *at)
{
    printf("\nRows: %s. Columns: %s.\n%c%s attention, layer %lld of %d, ", at->rows, at->columns,
           at->name[0] - 'a' + 'A', at->name + 1, (long long)(r->layer ? r->layer : at->layers),
           at->layers);
    if (r->head)
        printf("head %lld of %lld.\n", (long long)r->head, (long long)s->example.heads);
    else
        printf("mean over %lld heads.\n", (long long)s->example.heads);
    if (!r->numbers)
        puts("░ from 5 %, ▒ from 20 %, ▓ from 40 %, █ from 70 % of the attention.");
}

static bool attend_show(const struct attend_request *r, const struct subject *s)
{
    const sb_example_attention *at = subject_attention(s, r->attention);
    if (!at || !attend_check_place(r, s, at))
        return false;
    const char *target = s->example.target;
    unknown_note(utf8_quote(r->text).text, s->example.attention[0].keys.vocabulary, r->text);
    printf(target ? "%s -> " : "%s", foreign(r->text));
    printf("%s\n\n", target ? foreign(target) : "");
    if (!attend_run_and_draw(r, s, at))
        return false;
    attend_explain(r, s, at);
    return true;
}

static bool attend_run(struct options *o)
{
    struct attend_request r = {0};
    if (!options_read(o, &r))
        return false;
    if (!r.text)
        return command_misused("give a model file and a text");
    struct checkpoint *c = checkpoint_open(r.path, NULL);
    struct subject s = {0};
    const bool ok = c && subject_begin(&s, &c->subject, r.text, r.target) && attend_show(&r, &s);
    subject_end(&s);
    checkpoint_free(c);
    return ok || command_failed();
}

const struct command command_attend = {
    .summary = "draws a model's attention weights",
    .arguments = "MODEL TEXT",
    .help = "Draws a model's attention weights for a text.",
    .fields = attend_fields,
    .run = attend_run,
};
