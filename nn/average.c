#include "nn/average.h"
#include "nn/parameter_set.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_average {
    sb_parameters *set;
    double decay;
    int64_t updates;
    int64_t layout;    /* of the set's gradients, which is that of the values */
    sb_tensor *values; /* of the parameters that are not frozen */
    sb_tensor *spare;  /* during a swap */
};

/* What to do with a block of parameters and of their averages. */
typedef bool average_block(sb_average *average, int64_t n, void *value, void *mean);

/* A block is all consecutive parameters that are not frozen. */
static bool average_each_block(sb_average *average, average_block *work)
{
    const sb_parameters *set = average->set;
    bool ok = true;
    for (int64_t i = 0, end; ok && i < set->count; i = end) {
        const struct parameter *first = &set->item[i];
        for (end = i + 1; end < set->count && set->item[end].frozen == first->frozen;)
            end++;
        if (!first->frozen)
            ok = work(average, parameters_offset(set, set->values, end) - first->offset,
                      tensor_element(set->values, first->offset),
                      tensor_element(average->values, first->slot));
    }
    return ok;
}

static bool average_copy(sb_average *average, int64_t n, void *value, void *mean)
{
    const sb_tensor *t = average->values;
    return t->device->copy(mean, value, (size_t)n * sb_dtype_bytes(t->dtype));
}

sb_average *sb_average_new(sb_parameters *set, double decay)
{
    if (!set)
        return fail_null("average", "parameters");
    if (!(decay > 0 && decay < 1))
        return sb_fail("average: decay is %g, not in (0, 1)", decay);
    if (!parameters_flatten(set))
        return NULL;
    sb_average *average = memory_new(sizeof *average);
    if (!average)
        return sb_fail("average: out of memory");
    const sb_tensor *g = parameters_gradients(set);
    *average = (sb_average){.set = set, .decay = decay, .layout = parameters_layout(set)};
    average->values = tensor_new("average", g->device, g->dtype, 1, g->dim);
    if (average->values && average_each_block(average, average_copy))
        return average;
    sb_average_free(average);
    return NULL;
}

void sb_average_free(sb_average *average)
{
    if (average)
        sb_tensor_release(average->values);
    memory_free(average);
}

static bool fits(const sb_average *average)
{
    if (!average)
        return fail_null("average", "average");
    if (!parameters_flatten(average->set))
        return false;
    return average->layout == parameters_layout(average->set) ||
           sb_fail("average: parameters were added, frozen or thawed since it was made; make a new "
                   "average");
}

static bool average_add(sb_average *average, int64_t n, void *value, void *mean)
{
    const struct update_kernels *k = kernel_row(&update_rows, average->values);
    const double t = (double)average->updates, early = (1 + t) / (10 + t);
    const double decay = early < average->decay ? early : average->decay;
    return k && k->average(n, decay, value, mean);
}

bool sb_average_update(sb_average *average)
{
    if (!fits(average))
        return false;
    average->updates++;
    return average_each_block(average, average_add);
}

static bool average_exchange(sb_average *average, int64_t n, void *value, void *mean)
{
    const sb_tensor *spare = average->spare;
    const size_t bytes = (size_t)n * sb_dtype_bytes(spare->dtype);
    return spare->device->copy(spare->data, value, bytes) &&
           spare->device->copy(value, mean, bytes) && spare->device->copy(mean, spare->data, bytes);
}

bool sb_average_swap(sb_average *average)
{
    if (!fits(average))
        return false;
    const sb_tensor *mean = average->values;
    average->spare = tensor_new("average", mean->device, mean->dtype, 1, mean->dim);
    tensor_note_write(parameters_values(average->set));
    const bool ok = average->spare && average_each_block(average, average_exchange);
    sb_tensor_release(average->spare);
    average->spare = NULL;
    return ok;
}

sb_tensor *sb_average_values(const sb_average *average)
{
    return average ? average->values : NULL;
}

int64_t sb_average_updates(const sb_average *average)
{
    return average ? average->updates : 0;
}

void sb_average_restore(sb_average *average, int64_t updates)
{
    if (average)
        average->updates = updates;
}
