#include "ops/packed_weights.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct entry {
    sb_tensor *weight;
    void *packed; /* NULL: not yet */
    size_t bytes;
};

struct packed_weights {
    struct entry *entry;
    int64_t count, room;
    int64_t next; /* the entry after the last one found: each step uses weights in the same order */
};

struct packed_weights *packed_weights_new(void)
{
    struct packed_weights *p = memory_new(sizeof *p);
    return p ? p : sb_fail("packed_weights: out of memory");
}

void packed_weights_free(struct packed_weights *p)
{
    for (int64_t i = 0; p && i < p->count; i++) {
        pool_give(memory_pool(), p->entry[i].packed, p->entry[i].bytes);
        sb_tensor_release(p->entry[i].weight);
    }
    if (p)
        memory_free(p->entry);
    memory_free(p);
}

static struct entry *packed_find(struct packed_weights *p, const sb_tensor *weight)
{
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t at = (p->next + i) % p->count;
        if (p->entry[at].weight == weight) {
            p->next = at + 1;
            return &p->entry[at];
        }
    }
    return NULL;
}

/* Adds an entry for a weight at its first use. */
static bool packed_add(struct packed_weights *p, sb_tensor *weight)
{
    if (p->count == p->room) {
        const int64_t room = 2 * p->room + 32;
        struct entry *entry = memory_new((size_t)room * sizeof *entry);
        if (!entry)
            return false;
        for (int64_t i = 0; i < p->count; i++)
            entry[i] = p->entry[i];
        memory_free(p->entry);
        p->entry = entry;
        p->room = room;
    }
    p->entry[p->count++] = (struct entry){.weight = sb_tensor_retain(weight)};
    return true;
}

static bool packed_pack(struct entry *e, const struct linear_kernels *kernels)
{
    const sb_tensor *w = e->weight;
    const int64_t n = kernels->pack(w->dim[0], w->dim[1], w->data, NULL);
    e->bytes = (size_t)n * sb_dtype_bytes(w->dtype);
    e->packed = pool_take(memory_pool(), e->bytes);
    if (e->packed)
        kernels->pack(w->dim[0], w->dim[1], w->data, e->packed);
    return e->packed != NULL;
}

/* Parameters only: other tensors may be replaced at the same address or change their values. */
bool packed_weights_find(struct packed_weights *p, const struct linear_kernels *kernels,
                         sb_tensor *weight, const void **packed)
{
    *packed = NULL;
    if (!p || !kernels->pack || !weight->requires_grad || weight->tape != 0)
        return true;
    struct entry *e = packed_find(p, weight);
    if (e ? !e->packed && !packed_pack(e, kernels) : !packed_add(p, weight))
        return sb_fail("linear: out of memory for packed weights");
    *packed = e ? e->packed : NULL;
    return true;
}
