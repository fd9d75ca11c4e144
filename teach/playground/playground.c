/*
 * What the live page calls. Texts are pointers to UTF-8 that ends with a zero; a text or number
 * stays until the next call that computes one. Calls that can fail return 0 and leave a message.
 */
#include "teach/explain/model.h"
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include "teach/playground/training.h"
#include <stdio.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

EXPORT(message) const char *message(void)
{
    return sb_error();
}

/* ---- Pages of `softback explain`: options are set, a topic is opened, its cells are read. ---- */

static struct explain_options options;
static struct page *page;

static int turn_to(struct page *next)
{
    page_free(page);
    page = next;
    return next != NULL;
}

EXPORT(options_clear) void options_clear(void)
{
    options = (struct explain_options){0};
}

/* Adds a number to a list, an enum explain_list. */
EXPORT(options_add) void options_add(int list, double value)
{
    struct numbers *numbers = &options.list[list];
    if (numbers->count < EXPLAIN_NUMBERS)
        numbers->value[numbers->count++] = value;
}

EXPORT(options_set) void options_set(double temperature, int block, int width)
{
    options.temperature = temperature;
    options.block = block;
    options.width = width;
}

/* Those that the live page shows; the linker leaves out what only others need. */
static const struct topic *const topics[] = {&topic_softmax, &topic_flash, &topic_saturated_rows};
enum { TOPICS = sizeof topics / sizeof *topics };

EXPORT(explain) int explain(int i)
{
    if (i >= TOPICS || (topics[i]->check && !topics[i]->check(&options)))
        return 0;
    struct page *next = page_new(topics[i]->name);
    if (next)
        topics[i]->write(next, &options);
    if (!next || !next->failed)
        return turn_to(next);
    page_free(next);
    return 0;
}

EXPORT(topic_name) const char *topic_name(int i)
{
    return i < TOPICS ? topics[i]->name : NULL;
}

EXPORT(page_name) const char *page_name(void)
{
    return page->title;
}

EXPORT(page_parts) int page_parts(void)
{
    return (int)page->parts;
}

/* A paragraph; NULL where the part is a table. */
EXPORT(part_text) const char *part_text(int i)
{
    return page->part[i].text;
}

EXPORT(table_name) const char *table_name(int i)
{
    return page->part[i].table.name;
}

EXPORT(table_rows) int table_rows(int i)
{
    return page->part[i].table.rows;
}

EXPORT(table_columns) int table_columns(int i)
{
    return page->part[i].table.columns;
}

EXPORT(column_name) const char *column_name(int i, int column)
{
    return page->part[i].table.column[column].name;
}

static const struct page_cell *cell_at(int i, int row, int column)
{
    const struct page_table *table = &page->part[i].table;
    return &table->cells[row * table->columns + column];
}

/* A cell as the terminal shows it. */
EXPORT(cell_text) const char *cell_text(int i, int row, int column)
{
    static struct page_shown shown;
    const struct page_cell *cell = cell_at(i, row, column);
    if (cell->word)
        return cell->word;
    shown = page_show(&page->part[i].table.column[column], cell->number);
    return shown.text;
}

EXPORT(cell_number) double cell_number(int i, int row, int column)
{
    return cell_at(i, row, column)->number;
}

/* The Jacobian of the softmax of the scores, kept and temperature of the options: n x n numbers of
   which rows lie EXPLAIN_NUMBERS apart. */
EXPORT(jacobian) const double *jacobian(void)
{
    static double J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];
    struct row row = row_of(options.list[SCORES].count, options.list[SCORES].value);
    for (int i = 0; i < options.list[KEPT].count; i++)
        row.kept[i] = options.list[KEPT].value[i] != 0;
    row.temperature = options.temperature > 0 ? options.temperature : 1;
    return row_jacobian(&row, J) ? J[0] : NULL;
}

/* What each score passes to each other: flow[i][j] of the options' scores and upstream gradients,
   laid out as the Jacobian; and with the rule of rule_text, the ds of this row. */
static double square[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];

EXPORT(flow) const double *flow(void)
{
    double flat[EXPLAIN_NUMBERS * EXPLAIN_NUMBERS], a[EXPLAIN_NUMBERS] = {0};
    const struct row row = row_of_options(&options);
    if (!row_forward(&row, a))
        return NULL;
    observation_flow(row.n, a, options.list[UPSTREAM].value, flat);
    for (int i = 0; i < row.n * row.n; i++)
        square[i / row.n][i % row.n] = flat[i] / row.temperature;
    return square[0];
}

/* ---- A rule for the gradient of softmax, typed by the reader ---- */

static char typed[256];
static struct rule_check checked;

EXPORT(rule_text) char *rule_text(void)
{
    return typed;
}

/* Reads and checks the text; rule_is and rule_error say what was found. */
EXPORT(rule_test) int rule_test(void)
{
    struct rule rule;
    return rule_read(&rule, typed) && rule_check(&rule, &checked);
}

/* What it was checked with: so many random rows of so many keys. */
EXPORT(rule_test_rows) int rule_test_rows(void)
{
    return RULE_TEST_ROWS;
}

EXPORT(rule_test_keys) int rule_test_keys(void)
{
    return RULE_TEST_KEYS;
}

