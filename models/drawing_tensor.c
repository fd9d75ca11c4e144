/* The numbers of a tensor as SVG, a cell for each: attention weights, masks, gradients. */
#include "models/drawing.h"
#include "tensor/buffer.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

enum { GAP = 10, MOST_NUMBERS = 4096, MOST_WRITTEN = 256, MOST_WRITTEN_COLUMNS = 12 };

/* The maps of a tensor's last two axes, `across` of them beside each other. Where they are small,
   the number is written in its cell. */
struct maps {
    int64_t count, rows, columns, across, left,
        top;        /* left, top: room for the indices of an axis */
    int wide, high; /* a cell */
    bool written;
    double *number, largest;
    struct buffer text;
};

static void maps_text(struct maps *m, const char *kind, int64_t x, int64_t y, double number)
{
    buffer_print(&m->text, "<text class=\"%s\" x=\"%lld\" y=\"%lld\">%.3g</text>\n", kind,
                 (long long)x, (long long)y, number);
}

/* As opaque as it is large; not finite ones are outlined. */
static void maps_cell(struct maps *m, int64_t x, int64_t y, double number)
{
    const char *kind = !isfinite(number) ? "odd" : number < 0 ? "less" : "more";
    const double share = m->largest > 0 && isfinite(number) ? fabs(number) / m->largest : 0;
    buffer_print(&m->text,
                 "<rect class=\"%s\" x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" "
                 "fill-opacity=\"%.3f\"><title>%.5g</title></rect>\n",
                 kind, (long long)x, (long long)y, m->wide - 1, m->high - 1, share, number);
    if (m->written)
        maps_text(m, share > 0.6 ? "light" : "", x + m->wide / 2, y + m->high / 2 + 4, number);
}

/* Its indices, above the first row and left of the first column: each one, or each fifth. */
static void maps_indices(struct maps *m, int64_t row, int64_t column, int64_t x, int64_t y)
{
    const int step = m->written ? 1 : 5;
    if (row == 0 && column % step == 0)
        maps_text(m, "index", x + m->wide / 2, y - 4, (double)column);
    if (column == 0 && m->left > 0 && row % step == 0)
        maps_text(m, "index", x - m->left / 2, y + m->high / 2 + 4, (double)row);
}

static void maps_draw(struct maps *m)
{
    const int64_t down = (m->count + m->across - 1) / m->across;
    const int64_t width = m->left + m->columns * m->wide + GAP;
    const int64_t height = m->top + m->rows * m->high + GAP;
    buffer_print(&m->text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sb-map\" width=\"%lld\" "
                 "height=\"%lld\">\n",
                 (long long)(m->across * width), (long long)(down * height));
    /* On a page of many pictures, these styles are for maps alone. */
    buffer_print(&m->text,
                 "<style>.sb-map rect{stroke:#8886;stroke-width:.5}.sb-map .more{fill:#2a6fbb}"
                 ".sb-map .less{fill:#c8452b}.sb-map .odd{fill:none;stroke:#c8452b}\n");
    buffer_print(&m->text, ".sb-map text{font:11px sans-serif;fill:currentColor;text-anchor:middle}"
                           ".sb-map .index{opacity:.6}.sb-map .light{fill:#fff}</style>\n");
    for (int64_t i = 0; i < m->count * m->rows * m->columns; i++) {
        const int64_t map = i / (m->rows * m->columns), row = i / m->columns % m->rows;
        const int64_t x = map % m->across * width + m->left + i % m->columns * m->wide;
        const int64_t y = map / m->across * height + m->top + row * m->high;
        maps_cell(m, x, y, m->number[i]);
        maps_indices(m, row, i % m->columns, x, y);
    }
    buffer_print(&m->text, "</svg>\n");
}

static char *maps_of(const sb_tensor *t, struct maps *m)
{
    for (int64_t i = 0; i < tensor_size(t); i++)
        if (isfinite(m->number[i]))
            m->largest = fmax(m->largest, fabs(m->number[i]));
    m->columns = t->rank > 0 ? t->dim[t->rank - 1] : 1;
    m->rows = t->rank > 1 ? t->dim[t->rank - 2] : 1;
    m->count = tensor_size(t) > 0 ? tensor_size(t) / (m->rows * m->columns) : 0;
    m->written = m->columns <= MOST_WRITTEN_COLUMNS && tensor_size(t) <= MOST_WRITTEN;
    m->wide = m->written ? 54 : 14;
    m->high = m->written ? 24 : 14;
    m->left = t->rank > 1 ? 20 : 0;
    m->top = t->rank > 0 ? 16 : 0;
    m->across = m->written ? MOST_WRITTEN_COLUMNS / (m->columns + 1) : 4;
    m->across = m->across < m->count ? m->across : m->count;
    m->across = m->across > 0 ? m->across : 1;
    maps_draw(m);
    char *text = buffer_take(&m->text);
    return text ? text : sb_fail("tensor_draw: out of memory");
}

char *sb_tensor_draw(const sb_tensor *t)
{
    if (!t)
        return fail_null("tensor_draw", "t");
    if (tensor_size(t) > MOST_NUMBERS)
        return sb_fail("tensor_draw: %s has %lld numbers, more than %d; draw a part of it",
                       tensor_shape(t).text, (long long)tensor_size(t), MOST_NUMBERS);
    struct maps m = {0};
    m.number = memory_new((size_t)tensor_size(t) * sizeof *m.number + 1);
    if (!m.number)
        return sb_fail("tensor_draw: out of memory");
    char *text = sb_tensor_read(t, m.number) ? maps_of(t, &m) : NULL;
    memory_free(m.number);
    return text;
}
