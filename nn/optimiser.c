#include "nn/optimiser.h"
#include "nn/flat.h"
#include "nn/groups.h"
#include "nn/optimiser_parts.h"
#include "nn/parameter_set.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- moments ---- */

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
    sb_tensor *flat = tensor_new("optimiser", g->device, g->dtype, 1, g->dim);
    bool ok = flat && tensor_zero(flat);
    for (int64_t i = 0; ok && old && i < m->count; i++)
        if (m->place[i].slot >= 0 && place[i].slot >= 0)
            ok = g->device->copy(tensor_element(flat, place[i].slot),
                                 tensor_element(old, m->place[i].slot),
                                 tensor_bytes(sb_parameters_get(set, i)));
    if (ok)
        return flat;
    sb_tensor_release(flat);
    return NULL;
}

static void moments_free(struct moments *m)
{
    for (int i = 0; i < MOST_MOMENTS; i++)
        sb_tensor_release(m->flat[i]);
    memory_free(m->place);
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

/* ---- new optimisers ---- */

static const char *const names[] = {"sgd", "adam", "adamw"};

static bool complete(enum kind kind, const sb_optimiser_options *given, sb_optimiser_options *o)
{
    const char *who = names[kind];
    *o = given ? *given : (sb_optimiser_options){0};
    if (!check_not_negative(who, "learning_rate", o->learning_rate) ||
        !check_not_negative(who, "epsilon", o->epsilon) ||
        !check_not_negative(who, "clip", o->clip) ||
        !check_not_negative(who, "weight_decay", o->weight_decay) ||
        !check_share(who, "beta1", o->beta1) || !check_share(who, "beta2", o->beta2) ||
        !check_share(who, "momentum", o->momentum))
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

static sb_optimiser *new (enum kind kind, sb_parameters *set, const sb_optimiser_options *options)
{
    sb_optimiser_options all;
    if (!set)
        return fail_null(names[kind], "parameters");
    if (!complete(kind, options, &all))
        return NULL;
    if (sb_parameters_size(set) > 0 && sb_parameters_trainable(set) == 0)
        return sb_fail("%s: all parameters are frozen, so there is nothing to train", names[kind]);
    const sb_dtype dtype = sb_parameters_dtype(set);
    if (!kernel_row_if_any(&update_rows, sb_device_in_use(), dtype))
        return sb_fail("%s: the parameters are of %s, whose steps would be lost to rounding; make "
                       "them of f32, and train with the option SB_PRECISION_BF16",
                       names[kind], sb_dtype_name(dtype));
    sb_optimiser *o = memory_new(sizeof *o);
    if (!o)
        return sb_fail("%s: out of memory", names[kind]);
    *o = (sb_optimiser){.kind = kind, .set = set, .options = all, .own_rate = NAN};
    o->moments.tensors = kind == SGD ? 1 : 2;
    if (moments_fit(&o->moments, set))
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
    moments_free(&optimiser->moments);
    memory_free(optimiser);
}

/* ---- runs ---- */

/* Consecutive parameters that one pass updates: they lie side by side in all buffers, and have the
   same rate, decay and number of steps. */
struct run {
    int64_t first, end; /* numbers of parameters */
    double rate, decay;
    int64_t steps;
};

/* Biases and norms (vectors and scalars) do not decay with AdamW: decay is meant for the weights of
   sums, and a gain of 0 switches its feature off. */
static double usual_decay(const sb_optimiser *o, int64_t i)
{
    const bool spared = o->kind == ADAMW && !o->options.decay_all &&
                        sb_tensor_rank(sb_parameters_get(o->set, i)) < 2;
    return spared ? 0 : o->options.weight_decay;
}

/* Parameter i as a run. */
static struct run run_of(const sb_optimiser *o, int64_t i)
{
    return (struct run){.first = i,
                        .end = i + 1,
                        .rate = o->rate * o->set->item[i].rate,
                        .decay = sb_option(o->set->item[i].decay, usual_decay(o, i)),
                        .steps = o->moments.place[i].steps + 1};
}

/* The first run from parameter i on. A parameter without a gradient is in none. */
static bool find_run(const sb_optimiser *o, int64_t i, struct run *run)
{
    const int64_t n = sb_parameters_count(o->set);
    while (i < n && !sb_tensor_grad(sb_parameters_get(o->set, i)))
        i++;
    if (i == n)
        return false;
    *run = run_of(o, i);
    for (i++; i < n && sb_tensor_grad(sb_parameters_get(o->set, i)); run->end = ++i) {
        const struct run next = run_of(o, i);
        if (next.rate != run->rate || next.decay != run->decay || next.steps != run->steps)
            break;
    }
    return true;
}

/* The run's elements in the flat buffers. */
struct elements {
    int64_t n;
    void *w, *g, *moment[MOST_MOMENTS];
};

static struct elements elements_of(const sb_optimiser *o, const struct run *run)
{
    const sb_tensor *w = parameters_values(o->set), *g = parameters_gradients(o->set);
    const sb_tensor *first = o->moments.flat[0], *second = o->moments.flat[1];
    const int64_t slot = parameters_offset(o->set, g, run->first);
    return (struct elements){
        .n = parameters_offset(o->set, g, run->end) - slot,
        .w = tensor_element(w, parameters_offset(o->set, w, run->first)),
        .g = tensor_element(g, slot),
        .moment = {tensor_element(first, slot), second ? tensor_element(second, slot) : NULL}};
}

static struct adam_step adam_step_of(const sb_optimiser *o, const struct run *run,
                                     double gradient_scale)
{
    const sb_optimiser_options *p = &o->options;
    const double t = (double)run->steps;
    return (struct adam_step){.rate = run->rate,
                              .beta1 = p->beta1,
                              .beta2 = p->beta2,
                              .epsilon = p->epsilon,
                              .correction1 = 1 - math_pow(p->beta1, t),
                              .correction2 = 1 - math_pow(p->beta2, t),
                              .gradient_scale = gradient_scale,
                              .coupled_decay = o->kind == ADAM ? run->decay : 0,
                              .decoupled_decay = o->kind == ADAMW ? run->decay : 0};
}

static bool update_adam(const sb_optimiser *o, const struct update_kernels *k,
                        const struct run *run, double gradient_scale)
{
    const struct elements e = elements_of(o, run);
    const struct adam_step step = adam_step_of(o, run, gradient_scale);
    return k->adam(e.n, &step, e.g, e.w, e.moment[0], e.moment[1]);
}

static bool update_sgd(const sb_optimiser *o, const struct update_kernels *k, const struct run *run,
                       double gradient_scale)
{
    const sb_optimiser_options *p = &o->options;
    const struct elements e = elements_of(o, run);
    const struct sgd_step step = {.rate = run->rate,
                                  .momentum = p->momentum,
                                  .gradient_scale = gradient_scale,
                                  .decay = run->decay,
                                  .nesterov = p->nesterov};
    return k->sgd(e.n, &step, e.g, e.w, e.moment[0]);
}

/* k is NULL after a graph has done it: then the steps are only counted. */
static bool update_all(sb_optimiser *o, const struct update_kernels *k, double gradient_scale)
{
    struct run run;
    bool ok = true;
    for (int64_t i = 0; ok && find_run(o, i, &run); i = run.end) {
        ok = !k || (o->kind == SGD ? update_sgd : update_adam)(o, k, &run, gradient_scale);
        for (int64_t p = run.first; p < run.end; p++)
            o->moments.place[p].steps = run.steps;
    }
    return ok;
}

/* ---- steps ---- */

bool sb_optimiser_step(sb_optimiser *optimiser)
{
    return sb_optimiser_step_scaled(optimiser, 1);
}

static double next_rate(const sb_optimiser *o)
{
    return isnan(o->own_rate) ? sb_schedule_rate(&o->options.schedule, o->steps + 1, &o->plateau)
                              : o->own_rate;
}

/* Counts a step, and updates the parameters unless k is NULL. */
static bool take_step(sb_optimiser *o, const struct update_kernels *k, double gradient_scale)
{
    o->steps++;
    o->taken = false;
    tensor_note_write(parameters_values(o->set));
    const bool ok = update_all(o, k, gradient_scale);
    sb_parameters_clear(o->set);
    return ok;
}

/* Adam keeps averages of squares; an infinite one would stop its parameter for ever. */
static bool squares_fit(const sb_optimiser *o, double gradient_scale, double factor)
{
    const double norm = o->norm / factor * gradient_scale;
    if (o->kind == SGD || sb_parameters_dtype(o->set) != SB_F32 || norm * norm <= (double)FLT_MAX)
        return true;
    return sb_fail("optimiser_step: the gradient has the norm %g, whose square f32 cannot hold, "
                   "and Adam keeps squares; step skipped; clip the gradient",
                   norm);
}

bool sb_optimiser_step_scaled(sb_optimiser *o, double factor)
{
    if (!o)
        return fail_null("optimiser_step", "optimiser");
    if (!(factor > 0 && isfinite(factor)))
        return sb_fail("optimiser_step: the factor is %g, not a positive number", factor);
    static const struct clip_caller caller = {"optimiser_step", "step skipped"};
    if (o->taken)
        return take_step(o, NULL, 1);
    o->norm = 0;
    if (!moments_fit(&o->moments, o->set))
        return false;
    double gradient_scale;
    if (!clip_scale(&caller, o->set, o->options.clip, factor, &o->norm, &gradient_scale) ||
        !squares_fit(o, gradient_scale, factor)) {
        sb_parameters_clear(o->set);
        return false;
    }
    const struct update_kernels *k = kernel_row(&update_rows, parameters_values(o->set));
    if (!k)
        return false;
    const double rate = next_rate(o);
    if (!check_not_negative("optimiser_step", "the schedule's rate", rate))
        return false;
    o->rate = rate;
    return take_step(o, k, gradient_scale);
}

/* ---- steps in a graph ---- */

/* The index of a step among the different ones; -1: there are too many. */
static int64_t plan_numbers(struct optimiser_numbers *numbers, const struct adam_step *step)
{
    int64_t i = 0;
    while (i < numbers->count && memcmp(&numbers->step[i], step, sizeof *step) != 0)
        i++;
    if (i == OPTIMISER_NUMBERS)
        return -1;
    if (i == numbers->count)
        numbers->step[numbers->count++] = *step;
    return i;
}

static bool plan_run(const sb_optimiser *o, const struct run *run, struct optimiser_plan *plan,
                     struct optimiser_numbers *numbers)
{
    const struct elements e = elements_of(o, run);
    const struct adam_step step = adam_step_of(o, run, 1);
    const int64_t i = plan_numbers(numbers, &step);
    if (i < 0 || !memory_room(&plan->pass, plan->passes, &plan->room, sizeof *plan->pass))
        return false;
    plan->pass[plan->passes++] =
        (struct optimiser_pass){e.n, i, e.w, e.g, e.moment[0], e.moment[1]};
    return true;
}

bool optimiser_plan_step(sb_optimiser *o, struct optimiser_plan *plan,
                         struct optimiser_numbers *numbers)
{
    const double usual = o->rate;
    struct run run;
    bool ok = true;
    *numbers = (struct optimiser_numbers){.rate = next_rate(o)};
    plan->passes = 0;
    plan->limit = o->options.clip;
    if (o->kind == SGD || !(numbers->rate >= 0 && isfinite(numbers->rate)) ||
        !moments_fit(&o->moments, o->set))
        return false;
    o->rate = numbers->rate; /* of the runs */
    for (int64_t i = 0; ok && find_run(o, i, &run); i = run.end)
        ok = plan_run(o, &run, plan, numbers);
    o->rate = usual;
    return ok && plan->passes > 0;
}

void optimiser_step_taken(sb_optimiser *o, double rate, double norm)
{
    o->taken = true;
    o->rate = rate;
    o->norm = norm;
}

bool optimiser_same_plan(const struct optimiser_plan *a, const struct optimiser_plan *b)
{
    return a->passes == b->passes && a->limit == b->limit &&
           memcmp(a->pass, b->pass, (size_t)a->passes * sizeof *a->pass) == 0;
}

void optimiser_plan_free(struct optimiser_plan *plan)
{
    memory_free(plan->pass);
    *plan = (struct optimiser_plan){0};
}

bool optimiser_queue_step(const sb_optimiser *o, const struct optimiser_plan *plan,
                          const void *loss, const char *numbers, double *outcome)
{
    sb_parameters *set = o->set;
    const sb_tensor *g = parameters_gradients(set);
    const struct update_kernels *k = kernel_row(&update_rows, g);
    if (!k)
        return false;
    parameters_settle_gradients(set);
    bool ok = k->judge(tensor_size(g), g->data, loss, plan->limit, outcome);
    for (int64_t i = 0; ok && i < plan->passes; i++) {
        const struct optimiser_pass *p = &plan->pass[i];
        ok = k->adam_judged(p->n, numbers + p->numbers * ADAM_NUMBERS, outcome, p->g, p->w, p->m,
                            p->v);
    }
    return ok;
}

/* ---- state ---- */

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

bool sb_optimiser_set_rate(sb_optimiser *optimiser, double rate)
{
    if (!optimiser)
        return fail_null("optimiser_set_rate", "optimiser");
    if (!check_not_negative("optimiser_set_rate", "the rate", rate))
        return false;
    optimiser->own_rate = rate;
    return true;
}

void sb_optimiser_observe(sb_optimiser *optimiser, double loss)
{
    if (optimiser)
        sb_plateau_observe(&optimiser->plateau, &optimiser->options.schedule, loss);
}

sb_tensor *sb_optimiser_moment(const sb_optimiser *optimiser, int i)
{
    return optimiser && i >= 0 && i < MOST_MOMENTS ? optimiser->moments.flat[i] : NULL;
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
    for (int64_t i = 0; i < optimiser->moments.count; i++)
        optimiser->moments.place[i].steps = steps;
}

const char *optimiser_name(const sb_optimiser *optimiser)
{
    return names[optimiser->kind];
}
