/* softback explain: explanations whose numbers the library computes when it prints them. */
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/run/stored_twin.h"
#include "program/screen/foreign.h"
#include "teach/explain/model.h"
#include "teach/explain/topic.h"
#include "teach/report/report.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A stored model and one text, for attention and tape, or a batch, for hessian. */
struct model_request {
    const char *text, *target;         /* target NULL: the model's output */
    struct stored_twin_request stored; /* the model, and for hessian its batch */
    struct model_place place;
    bool dot;
};

/* Kinds of options: those of a stored model, and the topics' own. */
enum {
    OF_FILE = TAKES_REFERENCE << 1,
    OF_TEXT = TAKES_REFERENCE << 2,
    OF_PLACE = TAKES_REFERENCE << 3,
    OF_DRAWING = TAKES_REFERENCE << 4,
    OF_BATCH = TAKES_REFERENCE << 5,
    OF_MODEL = OF_FILE | OF_TEXT | OF_PLACE | OF_DRAWING | OF_BATCH,
    TAKES_ANY = OF_FILE - 1
};

struct explain_request {
    const char *topic;
    bool json, svg;
    struct explain_options options;
    struct model_request model;
};

/* "2,1,0.1,-1" */
static bool explain_take_list(const struct field *field, void *request, const char *value)
{
    struct numbers *list = (void *)((char *)request + field->at);
    char *end;
    list->count = 0;
    for (const char *at = value;; at = end + 1) {
        const double x = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(x))
            return sb_fail("--%s: \"%.*s\" is not a number; give numbers with commas between them, "
                           "such as 2,1,0.1,-1",
                           field->name, (int)strcspn(at, ","), at);
        if (list->count == EXPLAIN_NUMBERS)
            return sb_fail("--%s: there are more than %d numbers", field->name, EXPLAIN_NUMBERS);
        list->value[list->count++] = x;
        if (!*end)
            return true;
    }
}

#define ROW(member) FIELD(struct explain_request, member)
#define LIST(which)                                                                                \
    TAKEN(struct explain_request, options.list[which], explain_take_list),                         \
        .kind = 1u << (which), .argument = "LIST", .help

/* The kinds of options are what topics take. */
static const struct field explain_fields[] = {
    {"scores", LIST(SCORES) = "scores of a softmax, such as 2,1,0.1,-1"},
    {"upstream", LIST(UPSTREAM) = "upstream gradient dL/da of each weight"},
    {"mask", LIST(KEPT) = "1 for each score that the mask keeps, else 0"},
    {"values", LIST(VALUES) = "flash: a value for each score"},
    {"logits", LIST(LOGITS) = "cross-entropy: the logits [0,60,120]"},
    {"periods", LIST(PERIODS) = "positions: periods of the sine waves [5,7]"},
    {"temperature", ROW(options.temperature), "divisor of the scores [1]", 0, 1e6,
     .kind = TAKES_TEMPERATURE, .zero = ZERO_IS_DEFAULT_ALONE},
    {"block", ROW(options.block), "flash: scores of a block [2]", 1, EXPLAIN_NUMBERS,
     .kind = TAKES_BLOCK},
    {"class", ROW(options.target), "cross-entropy, hessian: the target class, from 0 [0]", 0,
     EXPLAIN_NUMBERS - 1, .kind = TAKES_TARGET},
    {"steps", ROW(options.steps), "wrong-gradient: training steps of each model", 1, 1000000,
     .kind = TAKES_STEPS},
    {"seed", ROW(options.seed), "wrong-gradient: the first of three seeds [1]", 1, INT32_MAX,
     .kind = TAKES_SEED},
    {"width", ROW(options.width), "saturated-rows: size of queries and keys [64]", 1, 1024,
     .kind = TAKES_WIDTH},
    {.rows = threads_fields},
    {HEADING("")},
    {"model", ROW(model.stored.path), "attention, hessian, tape: the model file",
     .argument = "FILE", .kind = OF_FILE},
    {"input", ROW(model.text), "attention, tape: the source text", .argument = "TEXT",
     .kind = OF_TEXT},
    {"target", ROW(model.target), "target text [the model's output]", .argument = "TEXT",
     .kind = OF_TEXT},
    {"kind", ROW(model.place.attention), "attention: cross, encoder or decoder [cross]",
     .argument = "WORD", .kind = OF_PLACE, .take = option_take_attention},
    {"layer", ROW(model.place.layer), "attention: its layer, from 1 [the last]", 1, 1000,
     .kind = OF_PLACE},
    {"head", ROW(model.place.head), "attention: its head, from 1 [1]", 1, 1 << 16,
     .kind = OF_PLACE},
    {"row", ROW(model.place.row), "attention: the row, from 1 [1]", 1, 1 << 16, .kind = OF_PLACE},
    {"dot", ROW(model.dot), "tape: print Graphviz instead of SVG", .kind = OF_DRAWING},
    {"data", ROW(model.stored.data), "hessian: pairs, lines of source, tab, target",
     .argument = "FILE", .kind = OF_BATCH},
    {"task", ROW(model.stored.task), "hessian: held-out pairs of a built-in task",
     .argument = "NAME", .kind = OF_BATCH, .take = option_take_task},
    {"count", ROW(model.stored.count), "hessian: number of pairs [16]", 1, 1 << 16,
     .kind = OF_BATCH},
    {"svg", ROW(svg), "softmax: print its Jacobian as an SVG image", .kind = TAKES_SVG},
    {"reference", ROW(options.reference),
     "softmax, attention, layer_norm: add the documentation in ops.h", .kind = TAKES_REFERENCE},
    {"code", ROW(options.code), "an operation: print its C, loops of ops/plain/",
     .kind = TAKES_REFERENCE},
    {"json", ROW(json), "print one JSON object instead of text"},
    {ARGUMENT, ROW(topic), "give one topic, or the number of a lesson"},
    {0}};
