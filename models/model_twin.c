#include "models/model_twin.h"
#include "autograd/tape.h"
#include "tensor/memory.h"
#include <math.h>

static bool copy(sb_parameters *to, const sb_parameters *from)
{
    for (int64_t p = 0; p < sb_parameters_count(from); p++) {
        const sb_tensor *w = sb_parameters_get(from, p);
        double *values = memory_new((size_t)(sb_tensor_size(w) + 1) * sizeof *values);
        if (!values)
            return sb_fail("out of memory for a copy of the weights");
        const bool ok =
            sb_tensor_read(w, values) && sb_tensor_write(sb_parameters_get(to, p), values);
        memory_free(values);
        if (!ok)
            return false;
    }
    return true;
}

bool model_twin_open(struct model_twin *twin, const sb_seq2seq *model, const sb_batch *batch,
                     sb_dtype dtype)
{
    sb_seq2seq_options options = *sb_seq2seq_options_of(model);
    options.transformer.precision = SB_PRECISION_F32;
    options.transformer.dropout = options.transformer.attention_dropout =
        options.transformer.feed_forward_dropout = 0;
    *twin = (struct model_twin){.weights = sb_parameters_of(dtype, 0), .batch = batch};
    if (twin->weights)
        twin->model = sb_seq2seq_for(twin->weights, sb_seq2seq_source(model),
                                     sb_seq2seq_target(model), &options);
    return twin->model && copy(twin->weights, sb_seq2seq_parameters(model));
}

void model_twin_close(struct model_twin *twin)
{
    sb_seq2seq_free(twin->model);
    sb_parameters_free(twin->weights);
    *twin = (struct model_twin){0};
}

sb_tensor *model_twin_loss(void *context, sb_tensor *const unused[])
{
    const struct model_twin *twin = context;
    (void)unused;
    return sb_seq2seq_loss(twin->model, twin->batch);
}

bool model_twin_backward(struct model_twin *twin)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = model_twin_loss(twin, NULL);
    const bool ok = loss && sb_backward(loss);
    return sb_tape_end(&tape) && ok;
}

/* The loss with the element at this value; *there: the value as the dtype rounds it. */
static bool loss_at(struct model_twin *twin, sb_tensor *w, int64_t i, double value, double *there,
                    double *loss)
{
    if (!sb_tensor_set(w, i, value))
        return false;
    *there = sb_tensor_get(w, i);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = model_twin_loss(twin, NULL);
    *loss = y ? sb_tensor_value(y) : (double)NAN;
    return sb_tape_end(&tape) && y;
}

bool model_twin_difference(struct model_twin *twin, sb_tensor *w, int64_t i, double h,
                           double *difference)
{
    const double value = sb_tensor_get(w, i), step = h * fmax(1, fabs(value));
    double up = 0, down = 0, loss_up = 0, loss_down = 0;
    const bool ok = loss_at(twin, w, i, value + step, &up, &loss_up) &&
                    loss_at(twin, w, i, value - step, &down, &loss_down);
    *difference = (loss_up - loss_down) / (up - down);
    return sb_tensor_set(w, i, value) && ok;
}
