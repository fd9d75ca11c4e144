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

/* The model's description, with these settings changed where it has them. */
static sb_description *describe(const sb_model *model)
{
    static const char *const changed[][2] = {{"precision", "f32"},
                                             {"dropout", "0"},
                                             {"attention-dropout", "0"},
                                             {"feed-forward-dropout", "0"}};
    sb_description *d = sb_model_describe(model);
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < sizeof changed / sizeof *changed; i++)
        ok = !sb_description_get(d, changed[i][0]) ||
             sb_description_set(d, changed[i][0], changed[i][1]);
    if (ok)
        return d;
    sb_description_free(d);
    return NULL;
}

bool model_twin_open(struct model_twin *twin, const sb_model *model, const sb_batch *batch,
                     sb_dtype dtype)
{
    sb_description *d = describe(model);
    *twin = (struct model_twin){.weights = d ? sb_parameters_of(dtype, 0) : NULL, .batch = batch};
    const bool ok = twin->weights && sb_model_build(&twin->model, model->kind, twin->weights, d) &&
                    copy(twin->weights, model->weights);
    sb_description_free(d);
    return ok;
}

void model_twin_close(struct model_twin *twin)
{
    sb_model_free(&twin->model);
    sb_parameters_free(twin->weights);
    *twin = (struct model_twin){0};
}

sb_tensor *model_twin_loss(void *context, sb_tensor *const unused[])
{
    const struct model_twin *twin = context;
    (void)unused;
    return twin->model.kind->loss(twin->model.self, twin->batch, SB_LOSS_MEAN);
}

bool model_twin_check(struct model_twin *twin, int directions, bool second_order,
                      sb_gradcheck_result *best)
{
    const int64_t n = sb_parameters_count(twin->weights);
    sb_tensor **x = memory_new((size_t)(n + 1) * sizeof *x);
    *best = (sb_gradcheck_result){.error = NAN, .input = -1};
    if (!x)
        return sb_fail("gradcheck: out of memory for %lld parameters", (long long)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = sb_parameters_get(twin->weights, i);
    for (double h = 1e-5; h > 5e-8; h /= 10) {
        const sb_gradcheck_options options = {.step = h,
                                              .tolerance = MODEL_TOLERANCE,
                                              .method = SB_GRADCHECK_EXACT,
                                              .directions = directions,
                                              .second_order = second_order};
        sb_gradcheck_result r;
        sb_gradcheck(model_twin_loss, twin, x, (int)n, &options, &r);
        if (h == 1e-5 || r.curvature < best->curvature) {
            *best = r;
            best->step = h;
        }
        if (r.ok || !(r.error <= MODEL_TOLERANCE) || r.symmetry > MODEL_SYMMETRY)
            break;
    }
    memory_free(x);
    return !isnan(best->error);
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
