/* softback explain: explanations whose numbers the library computes when it prints them. */
#include "program/commands/explain_model.h"
#include "program/screen/command.h"
#include "program/screen/machine_options.h"
#include "program/screen/nearest.h"
#include "program/screen/options.h"
#include "program/screen/terminal.h"
#include "teach/explain/topic.h"
#include "teach/report/jacobian.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_LIST = 1,
    KEY_TEMPERATURE = 20,
    KEY_BLOCK,
    KEY_TARGET,
    KEY_STEPS,
    KEY_SEED,
    KEY_WIDTH,
    KEY_SVG,
    KEY_JSON
};

struct explain_request {
    const char *topic;
    unsigned given;
    bool json, svg;
    struct explain_options options;
    struct model_request model;
};

static const char *const lists[EXPLAIN_LISTS] = {"scores", "upstream", "mask",
                                                 "values", "logits",   "periods"};
static const char *const others[] = {"temperature", "block", "target", "steps",
                                     "seed",        "width", "svg"};

/* "2,1,0.1,-1" */
static struct numbers explain_list_of(struct argp_state *state, const char *option,
                                      const char *argument)
{
    struct numbers list = {0};
    for (const char *at = argument;; at++) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(value))
            options_refuse(state,
                           "--%s: \"%.*s\" is not a number; give numbers with commas between them, "
                           "such as 2,1,0.1,-1",
                           option, (int)strcspn(at, ","), at);
        if (list.count == EXPLAIN_NUMBERS)
            options_refuse(state, "--%s: there are more than %d numbers", option, EXPLAIN_NUMBERS);
        list.value[list.count++] = value;
        at = end;
        if (!*at)
            return list;
    }
}

static double explain_positive(struct argp_state *state, const char *option, const char *argument)
{
    char *end;
    double value = strtod(argument, &end);
    if (end == argument || *end || !(value > 0 && isfinite(value)))
        options_refuse(state, "--%s: \"%s\" is not a number above 0", option, argument);
    return value;
}

static error_t explain_parse(int key, char *argument, struct argp_state *state)
{
    struct explain_request *r = state->input;
    if (key >= KEY_LIST && key < KEY_LIST + EXPLAIN_LISTS) {
        r->given |= 1u << (key - KEY_LIST);
        r->options.list[key - KEY_LIST] = explain_list_of(state, lists[key - KEY_LIST], argument);
        return 0;
    }
    if (key >= KEY_TEMPERATURE && key <= KEY_SVG)
        r->given |= (unsigned)TAKES_TEMPERATURE << (key - KEY_TEMPERATURE);
    switch (key) {
    case KEY_TEMPERATURE:
        r->options.temperature = explain_positive(state, "temperature", argument);
        return 0;
    case KEY_BLOCK:
        r->options.block = options_count(state, "block", argument, 1, EXPLAIN_NUMBERS);
        return 0;
    case KEY_TARGET:
        r->options.target = options_count(state, "target", argument, 0, EXPLAIN_NUMBERS - 1);
        return 0;
    case KEY_STEPS:
        r->options.steps = options_count(state, "steps", argument, 1, 1000000);
        return 0;
    case KEY_SEED:
        r->options.seed = options_count(state, "seed", argument, 0, INT32_MAX);
        return 0;
    case KEY_WIDTH:
        r->options.width = options_count(state, "width", argument, 1, 1024);
        return 0;
    case KEY_SVG:
        r->svg = true;
        return 0;
    case KEY_JSON:
        r->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (r->topic)
            options_refuse(state, "unexpected argument \"%s\"; give one topic", argument);
        r->topic = argument;
        return 0;
    default:
        return explain_model_option(key, argument, state, &r->model) == 0
                   ? 0
                   : machine_option(key, argument, state);
    }
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
    puts("  OPERATION       any operation, such as layer_norm: its formulas, checked\n\n"
         "'softback explain TOPIC' explains one of them.");
    return EXIT_OK;
}

