/* softback explain: explanations whose numbers the library computes when it prints them. */
#include "program/commands/explain_model.h"
#include "program/options/machine.h"
#include "program/options/nearest.h"
#include "program/screen/terminal.h"
#include "teach/explain/topic.h"
#include "teach/report/jacobian.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct explain_request {
    const char *topic;
    bool json, svg;
    struct explain_options options;
    struct model_request model;
};

/* "2,1,0.1,-1" */
static bool explain_take_list(struct command_option *option, const char *value)
{
    struct numbers *list = option->to;
    char *end;
    list->count = 0;
    for (const char *at = value;; at = end + 1) {
        const double x = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(x))
            return sb_fail("--%s: \"%.*s\" is not a number; give numbers with commas between them, "
                           "such as 2,1,0.1,-1",
                           option->field.name, (int)strcspn(at, ","), at);
        if (list->count == EXPLAIN_NUMBERS)
            return sb_fail("--%s: there are more than %d numbers", option->field.name,
                           EXPLAIN_NUMBERS);
        list->value[list->count++] = x;
        if (!*end)
            return true;
    }
}

static void explain_option_list(struct options *o, const char *name, struct explain_request *r,
                                enum explain_list list, const char *help)
{
    o->kind = 1u << list;
    option_take(o, name, "LIST", explain_take_list, &r->options.list[list], help);
}

/* The kinds of options are what topics take. */
static void explain_options(struct options *o, struct explain_request *r)
{
    struct explain_options *e = &r->options;
    explain_option_list(o, "scores", r, SCORES, "scores of a softmax, such as 2,1,0.1,-1");
    explain_option_list(o, "upstream", r, UPSTREAM, "upstream gradient dL/da of each weight");
    explain_option_list(o, "mask", r, KEPT, "1 for each score that the mask keeps, else 0");
    explain_option_list(o, "values", r, VALUES, "flash: a value for each score");
    explain_option_list(o, "logits", r, LOGITS, "cross-entropy: the logits [0,60,120]");
    explain_option_list(o, "periods", r, PERIODS, "positions: periods of the sine waves [5,7]");
    o->kind = TAKES_TEMPERATURE;
    option_number(o, "temperature", &e->temperature, 0, 1e6, "divisor of the scores [1]")
        ->field.zero = ZERO_IS_DEFAULT_ALONE;
    o->kind = TAKES_BLOCK;
    option_count(o, "block", &e->block, 1, EXPLAIN_NUMBERS, "flash: scores of a block [2]");
    o->kind = TAKES_TARGET;
    option_count(o, "class", &e->target, 0, EXPLAIN_NUMBERS - 1,
                 "cross-entropy, hessian: the target class, from 0 [0]");
    o->kind = TAKES_STEPS;
    option_count(o, "steps", &e->steps, 1, 1000000, "wrong-gradient: training steps of each model");
    o->kind = TAKES_SEED;
    option_count(o, "seed", &e->seed, 1, INT32_MAX, "wrong-gradient: the first of three seeds [1]");
    o->kind = TAKES_WIDTH;
    option_count(o, "width", &e->width, 1, 1024, "saturated-rows: size of queries and keys [64]");
    o->kind = 0;
    option_threads(o);
    option_group(o, NULL);
    options_of_stored_model(o, &r->model);
    o->kind = TAKES_SVG;
    option_flag(o, "svg", &r->svg, "softmax: print its Jacobian as an SVG image");
    o->kind = TAKES_REFERENCE;
    option_flag(o, "reference", &r->options.reference,
                "softmax, attention, layer_norm: add the documentation in ops.h");
    option_flag(o, "code", &r->options.code, "an operation: print its C, the loops of ops/plain/");
    o->kind = 0;
    option_flag(o, "json", &r->json, "print one JSON object instead of text");
    options_arguments(o, &r->topic, NULL, "give one topic, or the number of a lesson");
}

static const char *explain_topic_name(const void *unused, int i)
{
    int topics = 0;
    while (topic_at(topics))
        topics++;
    return i < topics ? topic_at(i)->name : operation_name(unused, i - topics);
}

static int explain_list_topics(void)
{
    for (int i = 0; topic_at(i); i++)
        printf("  %-15s %s\n", topic_at(i)->name, topic_at(i)->summary);
    puts("  OPERATION       any operation, such as layer_norm: its formulas, checked\n"
         "  NUMBER          1 to 10: the topic of this lesson\n\n"
         "'softback explain TOPIC' explains one of them. Read from top to bottom at first:\n"
         "they follow the lessons, from 1 (softmax) to 10 (tape), and then go beyond them.");
    return EXIT_OK;
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
    if (topic_named(name) || operation_named(name))
        return name;
    for (int i = 0; explain_topic_name(NULL, i); i++)
        if (explain_same(name, explain_topic_name(NULL, i)))
            return explain_topic_name(NULL, i);
    return name;
}

static int explain_unknown_topic(const char *name)
{
    const char *nearest = nearest_word(name, explain_topic_name, NULL);
    return nearest ? command_misused("explain", "there is no topic \"%s\"; did you mean \"%s\"?",
                                     name, nearest)
                   : command_misused("explain", "there is no topic \"%s\"", name);
}

static int explain_draw(const struct explain_options *options)
{
    const struct row row = row_of_options(options);
    char *svg = jacobian_svg(&row);
    if (svg)
        fputs(svg, stdout);
    memory_free(svg);
    return svg ? EXIT_OK : command_failed("explain");
}

static int explain(const struct options *o, const struct explain_request *r)
{
    const struct topic *topic = topic_named(r->topic);
    if (!topic && !operation_named(r->topic))
        return explain_unknown_topic(r->topic);
    const char *of_model = options_given(o, OF_MODEL),
               *not_taken = options_given(o, TAKES_ANY & ~(topic ? topic->takes : TAKES_REFERENCE));
    if (not_taken)
        return command_misused("explain", "--%s is not an option of %s", not_taken, r->topic);
    if (of_model && options_given(o, TAKES_ANY))
        return command_misused("explain", "--%s does not go with options of a row", of_model);
    if (of_model)
        return explain_model(o, r->topic, &r->model, r->json);
    if (topic && topic->check && !topic->check(&r->options))
        return command_misused("explain", "%s", sb_error());
    if (r->svg && r->json)
        return command_misused("explain", "--svg and --json exclude each other");
    if (r->svg)
        return explain_draw(&r->options);
    bool waits = topic && topic->takes & TAKES_STEPS && isatty(STDERR_FILENO);
    fputs(waits ? "training four models takes some seconds ..." : "", stderr);
    struct page *page =
        topic ? topic_page(topic, &r->options) : operation_page(r->topic, r->options.code);
    fputs(waits ? "\r\033[K" : "", stderr);
    char *text = NULL;
    if (page)
        text =
            r->json ? page_as_json(page) : page_as_text(page, terminal_has_colour(STDOUT_FILENO));
    if (text)
        fputs(text, stdout);
    memory_free(text);
    page_free(page);
    return text ? EXIT_OK : command_failed("explain");
}

static int explain_run(struct options *o)
{
    struct explain_request request = {0};
    explain_options(o, &request);
    const int wrong = options_read(o);
    if (wrong >= 0)
        return wrong;
    if (!request.topic)
        return explain_list_topics();
    request.topic = explain_meant(request.topic);
    return explain(o, &request);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "explains softmax, attention and operations, with computed numbers",
    .arguments = "[TOPIC]",
    .help = "Explains softmax, attention and their gradients, or any operation, with numbers that "
            "the library computes. Without a topic it lists the topics.",
    .run = explain_run,
};
