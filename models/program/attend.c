/* softback attend: attention as a picture in the terminal. */
#include "autograd/tape.h"
#include "models/checkpoint.h"
#include "models/decoding.h"
#include "models/program/command.h"
#include "models/program/machine_options.h"
#include "models/program/options.h"
#include "models/program/unknown.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

enum { KEY_KIND = 1, KEY_LAYER, KEY_HEAD, KEY_TARGET, KEY_NUMBERS };

enum kind { CROSS, ENCODER, DECODER, KINDS };

static const char *const kind_names[] = {"cross", "encoder", "decoder"};
static const char *const kind_titles[] = {"Cross", "Encoder", "Decoder"};

struct request {
    enum kind kind;
    int64_t layer, head; /* from 1; 0: the last layer, the mean over heads */
    const char *target;  /* instead of what the model would say */
    bool numbers;
    const char *path, *text;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *r = state->input;
    switch (key) {
    case KEY_KIND:
        for (r->kind = 0; r->kind < KINDS && strcmp(kind_names[r->kind], argument) != 0;)
            r->kind++;
        if (r->kind == KINDS)
            argp_failure(state, EXIT_USAGE, 0, "--kind: \"%s\" is none of cross, encoder, decoder",
                         argument);
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
            argp_failure(state, EXIT_USAGE, 0, "one text at a time; \"%s\" is too much", argument);
        *(r->path ? &r->text : &r->path) = argument;
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

/* The weight of row i and column j: of a head, or the mean over all. */
static double weight(const sb_tensor *w, int64_t head, int64_t i, int64_t j)
{
    int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t h = 0; h < H; h++)
        if (head == 0 || h == head - 1)
            sum += sb_get(w, (h * Lq + i) * Lk + j);
    return head == 0 ? sum / (double)H : sum;
}

/* How many columns a code point takes: none for a combining accent, two for East Asian ones. */
static int width_of(int32_t c)
{
    if (c >= 0x300 && c < 0x370)
        return 0;
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
                (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
                (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
                (c >= 0xffe0 && c < 0xffe7) || (c >= 0x1f300 && c < 0x1f650) ||
                (c >= 0x20000 && c < 0x3fffe);
    return wide ? 2 : 1;
}

static int columns(const char *text)
{
    int n = 0;
    size_t size = strlen(text), at = 0;
    for (int32_t c; (c = utf8_next(text, size, &at)) >= 0;)
        n += width_of(c);
    return n;
}

/* What stands for a symbol: spaces are made visible, control characters harmless. */
static const char *label(const sb_vocabulary *vocabulary, int32_t id)
{
    static char text[256];
    snprintf(text, sizeof text, "%s",
             id == SB_UNKNOWN ? "\uFFFD" : sb_vocabulary_symbol(vocabulary, id));
    for (char *at = text; *at; at++)
        if (*at == ' ')
            *at = '_';
        else if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return text;
}

struct axis {
    const sb_vocabulary *vocabulary;
    const int32_t *ids;
    int64_t length;
};

static int widest(struct axis axis)
{
    int most = 1;
    for (int64_t i = 0; i < axis.length; i++) {
        int n = columns(label(axis.vocabulary, axis.ids[i]));
        most = n > most ? n : most;
    }
    return most;
}

static void pad(int n)
{
    for (; n > 0; n--)
        putchar(' ');
}

static void print_cell(double w, int width, bool numbers)
{
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    if (numbers) {
        printf(" %*.2f", width, w);
        return;
    }
    int shade = w < 0.05 ? 0 : w < 0.2 ? 1 : w < 0.4 ? 2 : w < 0.7 ? 3 : 4;
    putchar(' ');
    for (int i = 0; i < width; i++)
        fputs(shades[shade], stdout);
}

static void draw(const sb_tensor *w, int64_t head, struct axis rows, struct axis cols, bool numbers)
{
    int margin = widest(rows), width = widest(cols);
    width = numbers && width < 4 ? 4 : width;
    pad(margin);
    for (int64_t j = 0; j < cols.length; j++) {
        const char *text = label(cols.vocabulary, cols.ids[j]);
        int spare = width - columns(text);
        pad(1 + (numbers ? spare : 0));
        fputs(text, stdout);
        pad(numbers ? 0 : spare);
    }
    putchar('\n');
    for (int64_t i = 0; i < rows.length; i++) {
        const char *text = label(rows.vocabulary, rows.ids[i]);
        pad(margin - columns(text));
        fputs(text, stdout);
        for (int64_t j = 0; j < cols.length; j++)
            print_cell(weight(w, head, i, j), width, numbers);
        putchar('\n');
    }
}

static bool check_place(const struct request *r, const sb_seq2seq *model)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    bool encoder = r->kind == ENCODER;
    int layers = encoder ? o->encoder_layers : o->decoder_layers;
    if (r->layer > layers)
        return sb_fail("--layer: there is no layer %lld; the %s's last one is %d",
                       (long long)r->layer, encoder ? "encoder" : "decoder", layers);
    if (r->head > o->heads)
        return sb_fail("--head: there is no head %lld; the last one is %lld", (long long)r->head,
                       (long long)o->heads);
    return true;
}

/* Runs the model on the pair and draws the weights that are asked for. */
static bool run_and_draw(const struct request *r, const sb_seq2seq *model,
                         const sb_encoded_pair *pair, int32_t *heard)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    size_t layers = (size_t)(o->encoder_layers + 2 * o->decoder_layers);
    sb_tensor **all = memory_new(layers * sizeof(sb_tensor *));
    sb_batch *batch = sb_batch_new(1, pair);
    bool ok = all && batch;
    if (ok) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_NO_RECORD);
        sb_tensor **self = all + o->encoder_layers, **cross = self + o->decoder_layers;
        sb_seq2seq_weights weights = {all, {self, cross}};
        ok = sb_seq2seq_logits(model, batch, &weights) != NULL;
        sb_tensor **kind = r->kind == ENCODER ? all : r->kind == DECODER ? self : cross;
        int last = r->kind == ENCODER ? o->encoder_layers : o->decoder_layers;
        struct axis source = {sb_seq2seq_source(model), pair->source, pair->source_length};
        struct axis said = {sb_seq2seq_target(model), pair->target, pair->target_length + 1};
        struct axis in = {sb_seq2seq_target(model), heard, pair->target_length + 1};
        struct axis rows = r->kind == ENCODER ? source : said;
        struct axis cols = r->kind == DECODER ? in : source;
        if (ok)
            draw(kind[r->layer ? r->layer - 1 : last - 1], r->head, rows, cols, r->numbers);
        sb_tape_end(&tape);
    }
    sb_batch_free(batch);
    memory_free(all);
    return ok;
}

