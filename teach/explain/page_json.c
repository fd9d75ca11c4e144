/*
 * A page as one JSON object:
 *     {"topic": ..., "title": ..., "parts": [{"text": ...} | {"table":
 *         {"name": ..., "columns": [...], "rows": [[...]]}}]}
 * Cells are numbers, as the text shows them, or texts: words, and "NaN", "inf", "-inf", for which
 * JSON has no numbers.
 */
#include "teach/explain/page.h"
#include "tensor/buffer.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *cell_to_json(const struct page_cell *cell)
{
    if (cell->word || !isfinite(cell->number))
        return json_string(cell->shown);
    bool whole = !strpbrk(cell->shown, ".e");
    return whole ? json_integer(atoll(cell->shown)) : json_real(strtod(cell->shown, NULL));
}

/* Takes the item, and fails when it is NULL. */
static bool append(json_t *array, json_t *item)
{
    return json_array_append_new(array, item) == 0;
}

static bool fill_table(json_t *names, json_t *rows, const struct page_table *table)
{
    bool ok = names && rows;
    for (int c = 0; ok && c < table->columns; c++)
        ok = page_repeats(&table->column[c]) || append(names, json_string(table->column[c].name));
    for (int r = 0; ok && r < table->rows; r++) {
        json_t *row = json_array();
        const struct page_cell *cells = &table->cells[r * table->columns];
        ok = append(rows, row);
        for (int c = 0; ok && c < table->columns; c++)
            ok = page_repeats(&table->column[c]) || append(row, cell_to_json(&cells[c]));
    }
    return ok;
}

static json_t *part_to_json(const struct page_part *part)
{
    const struct page_table *table = &part->table;
    if (!table->name)
        return json_pack("{s:s}", "text", part->text);
    json_t *names = json_array(), *rows = json_array();
    const bool ok = fill_table(names, rows, table);
    json_t *json = json_pack("{s:{s:s, s:o, s:o}}", "table", "name", table->name, "columns", names,
                             "rows", rows); /* takes names and rows in any case */
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

static int gather(const char *bytes, size_t size, void *buffer)
{
    return buffer_add(buffer, bytes, size) ? 0 : -1;
}

char *page_as_json(const struct page *page)
{
    if (page->failed)
        return NULL;
    json_t *parts = json_array();
    bool ok = parts;
    for (int64_t i = 0; ok && i < page->parts; i++)
        ok = append(parts, part_to_json(&page->part[i]));
    json_t *json = json_pack("{s:s, s:s, s:o}", "topic", page->topic, "title",
                             page->title ? page->title : "", "parts", parts);
    struct buffer buffer = {0};
    buffer.failed =
        !ok || !json || json_dump_callback(json, gather, &buffer, JSON_REAL_PRECISION(10)) != 0;
    buffer_add_text(&buffer, "\n");
    char *text = buffer_take(&buffer);
    json_decref(json);
    return text ? text : sb_fail("explain: out of memory");
}
