#include "nn/optimiser.h"
#include "nn/clip.h"
#include "nn/flat.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <math.h>

enum kind { SGD, ADAM, ADAMW };

static const char *const names[] = {"sgd", "adam", "adamw"};

struct sb_optimiser {
    enum kind kind;
    sb_parameters *set;
    sb_optimiser_options options;
    int64_t steps;
    double rate, norm;
    sb_plateau plateau;
    sb_tensor *moment[2]; /* Adam: m and v; SGD: u */
};

static bool in_unit(const char *who, const char *what, double value)
{
    return (value >= 0 && value < 1) || sb_fail("%s: %s is %g, not in [0, 1)", who, what, value);
}

static bool not_negative(const char *who, const char *what, double value)
{
    return (value >= 0 && isfinite(value)) ||
           sb_fail("%s: %s is %g; it must be a number >= 0", who, what, value);
}

static bool complete(enum kind kind, const sb_optimiser_options *given, sb_optimiser_options *o)
{
    const char *who = names[kind];
    *o = given ? *given : (sb_optimiser_options){0};
    if (!not_negative(who, "learning_rate", o->learning_rate) ||
        !not_negative(who, "epsilon", o->epsilon) || !not_negative(who, "clip", o->clip) ||
        !not_negative(who, "weight_decay", o->weight_decay) || !in_unit(who, "beta1", o->beta1) ||
        !in_unit(who, "beta2", o->beta2) || !in_unit(who, "momentum", o->momentum))
        return false;
    if (!sb_option_given(o->schedule.rate)) {
        const double usual = kind == SGD ? 0.1 : 0.001;
        o->schedule.rate = sb_option_given(o->learning_rate) ? o->learning_rate : usual;
    }
    if (kind == SGD && o->nesterov && o->momentum == 0)
        return sb_fail("%s: nesterov is set and momentum is 0; Nesterov's step needs a momentum, "
                       "such as 0.9",
                       who);
    o->beta1 = sb_option(o->beta1, 0.9);
    o->beta2 = sb_option(o->beta2, 0.98);
    o->epsilon = sb_option(o->epsilon, 1e-9);
    return sb_schedule_check(&o->schedule);
}

/* Flattens the parameters and allocates moments of the same size; parameters added since the last
   call start with moments of 0. */
static bool prepare(sb_optimiser *o)
{
    if (!parameters_flatten(o->set))
        return false;
    const sb_tensor *w = parameters_values(o->set);
    for (int i = 0; i < (o->kind == SGD ? 1 : 2); i++) {
        sb_tensor *old = o->moment[i];
        if (old && tensor_size(old) == tensor_size(w))
            continue;
        sb_tensor *moment = tensor_new(names[o->kind], w->device, w->dtype, 1, w->dim);
        if (!moment)
            return false;
        tensor_zero(moment);
        if (old)
            w->device->copy(moment->data, old->data, tensor_bytes(old));
        sb_tensor_release(old);
        o->moment[i] = moment;
    }
    return true;
}

static sb_optimiser *new (enum kind kind, sb_parameters *set, const sb_optimiser_options *options)
{
    sb_optimiser_options all;
    if (!set)
        return fail_null(names[kind], "parameters");
    if (!complete(kind, options, &all))
        return NULL;
    const sb_dtype dtype = sb_parameters_dtype(set);
    if (!kernel_row_if_any(&update_rows, sb_device_in_use(), dtype))
        return sb_fail("%s: the parameters are of %s, whose steps would be lost to rounding; make "
                       "them of f32, and train with the option SB_PRECISION_BF16",
                       names[kind], sb_dtype_name(dtype));
    sb_optimiser *o = memory_new(sizeof *o);
    if (!o)
        return sb_fail("%s: out of memory", names[kind]);
    *o = (sb_optimiser){.kind = kind, .set = set, .options = all};
    if (prepare(o))
        return o;
    sb_optimiser_free(o);
    return NULL;
}

sb_optimiser *sb_sgd_new(sb_parameters *set, const sb_optimiser_options *options)
{
    return new (SGD, set, options);
}

sb_optimiser *sb_adam_new(sb_parameters *set, const sb_optimiser_options *options)
{
    return new (ADAM, set, options);
}