/* Rejects options that the topic would silently ignore. -1 if there are none. */
static int explain_check_given(const char *topic, unsigned not_taken)
{
    for (int i = 0; i <= KEY_SVG - KEY_TEMPERATURE + EXPLAIN_LISTS; i++)
        if (not_taken >> i & 1)
            return command_misused("explain", "--%s is not an option of %s",
                                   i < EXPLAIN_LISTS ? lists[i] : others[i - EXPLAIN_LISTS], topic);
    return -1;
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

static int explain(const struct explain_request *r)
{
    const struct topic *topic = topic_named(r->topic);
    if (!topic && !operation_named(r->topic))
        return explain_unknown_topic(r->topic);
    int wrong = explain_check_given(r->topic, r->given & ~(topic ? topic->takes : 0));
    if (wrong >= 0)
        return wrong;
    if (r->model.given && r->given)
        return command_misused("explain", "--%s does not go with options of a row", r->model.given);
    if (r->model.given)
        return explain_model(r->topic, &r->model, r->json);
    if (topic && topic->check && !topic->check(&r->options))
        return command_misused("explain", "%s", sb_error());
    if (r->svg && r->json)
        return command_misused("explain", "--svg and --json exclude each other");
    if (r->svg)
        return explain_draw(&r->options);
    bool waits = topic && topic->takes & TAKES_STEPS && isatty(STDERR_FILENO);
    fputs(waits ? "training four models takes some seconds ..." : "", stderr);
    struct page *page = topic ? topic_page(topic, &r->options) : operation_page(r->topic);
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

static int explain_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"scores", KEY_LIST + SCORES, "LIST", 0, "scores of a softmax, such as 2,1,0.1,-1", 0},
        {"upstream", KEY_LIST + UPSTREAM, "LIST", 0, "upstream gradient dL/da of each weight", 0},
        {"mask", KEY_LIST + KEPT, "LIST", 0, "1 for each score that the mask keeps, else 0", 0},
        {"temperature", KEY_TEMPERATURE, "X", 0, "divisor of the scores [1]", 0},
        {"values", KEY_LIST + VALUES, "LIST", 0, "flash: a value for each score", 0},
        {"block", KEY_BLOCK, "N", 0, "flash: scores of a block [2]", 0},
        {"logits", KEY_LIST + LOGITS, "LIST", 0, "cross-entropy: the logits [0,60,120]", 0},
        {"target", KEY_TARGET, "N", 0, "cross-entropy, hessian: the target class, from 0 [0]", 0},
        {"periods", KEY_LIST + PERIODS, "LIST", 0, "positions: periods of the sine waves [5,7]", 0},
        {"steps", KEY_STEPS, "N", 0, "wrong-gradient: training steps of each model", 0},
        {"seed", KEY_SEED, "N", 0, "wrong-gradient: the first of three seeds [0]", 0},
        {"width", KEY_WIDTH, "N", 0, "saturated-rows: size of queries and keys [64]", 0},
        {"threads", KEY_THREADS, "N", 0, "threads to use; results do not depend on it [all cores]",
         0},
        EXPLAIN_MODEL_OPTIONS,
        {"svg", KEY_SVG, NULL, 0, "softmax: print its Jacobian as an SVG image", 0},
        {"json", KEY_JSON, NULL, 0, "print one JSON object instead of text", 0},
        {0}};
    const struct argp argp = {
        options,
        explain_parse,
        "[TOPIC]",
        "Explains softmax, attention and their gradients, or any operation, with numbers "
        "that the library computes. Without a topic it lists the topics.",
        NULL,
        NULL,
        NULL};
    struct explain_request request = {0};
    int wrong = command_parse(&argp, "explain", argc, argv, &request);
    if (wrong >= 0)
        return wrong;
    return request.topic ? explain(&request) : explain_list_topics();
}

const struct command command_explain = {
    "explain", "explains softmax, attention and operations, with computed numbers", explain_run};
