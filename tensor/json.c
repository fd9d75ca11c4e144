#include "tensor/json.h"
#include "tensor/error.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdatomic.h>
#include <string.h>

/* Memory that Jansson 2.14 allocates on a 64-bit machine, in units of ALIGNMENT. Tables and arrays
   grow by doubling; old blocks are not reused, so the total is twice the last size. */
enum {
    ALIGNMENT = 16,
    OBJECT_BYTES = 80 + 8 * 16,
    ARRAY_BYTES = 48 + 8 * 8,
    PAIR_BYTES = 64 + ALIGNMENT + 4 * 16, /* and its key */
    ITEM_BYTES = 4 * 8,
    VALUE_BYTES = 32 + ALIGNMENT, /* and its text */
    MOST_TIMES_TEXT = 36,
    SMALL = 1024
};

static size_t round_up(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The most memory that parsing a text can need. Strings are stored once; each token passes through
   a buffer that grows by doubling. */
static size_t most_memory(const char *text, size_t size)
{
    size_t most = SMALL + size, word = 0, longest = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        bool delimits = strchr(quoted ? "\"" : "\"{[:,", text[i]) && text[i];
        word = delimits ? 0 : word + 1;
        longest = word > longest ? word : longest;
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted)
            i += text[i] == '\\';
        else if (text[i] == '{')
            most += OBJECT_BYTES + VALUE_BYTES;
        else if (text[i] == '[')
            most += ARRAY_BYTES + VALUE_BYTES + ITEM_BYTES;
        else if (text[i] == ':')
            most += PAIR_BYTES;
        else if (text[i] == ',')
            most += VALUE_BYTES + ITEM_BYTES;
    }
    return most + 4 * 2 * longest; /* an escape sequence has two bytes or more and counts as one */
}

/* The calling program may have set its own allocator in Jansson; it still serves all threads except
   the one that is reading here. */
static _Atomic(json_malloc_t) others_take;
static _Atomic(json_free_t) others_give;
static _Thread_local struct json *reading;

static void *take(size_t size)
{
    json_malloc_t others = others_take;
    if (!reading || size > reading->size - reading->used)
        return others(size);
    void *place = reading->block + reading->used;
    reading->used += round_up(size);
    return place;
}

static void give(void *place)
{
    json_free_t others = others_give;
    const char *at = place;
    if (!reading || at < reading->block || at >= reading->block + reading->size)
        others(place);
}

static void serve(struct json *json)
{
    json_malloc_t current_take;
    json_free_t current_give;
    json_get_alloc_funcs(&current_take, &current_give);
    if (current_take != take) {
        others_take = current_take;
        others_give = current_give;
        json_set_alloc_funcs(take, give);
    }
    reading = json;
}

void json_free(struct json *json)
{
    serve(json);
    json_decref(json->value);
    reading = NULL;
    pool_give(memory_pool(), json->block, json->size);
    *json = (struct json){0};
}

bool json_read(struct json *json, const char *what, const char *text, size_t size)
{
    *json = (struct json){.size = round_up(most_memory(text, size))};
    /* Jansson ends a number at a NUL and reads on behind it. */
    const char *nul = memchr(text, '\0', size);
    if (nul)
        return sb_fail("%s: JSON, byte %zu: a NUL byte, expected text", what, (size_t)(nul - text));
    if (json->size > MOST_TIMES_TEXT * size + 2 * SMALL)
        return sb_fail("%s: JSON: %zu bytes need more than %d times as much memory", what, size,
                       MOST_TIMES_TEXT);
    json->block = pool_take(memory_pool(), json->size);
    if (!json->block)
        return sb_fail("%s: out of memory for its JSON", what);
    json_error_t error;
    serve(json);
    json->value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    reading = NULL;
    if (json->value)
        return true;
    json_free(json);
    return sb_fail("%s: JSON, byte %d: %s", what, error.position, utf8_quote(error.text).text);
}