sb_optimiser *sb_adamw_new(sb_parameters *set, const sb_optimiser_options *options)
{
    return new (ADAMW, set, options);
}

void sb_optimiser_free(sb_optimiser *optimiser)
{
    if (!optimiser)
        return;
    sb_tensor_release(optimiser->moment[0]);
    sb_tensor_release(optimiser->moment[1]);
    memory_free(optimiser);
}

static bool update_adam(sb_optimiser *o, const struct update_kernels *k, double gradient_scale)
{
    const sb_optimiser_options *p = &o->options;
    sb_tensor *w = parameters_values(o->set), *g = parameters_gradients(o->set);
    double t = (double)o->steps;
    struct adam_step step = {.rate = o->rate,
                             .beta1 = p->beta1,
                             .beta2 = p->beta2,
                             .epsilon = p->epsilon,
                             .correction1 = 1 - math_pow(p->beta1, t),
                             .correction2 = 1 - math_pow(p->beta2, t),
                             .gradient_scale = gradient_scale,
                             .coupled_decay = o->kind == ADAM ? p->weight_decay : 0,
                             .decoupled_decay = o->kind == ADAMW ? p->weight_decay : 0};
    return k->adam(tensor_size(w), &step, g->data, w->data, o->moment[0]->data, o->moment[1]->data);
}

static bool update_sgd(sb_optimiser *o, const struct update_kernels *k, double gradient_scale)
{
    const sb_optimiser_options *p = &o->options;
    sb_tensor *w = parameters_values(o->set), *g = parameters_gradients(o->set);
    struct sgd_step step = {.rate = o->rate,
                            .momentum = p->momentum,
                            .gradient_scale = gradient_scale,
                            .decay = p->weight_decay,
                            .nesterov = p->nesterov};
    return k->sgd(tensor_size(w), &step, g->data, w->data, o->moment[0]->data);
}

bool sb_optimiser_step(sb_optimiser *optimiser)
{
    return sb_optimiser_step_scaled(optimiser, 1);
}

bool sb_optimiser_step_scaled(sb_optimiser *o, double factor)
{
    if (!o)
        return fail_null("optimiser_step", "optimiser");
    if (!(factor > 0 && isfinite(factor)))
        return sb_fail("optimiser_step: the factor is %g, not a positive number", factor);
    static const struct clip_caller caller = {"optimiser_step", "step skipped"};
    o->norm = 0;
    if (!prepare(o))
        return false;
    double gradient_scale;
    if (!clip_scale(&caller, o->set, o->options.clip, factor, &o->norm, &gradient_scale)) {
        sb_parameters_clear(o->set);
        return false;
    }
    const struct update_kernels *k = kernel_row(&update_rows, parameters_values(o->set));
    if (!k)
        return false;
    o->steps++;
    o->rate = sb_schedule_rate(&o->options.schedule, o->steps, &o->plateau);
    tensor_note_write(parameters_values(o->set));
    bool ok = o->kind == SGD ? update_sgd(o, k, gradient_scale) : update_adam(o, k, gradient_scale);
    sb_parameters_clear(o->set);
    return ok;
}

int64_t sb_optimiser_steps(const sb_optimiser *optimiser)
{
    return optimiser ? optimiser->steps : 0;
}

double sb_optimiser_rate(const sb_optimiser *optimiser)
{
    return optimiser ? optimiser->rate : 0;
}

double sb_optimiser_norm(const sb_optimiser *optimiser)
{
    return optimiser ? optimiser->norm : 0;
}

void sb_optimiser_observe(sb_optimiser *optimiser, double loss)
{
    if (optimiser)
        sb_plateau_observe(&optimiser->plateau, &optimiser->options.schedule, loss);
}

sb_tensor *sb_optimiser_moment(const sb_optimiser *optimiser, int i)
{
    return optimiser && i >= 0 && i < 2 ? optimiser->moment[i] : NULL;
}

sb_plateau sb_optimiser_plateau(const sb_optimiser *optimiser)
{
    return optimiser ? optimiser->plateau : (sb_plateau){0};
}

void sb_optimiser_restore(sb_optimiser *optimiser, int64_t steps, sb_plateau plateau)
{
    if (!optimiser)
        return;
    optimiser->steps = steps;
    optimiser->plateau = plateau;
}