#undef ROW
#undef LIST

static const char *explain_topic_name(const void *unused, int i)
{
    int topics = 0;
    while (topic_at(topics))
        topics++;
    return i < topics ? topic_at(i)->name : operation_name(unused, i - topics);
}

static bool explain_list_topics(void)
{
    for (int i = 0; topic_at(i); i++)
        printf("  %-15s %s\n", topic_at(i)->name, topic_at(i)->summary);
    puts("  OPERATION       any operation, such as layer_norm: its formulas, checked\n"
         "  NUMBER          1 to 10: the topic of this lesson\n\n"
         "'softback explain TOPIC' explains one of them. Read from top to bottom at first:\n"
         "they follow the lessons, from 1 (softmax) to 10 (tape), and then go beyond them.");
    return true;
}

/* Whether names are the same when - stands for _. */
static bool explain_same(const char *a, const char *b)
{
    while (*a && *b && (*a == *b || (strchr("-_", *a) && strchr("-_", *b))))
        a++, b++;
    return *a == *b;
}

/* The topic or operation that is meant: also with - for _, or by the number of a lesson. */
static const char *explain_meant(const char *name)
{
    static const char *const of_lesson[] = {
        "softmax",       "softmax",        "softmax", "wrong-gradient", "gradcheck",
        "cross-entropy", "saturated-rows", "mask",    "flash",          "tape"};
    char *end;
    const long lesson = strtol(name, &end, 10);
    if (!*end && lesson >= 1 && lesson <= (long)(sizeof of_lesson / sizeof of_lesson[0]))
        return of_lesson[lesson - 1];
    if (topic_named(name) || operation_comment(name))
        return name;
    for (int i = 0; explain_topic_name(NULL, i); i++)
        if (explain_same(name, explain_topic_name(NULL, i)))
            return explain_topic_name(NULL, i);
    return name;
}

/* Frees the page. */
static char *explain_page_text(struct page *page, bool json)
{
    char *text = NULL;
    if (page)
        text = json ? page_as_json(page) : page_as_text(page, terminal_has_colour(STDOUT_FILENO));
    page_free(page);
    return text;
}

/* Frees the text; NULL: it could not be made. */
static bool explain_print(char *text)
{
    if (text)
        fputs(text, stdout);
    memory_free(text);
    return text || command_failed();
}

/* ---- of a stored model ---- */

