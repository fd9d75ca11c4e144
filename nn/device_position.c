#include "nn/device_position.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

bool device_position_begin(struct device_position *p, int64_t B, int64_t at, int64_t room)
{
    *p = (struct device_position){.room = room};
    p->at = sb_tensor_full(SB_I32, SB_SHAPE(1), (double)at);
    p->lengths = p->at ? sb_tensor_full(SB_I32, SB_SHAPE(B), (double)at + 1) : NULL;
    return p->lengths != NULL;
}

void device_position_end(struct device_position *p)
{
    for (int64_t i = 0; i < p->tables; i++)
        sb_tensor_release(p->table[i].rows);
    memory_free(p->table);
    sb_tensor_release(p->at);
    sb_tensor_release(p->lengths);
    *p = (struct device_position){0};
}

struct device_position *device_position_open(void)
{
    return context_open()->position;
}

static sb_tensor *device_position_find(const struct device_position *p, const void *layer)
{
    for (int64_t i = 0; i < p->tables; i++)
        if (p->table[i].layer == layer)
            return p->table[i].rows;
    return NULL;
}

/* Retains the table for later steps. */
static bool device_position_keep(struct device_position *p, const void *layer, sb_tensor *rows)
{
    if (!memory_room(&p->table, p->tables, &p->tables_room, sizeof *p->table))
        return sb_fail("decode: out of memory");
    p->table[p->tables++] = (struct device_table){layer, sb_tensor_retain(rows)};
    return true;
}

sb_tensor *device_position_row(struct device_position *p, const void *layer,
                               sb_tensor *(*make)(const void *layer, int64_t room))
{
    sb_tensor *rows = device_position_find(p, layer);
    if (!rows) {
        rows = make(layer, p->room);
        if (!rows || !device_position_keep(p, layer, rows))
            return NULL;
    }
    return sb_embedding(rows, p->at);
}
