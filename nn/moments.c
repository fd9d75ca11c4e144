#include "nn/moments.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

/* The places of all parameters. Those that had moments keep their number of steps. */
static struct moments_place *moments_places(const struct moments *m, const sb_parameters *set)
{
    const sb_tensor *g = parameters_gradients(set);
    const int64_t count = sb_parameters_count(set);
    struct moments_place *place = memory_new((size_t)count * sizeof *place + 1);
    if (!place)
        return sb_fail("optimiser: out of memory");
    for (int64_t i = 0; i < count; i++) {
        const bool frozen = parameters_is_frozen(set, i);
        const bool had = i < m->count && m->place[i].slot >= 0;
        place[i].slot = frozen ? -1 : parameters_offset(set, g, i);
        place[i].steps = had && !frozen ? m->place[i].steps : 0;
    }
    return place;
}

/* A new moment, with what an old one has of the same parameters. */
static sb_tensor *moments_make(const struct moments *m, const sb_tensor *old,
                               const struct moments_place *place, const sb_parameters *set)
{
    const sb_tensor *g = parameters_gradients(set);
    const size_t width = sb_dtype_bytes(g->dtype);
    sb_tensor *flat = tensor_new("optimiser", g->device, g->dtype, 1, g->dim);
    bool ok = flat && tensor_zero(flat);
    for (int64_t i = 0; ok && old && i < m->count; i++)
        if (m->place[i].slot >= 0 && place[i].slot >= 0)
            ok = g->device->copy((char *)flat->data + (size_t)place[i].slot * width,
                                 (const char *)old->data + (size_t)m->place[i].slot * width,
                                 tensor_bytes(sb_parameters_get(set, i)));
    if (ok)
        return flat;
    sb_tensor_release(flat);
    return NULL;
}

bool moments_fit(struct moments *m, sb_parameters *set)
{
    if (!parameters_flatten(set))
        return false;
    if (m->layout == parameters_layout(set))
        return true;
    struct moments next = {
        .tensors = m->tensors, .layout = parameters_layout(set), .count = sb_parameters_count(set)};
    next.place = moments_places(m, set);
    bool ok = next.place != NULL;
    for (int i = 0; ok && i < m->tensors; i++) {
        next.flat[i] = moments_make(m, m->flat[i], next.place, set);
        ok = next.flat[i] != NULL;
    }
    moments_free(ok ? m : &next);
    if (ok)
        *m = next;
    return ok;
}

void moments_free(struct moments *m)
{
    for (int i = 0; i < MOST_MOMENTS; i++)
        sb_tensor_release(m->flat[i]);
    memory_free(m->place);
}