static char *explain_of_text(const char *topic, const struct model_request *r, bool json)
{
    struct checkpoint *c = checkpoint_open(r->stored.path, NULL);
    struct subject subject = {0};
    char *text = NULL;
    if (c && subject_begin(&subject, &c->subject, r->text, r->target))
        text = strcmp(topic, "tape") == 0
                   ? model_tape(&subject, r->dot ? drawing_dot : drawing_svg)
                   : explain_page_text(model_row_page(&subject, &r->place), json);
    subject_end(&subject);
    checkpoint_free(c);
    return text;
}

static char *explain_of_batch(const struct model_request *r, bool json)
{
    struct stored_twin stored;
    const bool waits = isatty(STDERR_FILENO);
    fputs(waits ? "products with the Hessian take some seconds ..." : "", stderr);
    char *text = stored_twin_open(&stored, &r->stored)
                     ? explain_page_text(model_hessian_page(&stored.twin), json)
                     : NULL;
    fputs(waits ? "\r\033[K" : "", stderr);
    stored_twin_close(&stored);
    return text;
}

static bool explain_check_model(const struct options *o, const char *topic,
                                const struct model_request *r, bool json)
{
    const bool tape = strcmp(topic, "tape") == 0, hessian = strcmp(topic, "hessian") == 0,
               attention = strcmp(topic, "attention") == 0;
    const char *other = options_given(o, hessian             ? OF_TEXT | OF_PLACE | OF_DRAWING
                                         : tape || attention ? OF_BATCH
                                                             : OF_MODEL);
    if (other)
        return command_misused("--%s is not an option of %s", other, topic);
    if (hessian)
        return (r->stored.path && !r->stored.data != !r->stored.task) ||
               command_misused("give --model FILE and either --data FILE or --task NAME");
    return ((r->stored.path && r->text) ||
            command_misused("give both --model FILE and --input TEXT")) &&
           (!tape || !(options_given(o, OF_PLACE) || json) ||
            command_misused("tape does not take %s",
                            json ? "--json" : "--kind, --layer, --head or --row")) &&
           (tape || !r->dot || command_misused("--dot is not an option of attention"));
}

/* ---- the command ---- */

static bool explain(const struct options *o, const struct explain_request *r)
{
    const struct topic *topic = topic_named(r->topic);
    if (!topic && !operation_comment(r->topic)) {
        const struct nearest_text near =
            nearest_name(r->topic, explain_topic_name, NULL, "\"", "\"");
        return command_misused("there is no topic \"%s\"%s", r->topic,
                               near.text[0] ? near.text : "; softback explain lists them");
    }
    const char *of_model = options_given(o, OF_MODEL),
               *not_taken = options_given(o, TAKES_ANY & ~(topic ? topic->takes : TAKES_REFERENCE));
    if (not_taken)
        return command_misused("--%s is not an option of %s", not_taken, r->topic);
    if (of_model && options_given(o, TAKES_ANY))
        return command_misused("--%s does not go with options of a row", of_model);
    if (of_model)
        return explain_check_model(o, r->topic, &r->model, r->json) &&
               explain_print(strcmp(r->topic, "hessian") == 0
                                 ? explain_of_batch(&r->model, r->json)
                                 : explain_of_text(r->topic, &r->model, r->json));
    if (topic && topic->check && !topic->check(&r->options))
        return command_misused("%s", sb_error());
    if (r->svg && r->json)
        return command_misused("--svg and --json exclude each other");
    if (r->svg) {
        const struct row row = row_of_options(&r->options);
        return explain_print(jacobian_svg(&row));
    }
    bool waits = topic && topic->takes & TAKES_STEPS && isatty(STDERR_FILENO);
    fputs(waits ? "training four models takes some seconds ..." : "", stderr);
    struct page *page = explain_page(r->topic, &r->options);
    fputs(waits ? "\r\033[K" : "", stderr);
    return explain_print(explain_page_text(page, r->json));
}

static bool explain_run(struct options *o)
{
    struct explain_request request = {.model.stored.count = 16};
    if (!options_read(o, &request))
        return false;
    if (!request.topic)
        return explain_list_topics();
    request.topic = explain_meant(request.topic);
    return explain(o, &request);
}

const struct command command_explain = {
    .summary = "explains softmax, attention and operations, with computed numbers",
    .arguments = "[TOPIC]",
    .help = "Explains softmax, attention and their gradients, or any operation, with numbers that "
            "the library computes. Without a topic it lists the topics.",
    .fields = explain_fields,
    .run = explain_run,
};
