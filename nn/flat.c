/* The flat buffers of a set of parameters. */
#include "nn/flat.h"
#include "nn/parameter_set.h"
#include "tensor/device.h"
#include "tensor/memory.h"

enum { LARGE = 1 << 20 }; /* bytes */

/* Returns the memory of a step's activations before the flat buffers need theirs, and of the
   parameters' first places after that: few activations have the sizes of large weights. */
static void flat_return_memory(const sb_parameters *set)
{
    if (set->size * (int64_t)sb_dtype_bytes(set->dtype) >= LARGE)
        sb_device_trim(sb_device_cpu());
}

/* Moves a parameter's values into the flat buffer; the parameter becomes a view of it. */
static void flat_move_values(struct parameter *p, sb_tensor *values)
{
    sb_tensor *t = p->tensor;
    void *place = tensor_element(values, p->offset);
    t->device->copy(place, t->data, tensor_bytes(t));
    values->written = values->written > tensor_written(t) ? values->written : tensor_written(t);
    sb_tensor *old_base = t->base;
    tensor_free_data(t);
    sb_tensor_release(old_base);
    t->data = place;
    t->data_gone = false;
    t->base = sb_tensor_retain(values);
    atomic_fetch_add(&values->holders, 1);
}

static bool flat_join_values(sb_parameters *set)
{
    for (int64_t i = set->flattened; i < set->count; i++)
        if (atomic_load(&set->item[i].tensor->holders) > 1)
            return sb_fail("parameters: \"%s\" must move to a flat buffer, but an open tape or a "
                           "view shares its data; close the tape, or take the view later",
                           set->item[i].name);
    sb_tensor *values = tensor_new("parameters", sb_device_in_use(), set->dtype, 1, &set->size);
    if (!values)
        return false;
    for (int64_t i = 0; i < set->count; i++)
        flat_move_values(&set->item[i], values);
    sb_tensor_release(set->values);
    set->values = values;
    set->flattened = set->count;
    set->moved = true;
    return true;
}

/* The views of a new buffer that become the gradients; NULL for a frozen parameter. */
static sb_tensor **flat_view_gradients(const sb_parameters *set, sb_tensor *gradients)
{
    sb_tensor **view = memory_new((size_t)set->count * sizeof(sb_tensor *) + 1);
    bool ok = view || sb_fail("parameters: out of memory for their gradients");
    for (int64_t i = 0, slot = 0; ok && i < set->count; i++) {
        const sb_tensor *t = set->item[i].tensor;
        view[i] = set->item[i].frozen ? NULL
                                      : tensor_view("parameters", gradients, slot, t->rank, t->dim);
        ok = set->item[i].frozen || view[i];
        slot += set->item[i].frozen ? 0 : tensor_size(t);
    }
    for (int64_t i = 0; view && !ok && i < set->count; i++)
        sb_tensor_release(view[i]);
    if (!ok)
        memory_free(view);
    return ok ? view : NULL;
}

static void flat_move_gradient(struct parameter *p, sb_tensor *view)
{
    sb_tensor *t = p->tensor;
    if (t->grad_current)
        t->device->copy(view->data, t->grad->data, tensor_bytes(t));
    sb_tensor_release(t->grad);
    t->grad = view;
}

/* Gives each parameter that is not frozen its place in a new buffer of gradients. */
static bool flat_join_gradients(sb_parameters *set)
{
    int64_t size = 0;
    for (int64_t i = 0; i < set->count; i++)
        size += set->item[i].frozen ? 0 : tensor_size(set->item[i].tensor);
    sb_tensor *gradients = tensor_new("parameters", sb_device_in_use(), set->dtype, 1, &size);
    sb_tensor **view = gradients ? flat_view_gradients(set, gradients) : NULL;
    if (!view) {
        sb_tensor_release(gradients);
        return false;
    }
    for (int64_t i = 0, slot = 0; i < set->count; i++) {
        struct parameter *p = &set->item[i];
        p->slot = slot;
        if (!p->frozen)
            flat_move_gradient(p, view[i]);
        slot += p->frozen ? 0 : tensor_size(p->tensor);
    }
    memory_free(view);
    sb_tensor_release(set->gradients);
    set->gradients = gradients;
    set->moved = false;
    set->layout++;
    return true;
}

static bool flat_is_joined(const sb_parameters *set)
{
    return set->flattened == set->count && set->values;
}

bool parameters_join(sb_parameters *set)
{
    return flat_is_joined(set) || flat_join_values(set);
}

static bool flat_refuse(const char *who)
{
    return sb_fail("%s: shares of a batch read these parameters; call it outside of their loss",
                   who);
}

bool parameters_may_change(const char *who, const sb_parameters *set)
{
    return !atomic_load(&set->in_shares) || flat_refuse(who);
}

bool parameters_share(sb_parameters *set, bool begin)
{
    return atomic_exchange(&set->in_shares, begin) != begin || flat_refuse("backward_in_shares");
}

bool parameters_flatten(sb_parameters *set)
{
    return parameters_may_change("parameters", set) && parameters_lay_out(set);
}

bool parameters_lay_out(sb_parameters *set)
{
    if (flat_is_joined(set) && !set->moved)
        return true;
    flat_return_memory(set);
    const bool ok = parameters_join(set) && (!set->moved || flat_join_gradients(set));
    flat_return_memory(set);
    return ok;
}

int64_t parameters_layout(const sb_parameters *set)
{
    return set->layout;
}

sb_tensor *parameters_values(const sb_parameters *set)
{
    return set->values;
}

sb_tensor *parameters_gradients(const sb_parameters *set)
{
    return set->gradients;
}

bool parameters_is_frozen(const sb_parameters *set, int64_t i)
{
    return set->item[i].frozen;
}

void parameters_settle_gradients(sb_parameters *set)
{
    for (int64_t i = 0; i < set->flattened; i++)
        if (!set->item[i].frozen && !set->item[i].tensor->grad_current)
            tensor_zero(set->item[i].tensor->grad);
}

bool parameters_settle_part(sb_parameters *set, int64_t first, int64_t count)
{
    const sb_tensor *g = set->gradients;
    const size_t bytes = sb_dtype_bytes(set->dtype);
    bool ok = true;
    for (int64_t at = first, next, i = parameters_at(set, g, first); at < first + count;
         at = next, i++) {
        next = parameters_offset(set, g, i + 1);
        next = next < first + count ? next : first + count;
        if (next > at && !set->item[i].tensor->grad_current)
            ok = g->device->zero(tensor_element(g, at), (size_t)(next - at) * bytes) && ok;
    }
    return ok;
}

int64_t parameters_offset(const sb_parameters *set, const sb_tensor *flat, int64_t i)
{
    if (i >= set->count)
        return tensor_size(flat);
    return tensor_size(flat) == set->size ? set->item[i].offset : set->item[i].slot;
}

int64_t parameters_at(const sb_parameters *set, const sb_tensor *flat, int64_t element)
{
    int64_t i = set->count - 1;
    while (i > 0 && parameters_offset(set, flat, i) > element)
        i--;
    return i;
}
