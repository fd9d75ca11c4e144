#include "teach/explain/page.h"
#include "tensor/buffer.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
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
    /* "-0.000" is what rounding makes of a tiny number of either sign. */
    if (shown.text[0] == '-' && strspn(shown.text, "-0.") == strlen(shown.text))
        memmove(shown.text, shown.text + 1, strlen(shown.text));
    shorten_exponents(shown.text);
    return shown;
}

/* ---- as text: paragraphs filled to the width, tables with aligned columns, bars ---- */

/* The longest bar to either side of its middle, and that of a table which is too wide. */
enum { BAR = 7, SHORT_BAR = 2, INDENT = 2 };

struct writer {
    struct buffer text;
    bool terminal;
};

static void put(struct writer *w, const char *text)
{
    buffer_add_text(&w->text, text);
}

static void put_spaces(struct writer *w, int n)
{
    for (; n > 0; n--)
        put(w, " ");
}

static int letters(const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Text that may be a user's or a model's: nothing that a terminal would obey. */
static void put_part(struct writer *w, const char *text, size_t size)
{
    char *copy = memory_text_part(text, size);
    w->text.failed |= !copy;
    if (copy) {
        utf8_disarm(copy);
        put(w, copy);
    }
    memory_free(copy);
}

/* How far the first one of several formulas in a line goes: to a gap of two spaces. */
static size_t formula(const char *text, size_t size)
{
    const char *gap = strstr(text, "  ");
    return gap && gap < text + size ? (size_t)(gap - text) : size;
}

/* Words, filled into lines that begin `margin` columns to the right, where the first one has begun
   already. Spaces between words stay as many as they are, except at the end of a line. Of several
   formulas in a line, each stays in one piece if it fits. */
static void put_filled(struct writer *w, const char *text, size_t size, int margin, bool formulas)
{
    int column = margin;
    size_t gap = 0;
    for (size_t at = 0; at < size;) {
        size_t n = strcspn(text + at, " \n"), piece = formulas ? formula(text + at, size - at) : 0;
        if (piece > 0 && letters(text + at, piece) <= PAGE_WIDTH - margin)
            n = piece;
        int wide = letters(text + at, n);
        if (gap > 0 && column + (int)gap + wide > PAGE_WIDTH) {
            put(w, "\n");
            put_spaces(w, margin);
            column = margin;
        } else {
            put_spaces(w, (int)gap);
            column += (int)gap;
        }
        put_part(w, text + at, n);
        column += wide;
        at += n;
        size_t end = at;
        while (at < size && (text[at] == ' ' || text[at] == '\n'))
            at++;
        gap = at < size && text[end] == '\n' ? 1 : at - end;
    }
    put(w, "\n");
}

/* Where the text of a line begins: behind its indentation and its label, if it has one; a formula
   is none. */
static size_t label_of(const char *line, size_t size)
{
    size_t lead = strspn(line, " ");
    const char *gap = strstr(line + lead, "  ");
    bool labelled = gap && gap < line + size / 3 && !memchr(line, '=', (size_t)(gap - line));
    return labelled ? (size_t)(gap - line) + strspn(gap, " ") : lead;
}

/* Whether a line has several formulas from column `from` on. */
static bool has_formulas(const char *line, size_t from)
{
    const size_t size = strcspn(line, "\n");
    return size > from && formula(line + from, size - from) < size - from;
}

/* Whether a line, from column `from` on, is plain words that may be filled together with those of
   its neighbours. */
static bool is_prose(const char *line, size_t from)
{
    return strcspn(line, "\n") > from && strspn(line, " ") == from && !has_formulas(line, from);
}

/* How far a paragraph goes that begins with this line, and whether one of its lines is too long. A
   line of several formulas is a paragraph of its own. */
static size_t paragraph(const char *text, size_t label, bool *too_long)
{
    size_t size = strcspn(text, "\n");
    *too_long = letters(text, size) > PAGE_WIDTH;
    if (has_formulas(text, label))
        return size;
    while (text[size] == '\n' && is_prose(text + size + 1, label)) {
        size_t more = strcspn(text + size + 1, "\n");
        *too_long |= letters(text + size + 1, more) > PAGE_WIDTH;
        size += 1 + more;
    }
    return size;
}

/* Lines as they are; only paragraphs of which a line is too long are filled anew. */
static void put_lines(struct writer *w, const char *text)
{
    while (*text) {
        bool too_long;
        size_t size = strcspn(text, "\n"), label = label_of(text, size);
        size_t all = size > 0 ? paragraph(text, label, &too_long) : 0;
        if (size == 0 || !too_long) {
            put_part(w, text, size);
            put(w, "\n");
        } else {
            size = all;
            put_part(w, text, label);
            put_filled(w, text + label, size - label, (int)label, has_formulas(text, label));
        }
        text += size + (text[size] == '\n');
    }
}

static double longest(const struct page_table *table, int column)
{
    double most = 0;
    for (int r = 0; r < table->rows; r++)
        most = fmax(most, fabs(table->cells[r * table->columns + column].number));
    return most;
}

static void put_colour(struct writer *w, const char *code)
{
    if (w->terminal)
        put(w, code);
}

/* "    ---|       " or "       |+++    ": sign and length, and on a terminal colour as well. */
static void put_bar(struct writer *w, double number, double most, int side)
{
    int n = most > 0 && isfinite(number) ? (int)(fabs(number) / most * side + 0.5) : 0;
    bool negative = number < 0;
    put_spaces(w, negative ? side - n : side);
    put_colour(w, negative ? "\033[38;5;208m" : "");
    for (int i = 0; negative && i < n; i++)
        put(w, w->terminal ? "█" : "-");
    put_colour(w, "\033[0m");
    put(w, "|");
    put_colour(w, negative ? "" : "\033[38;5;33m");
    for (int i = 0; !negative && i < n; i++)
        put(w, w->terminal ? "█" : "+");
    put_colour(w, "\033[0m");
    put_spaces(w, negative ? side : side - n);
}

static int width_of(const struct page_table *table, int column)
{
    const char *name = table->column[column].name;
    int width = letters(name, strlen(name));
    for (int r = 0; r < table->rows; r++) {
        const char *text = table->cells[r * table->columns + column].shown;
        int n = letters(text, strlen(text));
        width = n > width ? n : width;
    }
    if (table->column[column].kind == PAGE_BAR)
        width = width > 2 * BAR + 1 ? width : 2 * BAR + 1;
    return width;
}

/* The width of each column; bars become shorter where the table would be wider than the page. */
static void measure(const struct page_table *table, int width[])
{
    int all = INDENT - 2;
    for (int c = 0; c < table->columns; c++)
        all += 2 + (width[c] = width_of(table, c));
    for (int c = 0; c < table->columns; c++)
        for (; all > PAGE_WIDTH && table->column[c].kind == PAGE_BAR &&
               width[c] - 2 >= 2 * SHORT_BAR + 1;
             all -= 2)
            width[c] -= 2;
}

/* `last` words of a row need no spaces behind them. */
static void put_padded(struct writer *w, const char *text, int width, bool left, bool last)
{
    int spare = width - letters(text, strlen(text));
    put_spaces(w, left ? 0 : spare);
    put_part(w, text, strlen(text));
    put_spaces(w, left && !last ? spare : 0);
}

static void put_cell(struct writer *w, const struct page_table *table, int row, int column,
                     int width)
{
    const struct page_cell *cell = &table->cells[row * table->columns + column];
    enum page_kind kind = table->column[column].kind;
    bool last = column == table->columns - 1;
    if (kind == PAGE_BAR && !cell->word) {
        const int side = width < 2 * BAR + 1 ? (width - 1) / 2 : BAR;
        put_bar(w, cell->number, longest(table, column), side);
        put_spaces(w, last ? 0 : width - 2 * side - 1);
        return;
    }
    put_padded(w, cell->shown, width, kind == PAGE_WORD, last);
}

/* Takes spaces at the end of the line back. */
static void end_line(struct writer *w)
{
    while (w->text.size > 0 && w->text.bytes[w->text.size - 1] == ' ')
        w->text.size--;
    put(w, "\n");
}

static void put_table(struct writer *w, const struct page_table *table)
{
    int width[PAGE_COLUMNS] = {0};
    measure(table, width);
    put_spaces(w, INDENT);
    put_colour(w, "\033[2m");
    for (int c = 0; c < table->columns; c++) {
        enum page_kind kind = table->column[c].kind;
        put_spaces(w, c > 0 ? 2 : 0);
        put_padded(w, table->column[c].name, width[c], kind == PAGE_WORD || kind == PAGE_BAR,
                   c == table->columns - 1);
    }
    put_colour(w, "\033[0m");
    end_line(w);
    for (int r = 0; r < table->rows; r++) {
        put_spaces(w, INDENT);
        for (int c = 0; c < table->columns; c++) {
            put_spaces(w, c > 0 ? 2 : 0);
            put_cell(w, table, r, c, width[c]);
        }
        end_line(w);
    }
}

/* Each row as a paragraph: its first cell in the margin, a heading, and texts below that. */
static void put_records(struct writer *w, const struct page_table *table)
{
    const int width = width_of(table, 0) + 2;
    for (int r = 0; r < table->rows; r++) {
        const struct page_cell *cells = &table->cells[r * table->columns];
        put(w, r > 0 ? "\n" : "");
        put_spaces(w, INDENT);
        put_padded(w, cells[0].shown, width, true, false);
        for (int c = 1; c < table->columns; c++) {
            put_spaces(w, c > 1 ? INDENT + width : 0);
            put_colour(w, c > 1 ? "" : "\033[1m");
            put_filled(w, cells[c].shown, strlen(cells[c].shown), INDENT + width, false);
            put_colour(w, "\033[0m");
        }
    }
}

char *page_as_text(const struct page *page, bool terminal)
{
    if (page->failed)
        return NULL;
    struct writer w = {.terminal = terminal};
    const char *title = page->title ? page->title : "";
    put_colour(&w, "\033[1m");
    put(&w, page->topic);
    put(&w, ": ");
    put_part(&w, title, strlen(title));
    put_colour(&w, "\033[0m");
    put(&w, "\n");
    for (int64_t i = 0; i < page->parts; i++) {
        const struct page_part *part = &page->part[i];
        put(&w, "\n");
        if (part->table.records)
            put_records(&w, &part->table);
        else if (part->table.name)
            put_table(&w, &part->table);
        else if (part->lines)
            put_lines(&w, part->text);
        else
            put_filled(&w, part->text, strlen(part->text), 0, false);
    }
    char *text = buffer_take(&w.text);
    return text ? text : sb_fail("explain: out of memory");
}
