#include "tests/support/json_memory.h"
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>

enum { CHUNK_HEADER = 8 }; /* what the C library adds */

int64_t json_memory_live, json_memory_peak;

static void *take(size_t size)
{
    void *block = malloc(size);
    if (block)
        json_memory_live += (int64_t)malloc_usable_size(block) + CHUNK_HEADER;
    if (json_memory_live > json_memory_peak)
        json_memory_peak = json_memory_live;
    return block;
}

static void give(void *block)
{
    if (block)
        json_memory_live -= (int64_t)malloc_usable_size(block) + CHUNK_HEADER;
    free(block);
}

void json_memory_count(void)
{
    json_memory_live = json_memory_peak = 0;
    json_set_alloc_funcs(take, give);
}
