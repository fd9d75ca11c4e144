/* Steps of all optimisers with given gradients agree with PyTorch's: see
   tests/golden/references/optimisers.py. */
#include "tests/support/reference.h"
#include <stdio.h>

enum { STEPS = 8, PARAMETERS = 2 };

static const char *const names[PARAMETERS] = {"w", "v"};

struct optimiser_case {
    const char *path;
    sb_optimiser *(*new_optimiser)(sb_parameters *set, const sb_optimiser_options *options);
    sb_optimiser_options options;
};

static sb_parameters *read_start(const sb_safetensors *file, sb_dtype dtype)
{
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    sb_parameters *set = sb_parameters_of(dtype, 1);
    MUST(sb_parameters_add(set, "w", SB_SHAPE(3, 4), zero) &&
         sb_parameters_add(set, "v", SB_SHAPE(5), zero));
    reference_read_weights(file, "start", set);
    return KEPT(set);
}

/* Leaves each parameter with the gradient that the file has for the step: that of the sum of w g.
 */
static void set_gradients(const sb_safetensors *file, sb_parameters *set, int step)
{
    for (int i = 0; i < PARAMETERS; i++) {
        TAPE(SB_RECORD);
        sb_tensor *w = sb_parameters_find(set, names[i]);
        sb_tensor *g = reference_tensor(file, reference_name("gradients", names[i]).text, w->dtype);
        g = sb_reshape(sb_slice(g, 0, step, 1), w->rank, w->dim);
        MUST(sb_backward_from(w, g));
    }
}

static void compare(const sb_safetensors *file, const void *context, sb_dtype dtype)
{
    const struct optimiser_case *c = context;
    sb_parameters *set = read_start(file, dtype);
    sb_optimiser *optimiser = KEPT(c->new_optimiser(set, &c->options));
    sb_tensor *after[PARAMETERS][STEPS];
    TAPE(SB_NO_RECORD);
    for (int step = 0; step < STEPS; step++) {
        set_gradients(file, set, step);
        MUST(sb_optimiser_step(optimiser));
        for (int i = 0; i < PARAMETERS; i++)
            after[i][step] = sb_scale(sb_parameters_find(set, names[i]), 1);
    }
    for (int i = 0; i < PARAMETERS; i++)
        reference_expect(file, reference_name(c->path, names[i]).text, sb_stack(after[i], STEPS, 0),
                         0);
}

static void compare_all(int n, const struct optimiser_case cases[])
{
    sb_safetensors *file = KEPT(reference_open("optimisers"));
    for (int i = 0; i < n; i++)
        reference_each(compare, file, &cases[i]);
}

#define ADAM(rate, b1, b2, e) .learning_rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = e

TEST(reference_optimisers, sgd_steps_are_as_in_pytorch)
{
    compare_all(
        6, (const struct optimiser_case[]){
               {"optimiser/sgd", sb_sgd_new, {.learning_rate = 0.1}},
               {"optimiser/sgd_decay", sb_sgd_new, {.learning_rate = 0.1, .weight_decay = 0.2}},
               {"optimiser/momentum", sb_sgd_new, {.learning_rate = 0.1, .momentum = 0.9}},
               {"optimiser/momentum_decay",
                sb_sgd_new,
                {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.2}},
               {"optimiser/nesterov",
                sb_sgd_new,
                {.learning_rate = 0.1, .momentum = 0.8, .nesterov = true}},
               {"optimiser/nesterov_decay_clip",
                sb_sgd_new,
                {.learning_rate = 0.1,
                 .momentum = 0.8,
                 .nesterov = true,
                 .weight_decay = 0.2,
                 .clip = 1.5}}});
}

TEST(reference_optimisers, adam_steps_are_as_in_pytorch)
{
    compare_all(
        4, (const struct optimiser_case[]){
               {"optimiser/adam", sb_adam_new, {ADAM(0.01, 0.9, 0.999, 1e-8)}},
               {"optimiser/adam_usual", sb_adam_new, {.clip = 0}},
               {"optimiser/adam_decay",
                sb_adam_new,
                {ADAM(0.01, 0.8, 0.95, 1e-3), .weight_decay = 0.2}},
               {"optimiser/adam_clip", sb_adam_new, {ADAM(0.01, 0.9, 0.98, 0.1), .clip = 1.5}}});
}

TEST(reference_optimisers, adamw_steps_are_as_in_pytorch)
{
    compare_all(2, (const struct optimiser_case[]){
                       {"optimiser/adamw",
                        sb_adamw_new,
                        {ADAM(0.01, 0.9, 0.999, 1e-8), .weight_decay = 0.2, .decay_all = true}},
                       {"optimiser/adamw_clip",
                        sb_adamw_new,
                        {ADAM(0.01, 0.9, 0.98, 0.1), .weight_decay = 0.2, .decay_all = true,
                         .clip = 2.5}}});
}

/* ---- groups ---- */

enum { GROUP_STEPS = 50 };

static sb_parameters *read_groups(const sb_safetensors *file)
{
    static const struct {
        const char *name;
        int rank;
        int64_t dim[2];
        sb_group group;
    } each[] = {{"norm.gain", 1, {5}, {.rate = 0}},
                {"encoder.weight", 2, {4, 3}, {.rate = 0.1}},
                {"encoder.bias", 1, {4}, {.rate = 0.1}},
                {"late", 2, {2, 2}, {.decay = 0.5}},
                {"head.weight", 2, {3, 4}, {.rate = 2, .decay = 0.1}}};
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    for (int i = 0; i < 5; i++)
        MUST(sb_parameters_add(set, each[i].name, each[i].rank, each[i].dim,
                               (sb_initial){SB_INITIAL_CONSTANT, 0}) &&
             sb_parameters_group(set, each[i].name, &each[i].group));
    reference_read_weights(file, "groups.start", set);
    return KEPT(set);
}

/* "late" has a gradient at every third step alone. */
static void set_group_gradients(const sb_safetensors *file, sb_parameters *set, int step)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const char *name = sb_parameters_name(set, i);
        if (strcmp(name, "late") == 0 && step % 3 != 0)
            continue;
        TAPE(SB_RECORD);
        sb_tensor *w = sb_parameters_get(set, i);
        sb_tensor *g =
            reference_tensor(file, reference_name("groups.gradients", name).text, SB_F64);
        g = sb_reshape(sb_slice(g, 0, step, 1), w->rank, w->dim);
        MUST(sb_backward_from(w, g));
    }
}

/* AdamW spares norms and biases without being told to, which the reference's groups spell out. */
TEST(reference_optimisers, fifty_steps_with_groups_are_as_in_pytorch)
{
    sb_safetensors *file = KEPT(reference_open("optimisers"));
    sb_parameters *set = read_groups(file);
    const sb_optimiser_options o = {ADAM(0.01, 0.9, 0.98, 1e-8), .weight_decay = 0.2};
    sb_optimiser *adamw = KEPT(sb_adamw_new(set, &o));
    for (int step = 0; step < GROUP_STEPS; step++) {
        set_group_gradients(file, set, step);
        cr_assert(step != GROUP_STEPS / 2 || sb_optimiser_set_rate(adamw, 0.01 / 4));
        MUST(sb_optimiser_step(adamw));
    }
    TAPE(SB_NO_RECORD);
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const char *name = sb_parameters_name(set, i);
        const sb_tensor *after =
            reference_tensor(file, reference_name("groups.after", name).text, SB_F64);
        const double apart = test_relative(sb_parameters_get(set, i), after);
        cr_expect(apart < 1e-9, "%s differs by %g", name, apart);
    }
}
