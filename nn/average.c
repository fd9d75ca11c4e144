#include "nn/average.h"
#include "nn/flat.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_average {
    sb_parameters *set;
    double decay;
    int64_t updates;
    sb_tensor *values;
};

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
    const sb_tensor *w = parameters_values(set);
    *average = (sb_average){.set = set, .decay = decay};
    average->values = tensor_new("average", w->device, w->dtype, 1, w->dim);
    if (average->values) {
        w->device->copy(average->values->data, w->data, tensor_bytes(w));
        return average;
    }
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
    if (tensor_size(average->values) != sb_parameters_size(average->set))
        return sb_fail("average: it holds %lld values, the parameters have grown to %lld",
                       (long long)tensor_size(average->values),
                       (long long)sb_parameters_size(average->set));
    return true;
}

bool sb_average_update(sb_average *average)
{
    if (!fits(average))
        return false;
    const sb_tensor *w = parameters_values(average->set);
    const struct update_kernels *k = kernel_row(&update_rows, w);
    double t = (double)++average->updates, early = (1 + t) / (10 + t);
    double decay = early < average->decay ? early : average->decay;
    return k && k->average(tensor_size(w), decay, w->data, average->values->data);
}

bool sb_average_swap(sb_average *average)
{
    if (!fits(average))
        return false;
    const sb_tensor *w = parameters_values(average->set);
    sb_tensor *spare = tensor_new("average", w->device, w->dtype, 1, w->dim);
    if (!spare)
        return false;
    size_t bytes = tensor_bytes(w);
    tensor_note_write(parameters_values(average->set));
    w->device->copy(spare->data, w->data, bytes);
    w->device->copy(w->data, average->values->data, bytes);
    w->device->copy(average->values->data, spare->data, bytes);
    sb_tensor_release(spare);
    return true;
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
