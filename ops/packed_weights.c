#include "ops/packed_weights.h"
#include "ops/linear_int8.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdatomic.h>

struct entry {
    sb_tensor *weight;
    void *packed; /* NULL: not yet */
    size_t bytes;
    const struct linear_int8_kernels *int8; /* NULL: it keeps its dtype */
};

struct packed_weights {
    sb_weight_format format;
    struct entry *entry;
    int64_t count, room;
    atomic_flag lock; /* threads that decode share the weights */
    int64_t next; /* the entry after the last one found: each step uses weights in the same order */
};

struct packed_weights *packed_weights_new(sb_weight_format format)
{
    struct packed_weights *p = memory_new(sizeof *p);
    if (!p)
        return sb_fail("packed_weights: out of memory");
    p->format = format;
    atomic_flag_clear(&p->lock);
    return p;
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

/* Adds an entry for a weight at its first use; NULL when out of memory. */
static struct entry *packed_add(struct packed_weights *p, sb_tensor *weight,
                                const struct linear_int8_kernels *int8)
{
    if (!memory_room(&p->entry, p->count, &p->room, sizeof *p->entry))
        return NULL;
    struct entry *e = &p->entry[p->count++];
    *e = (struct entry){.weight = sb_tensor_retain(weight), .int8 = int8};
    return e;
}

static bool packed_pack(struct entry *e, const struct linear_kernels *kernels)
{
    const sb_tensor *w = e->weight;
    int64_t (*pack)(int64_t, int64_t, const void *, void *) =
        e->int8 ? e->int8->pack : kernels->pack;
    e->bytes = (size_t)pack(w->dim[0], w->dim[1], w->data, NULL);
    e->packed = pool_take(memory_pool(), e->bytes);
    if (e->packed)
        pack(w->dim[0], w->dim[1], w->data, e->packed);
    return e->packed != NULL;
}

static const struct linear_int8_kernels *packed_int8(const struct packed_weights *p,
                                                     const sb_tensor *weight)
{
    return p->format == SB_WEIGHTS_INT8 && weight->dim[1] <= LINEAR_INT8_LONGEST
               ? kernel_row_if_any(&linear_int8_rows, weight->device, weight->dtype)
               : NULL;
}

static bool packed_weights_take(struct packed_weights *p, const struct linear_kernels *kernels,
                                const struct linear_int8_kernels *int8, sb_tensor *weight,
                                struct packed_weight *packed)
{
    struct entry *e = packed_find(p, weight);
    const bool now = e || int8;
    e = e ? e : packed_add(p, weight, int8);
    if (!e || (!e->packed && now && !packed_pack(e, kernels)))
        return false;
    *packed = (struct packed_weight){e->packed, e->int8};
    return true;
}

/* Parameters only: other tensors may be replaced at the same address or change their values. */
bool packed_weights_find(struct packed_weights *p, const struct linear_kernels *kernels,
                         sb_tensor *weight, struct packed_weight *packed)
{
    *packed = (struct packed_weight){0};
    if (!p || !weight->requires_grad || weight->tape != 0)
        return true;
    const struct linear_int8_kernels *int8 = packed_int8(p, weight);
    if (!int8 && !kernels->pack)
        return true;
    while (atomic_flag_test_and_set(&p->lock))
        ;
    const bool ok = packed_weights_take(p, kernels, int8, weight, packed);
    atomic_flag_clear(&p->lock);
    return ok || sb_fail("linear: out of memory for packed weights");
}
