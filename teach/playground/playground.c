/*
 * What the live page calls. Texts are pointers to UTF-8 that ends with a zero; a text or number
 * stays until the next call that computes one. Calls that can fail return 0 and leave a message.
 */
#include "teach/explain/model.h"
#include "teach/explain/row.h"
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

/* The i-th topic of the terminal. */
EXPORT(explain) int explain(int i)
{
    const struct topic *topic = topic_at(i);
    if (!topic || (topic->check && !topic->check(&options)))
        return 0;
    return turn_to(topic_page(topic, &options));
}

EXPORT(topic_name) const char *topic_name(int i)
{
    return topic_at(i) ? topic_at(i)->name : NULL;
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

/* ---- Training ---- */

static struct training training;

EXPORT(training_begin) int training_begin(int task, int seed, double factor, int mistake, int steps)
{
    const struct training_options choice = {(sb_task)task, (uint64_t)seed, factor,
                                            (enum mistake)mistake, steps};
    training_close(&training);
    return training_open(&training, &choice);
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

/* Weights (H, rows, keys) of one of the attentions of the pair that was looked at. */
EXPORT(map) const double *map(int attention)
{
    return training.map[attention];
}

EXPORT(map_rows) int map_rows(int attention)
{
    return (int)training.rows[attention];
}

EXPORT(map_keys) int map_keys(int attention)
{
    return (int)training.keys[attention];
}

static enum attention_kind kind_of(int attention)
{
    static const enum attention_kind kinds[] = {ENCODER_ATTENTION, DECODER_ATTENTION,
                                                CROSS_ATTENTION};
    return kinds[attention];
}

/* What row or key i of the map stands for. */
EXPORT(label) const char *label(int attention, int is_key, int i)
{
    static struct subject_label shown;
    const struct subject_axis axis = is_key
                                         ? subject_keys(&training.subject, kind_of(attention))
                                         : subject_queries(&training.subject, kind_of(attention));
    shown = subject_label(&axis, i);
    return shown.text;
}

/* Opens the page on one row of a head, both from 1. */
EXPORT(row_page) int row_page(int attention, int head, int row)
{
    const struct model_place place = {kind_of(attention), 1, head, row};
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

/* The length of its gradient. */
EXPORT(parameter_gradient) double parameter_gradient(int i)
{
    return training.diagnosis.gradient[i];
}

EXPORT(head_saturated) double head_saturated(int attention, int head)
{
    return training.diagnosis.saturated[2 * attention + head];
}

EXPORT(head_evenness) double head_evenness(int attention, int head)
{
    return training.diagnosis.evenness[2 * attention + head];
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
