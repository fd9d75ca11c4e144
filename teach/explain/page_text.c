/* A page as text: paragraphs filled to the width, tables with aligned columns, bars. */
#include "models/text/buffer.h"
#include "teach/explain/page.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The longest bar to either side of its middle, and that of a table which is too wide. */
enum { BAR = 7, SHORT_BAR = 2, INDENT = 2 };

struct writer {
    struct buffer text;
    bool terminal, failed;
};

static void put(struct writer *w, const char *text)
{
    w->failed = w->failed || !buffer_add_text(&w->text, text);
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
    w->failed = w->failed || !copy;
    if (copy) {
        utf8_disarm(copy);
        put(w, copy);
    }
    memory_free(copy);
}

/* Of a line of several formulas, how far the first one goes: to a gap of two spaces. */
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

static void put_title(struct writer *w, const struct page *page)
{
    put_colour(w, "\033[1m");
    put(w, page->topic);
    put(w, ": ");
    put_part(w, page->title ? page->title : "", strlen(page->title ? page->title : ""));
    put_colour(w, "\033[0m");
    put(w, "\n");
}

char *page_as_text(const struct page *page, bool terminal)
{
    if (page->failed)
        return NULL;
    struct writer w = {.terminal = terminal};
    put_title(&w, page);
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
    char *text = w.failed ? NULL : buffer_take(&w.text);
    if (w.failed)
        buffer_free(&w.text);
    return text ? text : sb_fail("explain: out of memory");
}
