#include "nn/optimiser_state.h"
#include "tensor/failure.h"
#include <math.h>

sb_parameters *optimiser_set(const sb_optimiser *optimiser)
{
    return optimiser->set;
}

struct moments *optimiser_moments(sb_optimiser *optimiser)
{
    return &optimiser->moments;
}

double optimiser_own_rate(const sb_optimiser *optimiser)
{
    return optimiser->own_rate;
}

bool optimiser_steps_differ(const sb_optimiser *optimiser)
{
    const struct moments *m = &optimiser->moments;
    for (int64_t i = 0; i < m->count; i++)
        if (m->place[i].slot >= 0 && m->place[i].steps != optimiser->steps)
            return true;
    return false;
}

sb_tensor *optimiser_steps_new(const sb_optimiser *optimiser)
{
    const struct moments *m = &optimiser->moments;
    sb_tensor *steps = tensor_new("optimiser", sb_device_cpu(), SB_F64, 1, &m->count);
    for (int64_t i = 0; steps && i < m->count; i++)
        ((double *)steps->data)[i] = (double)m->place[i].steps;
    return steps;
}

bool optimiser_take_steps(sb_optimiser *optimiser, const sb_tensor *steps)
{
    struct moments *m = &optimiser->moments;
    const double *number = steps->data, most = (double)optimiser->steps;
    for (int64_t i = 0; i < m->count; i++)
        if (!(number[i] >= 0 && number[i] <= most && number[i] == floor(number[i])))
            return sb_fail("optimiser: \"%s\" has taken %g steps of %g",
                           sb_parameters_name(optimiser->set, i), number[i], most);
    for (int64_t i = 0; i < m->count; i++)
        m->place[i].steps = (int64_t)number[i];
    return true;
}
