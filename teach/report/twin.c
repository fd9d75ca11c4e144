#include "teach/report/twin.h"
#include "autograd/tape.h"
#include "tensor/memory.h"
#include <math.h>

static bool copy(sb_parameters *to, const sb_parameters *from)
{
    for (int64_t p = 0; p < sb_parameters_count(from); p++) {
        const sb_tensor *w = sb_parameters_get(from, p);
        double *values = memory_new((size_t)(sb_tensor_size(w) + 1) * sizeof *values);
        if (!values)
            return sb_fail("report: out of memory for a copy of the weights");
        const bool ok =
            sb_tensor_read(w, values) && sb_tensor_write(sb_parameters_get(to, p), values);
        memory_free(values);
        if (!ok)
            return false;
    }
    return true;
}

bool twin_open(struct twin *twin, const struct subject *subject, sb_dtype dtype)
{
    const sb_seq2seq *model = subject->model;
    sb_seq2seq_options options = *sb_seq2seq_options_of(model);
    options.transformer.precision = SB_PRECISION_F32;
    *twin = (struct twin){.weights = sb_parameters_of(dtype, 0), .batch = subject->batch};
    if (twin->weights)
        twin->model = sb_seq2seq_for(twin->weights, sb_seq2seq_source(model),
                                     sb_seq2seq_target(model), &options);
    return twin->model && copy(twin->weights, sb_seq2seq_parameters(model));
}

void twin_close(struct twin *twin)
{
    sb_seq2seq_free(twin->model);
    sb_parameters_free(twin->weights);
    *twin = (struct twin){0};
}

bool twin_backward(struct twin *twin)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = sb_seq2seq_loss(twin->model, twin->batch);
    const bool ok = loss && sb_backward(loss);
    return sb_tape_end(&tape) && ok;
}

/* The loss with the element at this value; *there: the value as the dtype rounds it. */
static bool loss_at(struct twin *twin, sb_tensor *w, int64_t i, double value, double *there,
                    double *loss)
{
    if (!sb_tensor_set(w, i, value))
        return false;
    *there = sb_tensor_get(w, i);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = sb_seq2seq_loss(twin->model, twin->batch);
    *loss = y ? sb_tensor_value(y) : (double)NAN;
    return sb_tape_end(&tape) && y;
}

bool twin_difference(struct twin *twin, sb_tensor *w, int64_t i, double h, double *difference)
{
    const double value = sb_tensor_get(w, i), step = h * fmax(1, fabs(value));
    double up = 0, down = 0, loss_up = 0, loss_down = 0;
    const bool ok = loss_at(twin, w, i, value + step, &up, &loss_up) &&
                    loss_at(twin, w, i, value - step, &down, &loss_down);
    *difference = (loss_up - loss_down) / (up - down);
    return sb_tensor_set(w, i, value) && ok;
}
