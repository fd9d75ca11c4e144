/*
 * A page of `softback explain`: a title, paragraphs and tables, made once and shown in three ways:
 * as plain text of 80 columns, as the same with colour for a terminal, and as JSON.
 *
 * Pages are made without a check on each call: a failure is kept in the page, which then cannot
 * be shown. Numbers are shown with so few digits that they are the same on every machine, and the
 * JSON holds the numbers that the text shows.
 */
#ifndef SOFTBACK_TEACH_EXPLAIN_PAGE_H
#define SOFTBACK_TEACH_EXPLAIN_PAGE_H

#include "tensor/error.h"
#include <stddef.h>
#include <stdint.h>

enum { PAGE_COLUMNS = 16, PAGE_WIDTH = 80 };

enum page_kind {
    PAGE_WORD,
    PAGE_NUMBER, /* `digits` after the point; very small ones as %.3g, very large ones as %.4g */
    PAGE_SHORT,  /* `digits` significant ones, as %g; large ones as whole numbers */
    PAGE_BAR,    /* a signed bar, scaled to the longest of its column; one without a name repeats
                    its neighbour, and is left out of the JSON */
};

struct page_column {
    const char *name;
    enum page_kind kind;
    int digits;
};

/* Whether it is a bar without a name. */
static inline bool page_repeats(const struct page_column *column)
{
    return column->kind == PAGE_BAR && !column->name[0];
}

/* A number; or a word, where `word` is set, also in a column of numbers. In a table `shown` is the
   text of either, without padding; that of a bar is its number. */
struct page_cell {
    double number;
    const char *word, *shown;
};

static inline struct page_cell cell_of(double number)
{
    return (struct page_cell){.number = number};
}

static inline struct page_cell cell_word(const char *word)
{
    return (struct page_cell){.word = word};
}

struct page_table {
    char *name;
    int columns, rows;
    bool records;
    struct page_column column[PAGE_COLUMNS];
    struct page_cell *cells; /* rows x columns */
    int64_t room;
};

/* A paragraph, which is filled, or lines that stay as they are; or a table. */
struct page_part {
    char *text;
    bool lines;
    struct page_table table;
};

struct page {
    char *topic, *title;
    int64_t parts, room;
    struct page_part *part;
    bool failed;
};

/* An empty page; NULL when there is no memory. */
struct page *page_new(const char *topic);
void page_free(struct page *page); /* NULL is allowed */

/* All texts and names are copied. Exponents of numbers become short: 1e-06 is shown as 1e-6. */
void page_title(struct page *page, const char *format, ...) SB_PRINTF(2, 3);
void page_text(struct page *page, const char *format, ...) SB_PRINTF(2, 3);
void page_lines(struct page *page, const char *lines);
/* Begins a table; rows go to the last one begun, one cell for each column but the bars without a
   name. Columns are written as
   "key | a .4 | g ~3 | ds #4": words; numbers with 4 digits after the point; with 3 significant
   digits; a bar with the digits of its number. */
void page_table(struct page *page, const char *name, const char *columns);
void page_row(struct page *page, const struct page_cell cells[]);
#define PAGE_ROW(page, ...) page_row(page, (const struct page_cell[]){__VA_ARGS__})
/* A row from a word, unless that is NULL, and numbers. */
void page_numbers(struct page *page, const char *word, const double numbers[]);
#define PAGE_NUMBERS(page, word, ...) page_numbers(page, word, (const double[]){__VA_ARGS__})
/* Shows the last table row by row, for long texts: the first cell in the margin, and the others
   below each other, the second one as a heading. */
void page_records(struct page *page);

/* Marks the page as failed unless ok. */
void page_need(struct page *page, bool ok);

/* The page as a text for memory_free; NULL, with a message, when something failed. */
char *page_as_text(const struct page *page, bool terminal);
char *page_as_json(const struct page *page);

/* A number as it is shown in its column. */
struct page_shown {
    char text[40];
};
struct page_shown page_show(const struct page_column *column, double number);

#endif