/* The pair's target with the end behind it, and what the decoder hears: begin, then the target. */
static bool draw_pair(const struct request *r, const sb_seq2seq *model, const char *target)
{
    sb_encoded_pair pair = {0};
    int32_t *source =
        sb_vocabulary_encode(sb_seq2seq_source(model), r->text, &pair.source_length, NULL);
    int32_t *plain =
        source ? sb_vocabulary_encode(sb_seq2seq_target(model), target, &pair.target_length, NULL)
               : NULL;
    size_t n = (size_t)pair.target_length;
    int32_t *said = plain ? memory_new((n + 1) * sizeof *said) : NULL;
    int32_t *heard = said ? memory_new((n + 1) * sizeof *heard) : NULL;
    bool ok = heard != NULL;
    if (ok) {
        memcpy(said, plain, n * sizeof *said);
        memcpy(heard + 1, plain, n * sizeof *heard);
        said[n] = SB_END;
        heard[0] = SB_BEGIN;
        pair.source = source;
        pair.target = said;
        printf("%s -> %s\n\n", r->text, target);
        ok = run_and_draw(r, model, &pair, heard);
    }
    sb_free(source);
    sb_free(plain);
    sb_free(said);
    sb_free(heard);
    return ok;
}

static void explain(const struct request *r, const sb_transformer_options *o)
{
    static const char *const axes[] = {
        "Rows: what is written. Columns: the symbols of the text that it looks at.",
        "Rows: the symbols of the text. Columns: those that they look at.",
        "Rows: what is written. Columns: what was written before, which it looks at."};
    int last = r->kind == ENCODER ? o->encoder_layers : o->decoder_layers;
    printf("\n%s\n%s attention, layer %lld of %d, ", axes[r->kind], kind_titles[r->kind],
           (long long)(r->layer ? r->layer : last), last);
    if (r->head)
        printf("head %lld of %lld.\n", (long long)r->head, (long long)o->heads);
    else
        printf("mean over %lld heads.\n", (long long)o->heads);
    if (!r->numbers)
        puts("░ from 5 %, ▒ from 20 %, ▓ from 40 %, █ from 70 % of the attention.");
}

static int attend(const struct request *r)
{
    struct checkpoint *c = checkpoint_load(r->path);
    bool ok = c && check_place(r, c->model);
    if (ok)
        unknown_note("attend", utf8_quote(r->text).text, sb_seq2seq_source(c->model), r->text);
    char *said = ok && !r->target ? sb_translate(c->model, r->text, NULL) : NULL;
    ok = ok && (said || r->target) && draw_pair(r, c->model, r->target ? r->target : said);
    if (ok)
        explain(r, &sb_seq2seq_options_of(c->model)->transformer);
    sb_free(said);
    checkpoint_free(c);
    return ok ? EXIT_OK : command_failed("attend");
}

static int run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"kind", KEY_KIND, "WORD", 0, "attention [cross, encoder, decoder; default cross]", 0},
        {"layer", KEY_LAYER, "N", 0, "layer, from 1 [the last]", 0},
        {"head", KEY_HEAD, "N", 0, "head, from 1 [the mean over all]", 0},
        {"target", KEY_TARGET, "TEXT", 0, "draw this output instead of the model's own", 0},
        {"numbers", KEY_NUMBERS, NULL, 0, "numbers instead of shades", 0},
        MACHINE_OPTIONS(0),
        {0}};
    const struct argp argp = {
        options, parse, "MODEL TEXT", "Draws what a model looks at while it translates a text.",
        NULL,    NULL,  NULL};
    struct request request = {0};
    int wrong = command_parse(&argp, "attend", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    if (!request.text)
        return command_misused("attend", "a model's file and a text are wanted");
    return attend(&request);
}

const struct command command_attend = {"attend", "draws a model's attention", run};