/* 0: equal to the Jacobian's; 1: the sum is 0; 2: shifts of g change nothing. */
EXPORT(rule_is) int rule_is(int property)
{
    return property == 0 ? checked.right : property == 1 ? checked.sum_is_zero : checked.shift_free;
}

EXPORT(rule_error) double rule_error(void)
{
    return checked.error;
}

/* ds of the options' row by the rule that was typed; 0 when it cannot be read or is not finite. */
EXPORT(rule_row) const double *rule_row(void)
{
    static double ds[EXPLAIN_NUMBERS];
    double a[EXPLAIN_NUMBERS] = {0}, g[EXPLAIN_NUMBERS];
    const struct row row = row_of_options(&options);
    struct rule rule;
    int kept = 0;
    if (!rule_read(&rule, typed) || !row_forward(&row, a))
        return NULL;
    for (int i = 0; i < row.n; i++)
        if (row.kept[i]) {
            a[kept] = a[i];
            g[kept++] = options.list[UPSTREAM].value[i];
        }
    if (!rule_is_finite(&rule, kept, a, g))
        return NULL;
    rule_apply(&rule, kept, a, g, ds);
    for (int i = row.n - 1; i >= 0; i--)
        ds[i] = row.kept[i] ? ds[--kept] / row.temperature : 0;
    return ds;
}

/* ---- Training ---- */

static struct training training;
static char rule_in_use[sizeof typed];

static const char *use_rule(void)
{
    memcpy(rule_in_use, typed, sizeof typed);
    return rule_in_use;
}

/* With the rule that was typed last; without one the library's own. */
EXPORT(training_begin) int training_begin(int task, int seed, double factor, int steps, double rate)
{
    const struct training_options choice = {(sb_task)task, (uint64_t)seed, factor,
                                            use_rule(),    steps,          rate};
    training_close(&training);
    return training_open(&training, &choice);
}

EXPORT(training_rule) int training_rule(void)
{
    return training_change_rule(&training, use_rule());
}

/* The loss; NaN when it failed. */
EXPORT(training_advance) double training_advance(void)
{
    double loss;
    return training_step(&training, &loss) ? loss : __builtin_nan("");
}

EXPORT(training_look) int training_look(int pair)
{
    return training_observe(&training, pair);
}

/* ---- What training_look has seen: rows, keys and heads of an attention, and its arrays ---- */

EXPORT(seen) const double *seen(int attention, int what)
{
    return training.seen.attention[attention].number[what];
}

EXPORT(seen_rows) int seen_rows(int attention)
{
    return (int)training.seen.attention[attention].rows;
}

EXPORT(seen_keys) int seen_keys(int attention)
{
    return (int)training.seen.attention[attention].keys;
}

EXPORT(seen_size) int seen_size(int attention)
{
    return (int)training.seen.attention[attention].size;
}

EXPORT(seen_scale) double seen_scale(int attention)
{
    return training.seen.attention[attention].scale;
}

EXPORT(seen_loss) double seen_loss(void)
{
    return training.seen.loss;
}

/* Probabilities (rows of the target, symbols). */
EXPORT(seen_probabilities) const double *seen_probabilities(void)
{
    return training.seen.probability;
}

EXPORT(seen_symbols) int seen_symbols(void)
{
    return (int)training.seen.symbols;
}

EXPORT(symbol_name) const char *symbol_name(int symbol)
{
    return sb_vocabulary_symbol(sb_seq2seq_target(training.model), symbol);
}

/* The source, target and output of the pair and those that follow it. */
EXPORT(pair_text) const char *pair_text(int i, int what)
{
    const sb_task_pair *pair = &training.pairs[i];
    return what == 0 ? pair->source : what == 1 ? pair->target : training.output[i];
}

static const char *const attentions[] = {"encoder", "decoder", "cross"};

/* What row or key i of the map stands for. */
EXPORT(label) const char *label(int attention, int is_key, int i)
{
    static struct subject_label shown;
    const sb_example_attention *at = subject_attention(&training.subject, attentions[attention]);
    shown = subject_label(is_key ? &at->keys : &at->queries, i);
    return shown.text;
}

/* Opens the page on one row of a head, both from 1. */
EXPORT(row_page) int row_page(int attention, int head, int row)
{
    const struct model_place place = {attentions[attention], 1, head, row};
    return turn_to(model_row_page(&training.subject, &place));
}

EXPORT(parameters) int parameters(void)
{
    return (int)training.diagnosis.parameters;
}

EXPORT(parameter_name) const char *parameter_name(int i)
{
    return sb_parameters_name(training.weights, i);
}

/* The norm of its gradient over a held-out batch, */
EXPORT(parameter_gradient) double parameter_gradient(int i)
{
    return training.diagnosis.gradient[i];
}

/* and of the pair alone. */
EXPORT(pair_gradient) double pair_gradient(int i)
{
    return training.seen.gradient[i];
}

EXPORT(head_saturated) double head_saturated(int attention, int head)
{
    return training.diagnosis.saturated[2 * attention + head];
}

/* The share of digits that it writes right; NaN when it failed. */
EXPORT(training_share) double training_share(void)
{
    double share;
    return training_right(&training, &share) ? share : __builtin_nan("");
}

/* Of all weights, to the bit. */
EXPORT(fingerprint) const char *fingerprint(void)
{
    static char text[17];
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)sb_parameters_fingerprint(training.weights));
    return text;
}
