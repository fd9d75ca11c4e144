#include "teach/explain/page.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct page *page_new(const char *topic)
{
    struct page *page = memory_new(sizeof *page);
    if (page)
        page->topic = memory_text(topic);
    if (page && page->topic)
        return page;
    page_free(page);
    return sb_fail("explain: out of memory");
}

static void table_free(struct page_table *table)
{
    for (int i = 0; i < table->columns; i++)
        memory_free((char *)(uintptr_t)table->column[i].name);
    for (int64_t i = 0; table->cells && i < (int64_t)table->rows * table->columns; i++)
        memory_free((char *)(uintptr_t)table->cells[i].shown);
    memory_free(table->cells);
    memory_free(table->name);
}

void page_free(struct page *page)
{
    if (!page)
        return;
    for (int64_t i = 0; i < page->parts; i++) {
        memory_free(page->part[i].text);
        table_free(&page->part[i].table);
    }
    memory_free(page->part);
    memory_free(page->topic);
    memory_free(page->title);
    memory_free(page);
}

void page_need(struct page *page, bool ok)
{
    page->failed |= !ok;
}

/* Whether there was memory for what was made. */
static bool is_made(struct page *page, bool made)
{
    page_need(page, made || sb_fail("explain: out of memory"));
    return made;
}

static struct page_part *part_new(struct page *page)
{
    if (page->failed)
        return NULL;
    if (!is_made(page, memory_room(&page->part, page->parts, &page->room, sizeof *page->part)))
        return NULL;
    struct page_part *part = &page->part[page->parts++];
    *part = (struct page_part){0};
    return part;
}

static char *text_of(struct page *page, const char *format, va_list values)
{
    char *text = memory_format_list(format, values);
    is_made(page, text);
    return text;
}

/* 1e-06 becomes 1e-6, and 1e+04 becomes 1e4. */
static void shorten_exponents(char *text)
{
    for (char *e = text; (e = strchr(e, 'e')); e++) {
        if (e == text || !isdigit((unsigned char)e[-1]) || !strchr("+-", e[1]) ||
            !isdigit((unsigned char)e[2]))
            continue;
        const char *from = e + 2 + (e[2] == '0' && isdigit((unsigned char)e[3]));
        memmove(e + 1 + (e[1] == '-'), from, strlen(from) + 1);
    }
}

void page_title(struct page *page, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    memory_free(page->title);
    page->title = text_of(page, format, values);
    va_end(values);
}

void page_text(struct page *page, const char *format, ...)
{
    struct page_part *part = part_new(page);
    va_list values;
    va_start(values, format);
    if (part)
        part->text = text_of(page, format, values);
    if (part && part->text)
        shorten_exponents(part->text);
    va_end(values);
}

void page_lines(struct page *page, const char *lines)
{
    page_text(page, "%s", lines);
    if (!page->failed)
        page->part[page->parts - 1].lines = true;
}

/* Reads "name .4" into a column. */
static const char *column_read(struct page_column *column, const char *text, size_t size)
{
    static const char signs[] = {[PAGE_NUMBER] = '.', [PAGE_SHORT] = '~', [PAGE_BAR] = '#'};
    size_t end = size;
    while (end > 0 && isdigit((unsigned char)text[end - 1]))
        end--;
    for (enum page_kind kind = PAGE_NUMBER; end > 0 && end < size && kind <= PAGE_BAR; kind++)
        if (text[end - 1] == signs[kind]) {
            *column = (struct page_column){.kind = kind, .digits = atoi(text + end)};
            size = end > 1 ? end - 2 : 0; /* without the space before the sign */
        }
    return column->name = memory_text_part(text, size);
}

void page_table(struct page *page, const char *name, const char *columns)
{
    struct page_part *part = part_new(page);
    if (!part)
        return;
    struct page_table *table = &part->table;
    table->name = memory_text(name);
    is_made(page, table->name);
    for (const char *at = columns; !page->failed && at; table->columns++) {
        const char *bar = strstr(at, " | ");
        struct page_column *column = &table->column[table->columns];
        is_made(page, column_read(column, at, bar ? (size_t)(bar - at) : strlen(at)));
        at = bar ? bar + strlen(" | ") : NULL;
    }
}

void page_row(struct page *page, const struct page_cell cells[])
{
    if (page->failed)
        return;
    struct page_table *table = &page->part[page->parts - 1].table;
    size_t row = (size_t)table->columns * sizeof *cells;
    if (!is_made(page, memory_room(&table->cells, table->rows, &table->room, row)))
        return;
    struct page_cell *own = table->cells + (size_t)table->rows++ * (size_t)table->columns;
    for (int i = 0; i < table->columns; i++) {
        const struct page_cell cell = page_repeats(&table->column[i]) ? own[i - 1] : *cells++;
        const struct page_shown number = page_show(&table->column[i], cell.number);
        own[i] = (struct page_cell){.number = cell.number};
        own[i].shown = memory_text(cell.word ? cell.word : number.text);
        own[i].word = cell.word ? own[i].shown : NULL;
        is_made(page, own[i].shown);
    }
}

void page_numbers(struct page *page, const char *word, const double numbers[])
{
    struct page_cell cells[PAGE_COLUMNS] = {cell_word(word)};
    if (page->failed)
        return;
    const struct page_table *table = &page->part[page->parts - 1].table;
    for (int i = word != NULL, n = i; i < table->columns; i++)
        if (!page_repeats(&table->column[i]))
            cells[n++] = cell_of(*numbers++);
    page_row(page, cells);
}

void page_records(struct page *page)
{
    if (!page->failed)
        page->part[page->parts - 1].table.records = true;
}

/* "-0.000" is what rounding makes of a tiny number of either sign. */
static bool shows_zero(const char *text)
{
    return strspn(text, "-0.") == strlen(text);
}

struct page_shown page_show(const struct page_column *column, double number)
{
    struct page_shown shown;
    if (isnan(number) || isinf(number)) {
        strcpy(shown.text, isnan(number) ? "NaN" : number < 0 ? "-inf" : "inf");
        return shown;
    }
    if (column->kind == PAGE_NUMBER && fabs(number) < 1e7)
        snprintf(shown.text, sizeof shown.text, "%.*f", column->digits, number);
    else if (column->kind == PAGE_NUMBER)
        snprintf(shown.text, sizeof shown.text, "%.4g", number);
    else if (column->kind == PAGE_SHORT && fabs(number) < 1e7 &&
             fabs(number) >= pow(10, column->digits))
        snprintf(shown.text, sizeof shown.text, "%.0f", number);
    else
        snprintf(shown.text, sizeof shown.text, "%.*g", column->digits, number);
    double least = 10; /* what shows in fewer than two digits is small */
    for (int i = 0; i < column->digits; i++)
        least /= 10;
    if (column->kind == PAGE_NUMBER && column->digits > 0 && number != 0 && fabs(number) < least)
        snprintf(shown.text, sizeof shown.text, "%.3g", number);
    if (shown.text[0] == '-' && shows_zero(shown.text))
        memmove(shown.text, shown.text + 1, strlen(shown.text));
    shorten_exponents(shown.text);
    return shown;
}
