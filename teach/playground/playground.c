/*
 * What the live page calls. Texts are pointers to UTF-8 that ends with a zero; a text or number
 * stays until the next call that computes one. Calls that can fail return 0 and leave a message.
 */
#include "teach/explain/row.h"
#include "teach/explain/topic.h"
#include "teach/playground/training.h"
#include <stdio.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

/* An export that reads a value: its name, its arguments, and the expression that is returned. */
#define VALUE(type, name, arguments, value)                                                        \
    EXPORT(name) type name arguments                                                               \
    {                                                                                              \
        return value;                                                                              \
    }
#define NUMBER(name, arguments, value) VALUE(double, name, arguments, (double)(value))
#define ARRAY(name, arguments, value) VALUE(const double *, name, arguments, value)
#define TEXT(name, arguments, value) VALUE(const char *, name, arguments, value)

TEXT(message, (void), sb_error())

/* ---- Pages of `softback explain`: options are set, a topic is opened, its cells are read. ---- */

static struct explain_options options;
static struct page *page;

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
    page_free(page);
    page = page_new(topics[i]->name);
    if (page)
        topics[i]->write(page, &options);
    return page && !page->failed;
}

TEXT(topic_name, (int i), i < TOPICS ? topics[i]->name : NULL)
NUMBER(page_parts, (void), page->parts)

/* A paragraph; NULL where the part is a table. */
TEXT(part_text, (int i), page->part[i].text)
TEXT(table_name, (int i), page->part[i].table.name)
NUMBER(table_rows, (int i), page->part[i].table.rows)
NUMBER(table_columns, (int i), page->part[i].table.columns)
TEXT(column_name, (int i, int column), page->part[i].table.column[column].name)

static const struct page_cell *cell_at(int i, int row, int column)
{
    const struct page_table *table = &page->part[i].table;
    return &table->cells[row * table->columns + column];
}

/* A cell as the terminal shows it, and all its digits. */
TEXT(cell_text, (int i, int row, int column), cell_at(i, row, column)->shown)
NUMBER(cell_number, (int i, int row, int column), cell_at(i, row, column)->number)

static double square[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];

/* The Jacobian of the softmax of the scores, kept and temperature of the options: n x n numbers of
   which rows lie EXPLAIN_NUMBERS apart. */
EXPORT(jacobian) const double *jacobian(void)
{
    const struct row row = row_of_options(&options);
    return row_jacobian(&row, square) ? square[0] : NULL;
}

/* What each score passes to each other: flow[i][j] of the options' scores and upstream gradients,
   laid out as the Jacobian; and with the rule of rule_text, the ds of this row. */
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

TEXT(rule_text, (void), typed)

/* Reads and checks the text; rule_is and rule_error say what was found. */
EXPORT(rule_test) int rule_test(void)
{
    struct rule rule;
    return rule_read(&rule, typed) && rule_check(&rule, &checked);
}

/* What it was checked with: so many random rows of so many keys. */
NUMBER(rule_test_rows, (void), RULE_TEST_ROWS)
NUMBER(rule_test_keys, (void), RULE_TEST_KEYS)

/* 0: equal to the Jacobian's; 1: the sum is 0; 2: shifts of g change nothing. */
EXPORT(rule_is) int rule_is(int property)
{
    return property == 0 ? checked.right : property == 1 ? checked.sum_is_zero : checked.shift_free;
}

NUMBER(rule_error, (void), checked.error)

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

ARRAY(seen, (int attention, int what), training.seen.attention[attention].number[what])
NUMBER(seen_rows, (int attention), training.seen.attention[attention].rows)
NUMBER(seen_keys, (int attention), training.seen.attention[attention].keys)
NUMBER(seen_size, (int attention), training.seen.attention[attention].size)
NUMBER(seen_scale, (int attention), training.seen.attention[attention].scale)
NUMBER(seen_loss, (void), training.seen.loss)

/* Probabilities (rows of the target, symbols). */
ARRAY(seen_probabilities, (void), training.seen.probability)
NUMBER(seen_symbols, (void), training.seen.symbols)
TEXT(symbol_name, (int symbol), sb_vocabulary_symbol(sb_seq2seq_target(training.model), symbol))

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

NUMBER(parameters, (void), training.diagnosis.parameters)
TEXT(parameter_name, (int i), sb_parameters_name(training.weights, i))

/* The norm of its gradient over a held-out batch, */
NUMBER(parameter_gradient, (int i), training.diagnosis.gradient[i])

/* and of the pair alone. */
NUMBER(pair_gradient, (int i), training.seen.gradient[i])
NUMBER(head_saturated, (int attention, int head),
       training.diagnosis.saturated[2 * attention + head])

/* The share of digits that it writes right; NaN when it failed. */
EXPORT(training_share) double training_share(void)
{
    double share;
    return training_right(&training, &share) ? share : __builtin_nan("");
}

/* The fingerprint of all weights, to the bit. */
EXPORT(fingerprint) const char *fingerprint(void)
{
    static char text[17];
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)sb_parameters_fingerprint(training.weights));
    return text;
}
