/* softback attend: attention as a picture in the terminal. */
#include "program/commands/attend.h"
#include "autograd/tape.h"
#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "program/screen/machine_options.h"
#include "program/screen/options.h"
#include "program/screen/terminal.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEY_KIND = 1, KEY_LAYER, KEY_HEAD, KEY_TARGET, KEY_NUMBERS };

static const char *const kind_names[] = {"cross", "encoder", "decoder"};
static const char *const kind_titles[] = {"Cross", "Encoder", "Decoder"};

static error_t attend_parse(int key, char *argument, struct argp_state *state)
{
    struct attend_request *r = state->input;
    switch (key) {
    case KEY_KIND:
        for (int kind = 0; kind < 3; kind++)
            if (strcmp(kind_names[kind], argument) == 0) {
                r->kind = (enum attention_kind)kind;
                r->kind_given = true;
                return 0;
            }
        options_refuse(state, "--kind: \"%s\" is none of cross, encoder, decoder", argument);
        return 0;
    case KEY_LAYER:
        r->layer = options_count(state, "layer", argument, 1, 1000);
        return 0;
    case KEY_HEAD:
        r->head = options_count(state, "head", argument, 1, 1 << 16);
        return 0;
    case KEY_TARGET:
        r->target = argument;
        return 0;
    case KEY_NUMBERS:
        r->numbers = true;
        return 0;
    case ARGP_KEY_ARG:
        if (r->text)
            options_refuse(state, "unexpected argument \"%s\"; give one text, in quotes", argument);
        *(r->path ? &r->text : &r->path) = argument;
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

/* The weight in row i and column j: that of one head, or the mean over heads. */
static double attend_weight(const sb_tensor *w, int64_t head, int64_t i, int64_t j)
{
    int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t h = 0; h < H; h++)
        if (head == 0 || h == head - 1)
            sum += sb_tensor_get(w, (h * Lq + i) * Lk + j);
    return head == 0 ? sum / (double)H : sum;
}

static int attend_widest(const struct subject_axis *axis)
{
    int most = 1;
    for (int64_t i = 0; i < axis->length; i++) {
        int n = utf8_columns(subject_label(axis, i).text);
        most = n > most ? n : most;
    }
    return most;
}

static void attend_pad(int n)
{
    for (; n > 0; n--)
        putchar(' ');
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

void attend_draw(const sb_tensor *w, int64_t head, const struct subject_axis *rows,
                 const struct subject_axis *cols, bool numbers)
{
    int margin = attend_widest(rows), width = attend_widest(cols);
    width = numbers && width < 4 ? 4 : width;
    attend_pad(margin);
    for (int64_t j = 0; j < cols->length; j++) {
        const struct subject_label label = subject_label(cols, j);
        int spare = width - utf8_columns(label.text);
        attend_pad(1 + (numbers ? spare : 0));
        fputs(label.text, stdout);
        attend_pad(numbers ? 0 : spare);
    }
    putchar('\n');
    for (int64_t i = 0; i < rows->length; i++) {
        const struct subject_label label = subject_label(rows, i);
        attend_pad(margin - utf8_columns(label.text));
        fputs(label.text, stdout);
        for (int64_t j = 0; j < cols->length; j++)
            attend_print_cell(attend_weight(w, head, i, j), width, numbers);
        putchar('\n');
    }
}

static bool attend_check_place(const struct attend_request *r, const sb_seq2seq *model)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    bool encoder = r->kind == ENCODER_ATTENTION;
    int layers = encoder ? o->encoder_layers : o->decoder_layers;
    if (r->layer > layers)
        return sb_fail("--layer: there is no layer %lld; the %s's last one is %d",
                       (long long)r->layer, encoder ? "encoder" : "decoder", layers);
    if (r->head > o->heads)
        return sb_fail("--head: there is no head %lld; the last one is %lld", (long long)r->head,
                       (long long)o->heads);
    return true;
}

/* Runs the model on the pair and draws the requested weights. */
static bool attend_run_and_draw(const struct attend_request *r, const struct subject *subject)
{
    const int encoder = subject_layers(subject, ENCODER_ATTENTION),
              decoder = subject_layers(subject, DECODER_ATTENTION);
    sb_tensor **all = memory_new((size_t)(encoder + 2 * decoder) * sizeof(sb_tensor *));
    if (!all)
        return sb_fail("out of memory for the weights of %d layers", encoder + decoder);
    sb_tensor **self = all + encoder, **cross = self + decoder;
    const sb_seq2seq_weights weights = {all, {self, cross}};
    sb_tensor **kind = r->kind == ENCODER_ATTENTION   ? all
                       : r->kind == DECODER_ATTENTION ? self
                                                      : cross;
    const struct subject_axis rows = subject_queries(subject, r->kind),
                              cols = subject_keys(subject, r->kind);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = sb_seq2seq_logits(subject->checkpoint->model, subject->batch, &weights) != NULL;
    if (ok)
        attend_draw(kind[(r->layer ? r->layer : subject_layers(subject, r->kind)) - 1], r->head,
                    &rows, &cols, r->numbers);
    memory_free(all);
    return sb_tape_end(&tape) && ok;
}

void attend_explain(const struct attend_request *r, const char *axes, const char *title, int layers,
                    int64_t heads)
{
    printf("\n%s\n%s attention, layer %lld of %d, ", axes, title,
           (long long)(r->layer ? r->layer : layers), layers);
    if (r->head)
        printf("head %lld of %lld.\n", (long long)r->head, (long long)heads);
    else
        printf("mean over %lld heads.\n", (long long)heads);
    if (!r->numbers)
        puts("░ from 5 %, ▒ from 20 %, ▓ from 40 %, █ from 70 % of the attention.");
}

static void attend_explain_pair(const struct attend_request *r, const sb_transformer_options *o)
{
    static const char *const axes[] = {
        "Rows: output symbols. Columns: the source symbols that they attend to.",
        "Rows: source symbols. Columns: the source symbols that they attend to.",
        "Rows: output symbols. Columns: the earlier symbols that they attend to."};
    attend_explain(r, axes[r->kind], kind_titles[r->kind],
                   r->kind == ENCODER_ATTENTION ? o->encoder_layers : o->decoder_layers, o->heads);
}

static bool attend_pair(const struct attend_request *r)
{
    struct subject subject;
    bool ok = subject_open(&subject, r->path, r->text, r->target);
    if (ok) {
        const sb_seq2seq *model = subject.checkpoint->model;
        ok = attend_check_place(r, model);
        if (ok) {
            unknown_note("attend", utf8_quote(r->text).text, sb_seq2seq_source(model), r->text);
            printf("%s -> %s\n\n", foreign(r->text), foreign(subject.target));
            ok = attend_run_and_draw(r, &subject);
        }
        if (ok)
            attend_explain_pair(r, &sb_seq2seq_options_of(model)->transformer);
        subject_close(&subject);
    }
    return ok;
}

static int attend(const struct attend_request *r)
{
    struct checkpoint *c = checkpoint_load_any(r->path);
    const bool ok = c && (c->model ? attend_pair(r) : attend_text(r, c));
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("attend");
}

static int attend_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"kind", KEY_KIND, "WORD", 0,
         "attention: cross, or encoder, decoder (self-attention) [cross]", 0},
        {"layer", KEY_LAYER, "N", 0, "layer, from 1 [the last]", 0},
        {"head", KEY_HEAD, "N", 0, "head, from 1 [the mean over heads]", 0},
        {"target", KEY_TARGET, "TEXT", 0, "target text [the model's output]", 0},
        {"numbers", KEY_NUMBERS, NULL, 0, "print numbers instead of shades", 0},
        MACHINE_OPTIONS(0),
        {0}};
    const struct argp argp = {
        options, attend_parse, "MODEL TEXT", "Draws a model's attention weights for a text.",
        NULL,    NULL,         NULL};
    struct attend_request request = {0};
    int wrong = command_parse(&argp, "attend", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.text)
        return command_misused("attend", "give a model file and a text");
    return attend(&request);
}

const struct command command_attend = {"attend", "draws a model's attention weights", attend_run};
