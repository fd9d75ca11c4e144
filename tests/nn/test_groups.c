/* Groups of parameters: frozen ones, and those with a rate and a decay of their own. */
#include "nn/flat.h"
#include "nn/name.h"
#include "tests/support/small_run.h"

static const sb_initial normal = {SB_INITIAL_NORMAL, 1};

/* encoder.weight (3, 4), encoder.bias (3), decoder.weight (2, 3), norm.gain (2): 23 values. */
static sb_parameters *set_new(void)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 5));
    MUST(sb_parameters_add(set, "encoder.weight", SB_SHAPE(3, 4), normal) &&
         sb_parameters_add(set, "encoder.bias", SB_SHAPE(3), normal) &&
         sb_parameters_add(set, "decoder.weight", SB_SHAPE(2, 3), normal) &&
         sb_parameters_add(set, "norm.gain", SB_SHAPE(2), normal));
    return set;
}

/* Leaves the gradient of the sum of squares of the parameters that match. */
static void backward(sb_parameters *set, const char *pattern)
{
    TAPE(SB_RECORD);
    sb_tensor *sum = NULL;
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        sb_tensor *w = sb_parameters_get(set, i);
        if (!glob_matches(pattern, sb_parameters_name(set, i)))
            continue;
        sb_tensor *square = sb_sum(sb_multiply(w, w), SB_ALL, false);
        sum = sum ? sb_add(sum, square) : square;
    }
    MUST(sb_backward(sum));
}

static double *copy_of(sb_parameters *set, const char *name)
{
    return numbers_of(sb_parameters_find(set, name));
}

/* Whether a parameter has the same bits as before. */
static bool stayed(sb_parameters *set, const char *name, const double *before)
{
    const double *now = copy_of(set, name);
    const size_t size = (size_t)tensor_size(sb_parameters_find(set, name)) * sizeof *now;
    return memcmp(now, before, size) == 0;
}

CPU_TEST(groups, a_pattern_matches_names)
{
    static const struct {
        const char *patterns, *name;
        bool matches;
    } cases[] = {
        {"encoder.*", "encoder.layers.0.norm.gain", true},
        {"encoder.*", "decoder.layers.0", false},
        {"*.query,*.value", "encoder.layers.0.self_attention.value", true},
        {"*.query,*.value", "encoder.layers.0.self_attention.key", false},
        {"*.layers.?.*", "encoder.layers.1.up.weight", true},
        {"*.layers.?.*", "encoder.layers.10.up.weight", false},
        {"*a*ab", "aaab", true},
        {"*", "", true},
        {"", "", true},
        {"", "w", false},
        {"w", "ww", false},
        {"ww", "w", false},
        {"a,", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(glob_matches(cases[i].patterns, cases[i].name) == cases[i].matches, "%s of %s",
                  cases[i].patterns, cases[i].name);
}

TEST(groups, frozen_weights_keep_their_bits_over_a_hundred_steps_of_adamw_with_decay, KNOWN_KERNELS)
{
    sb_parameters *set = set_new();
    MUST(sb_parameters_freeze(set, "encoder.*", true));
    double *weight = copy_of(set, "encoder.weight"), *bias = copy_of(set, "encoder.bias");
    double *other = copy_of(set, "decoder.weight");
    sb_optimiser *adamw =
        KEPT(sb_adamw_new(set, &(sb_optimiser_options){.weight_decay = 0.3, .decay_all = true}));
    for (int step = 0; step < 100; step++) {
        backward(set, "*");
        cr_expect(!sb_tensor_grad(sb_parameters_find(set, "encoder.weight")));
        MUST(sb_optimiser_step(adamw));
    }
    cr_expect(stayed(set, "encoder.weight", weight) && stayed(set, "encoder.bias", bias));
    cr_expect(!stayed(set, "decoder.weight", other));
}

/* Backward through a frozen parameter still reaches what is below it. */
TEST(groups, gradients_pass_through_a_frozen_weight)
{
    sb_parameters *set = set_new();
    sb_tensor *w = sb_parameters_find(set, "encoder.weight"),
              *v = sb_parameters_find(set, "decoder.weight");
    MUST(sb_parameters_freeze(set, "encoder.weight", true));
    TAPE(SB_RECORD);
    MUST(sb_backward(sb_sum(sb_matmul(v, w), SB_ALL, false)));
    cr_expect(!sb_tensor_grad(w) && sb_tensor_grad(v));
}

/* The bytes of gradients, moments and average of a set of 2^18 values, of which a part is frozen.
 */
static int64_t bytes_of_training(bool frozen)
{
    sb_parameters *set = sb_parameters_new(1);
    sb_parameters_add(set, "base", SB_SHAPE(3 << 16), normal);
    sb_parameters_add(set, "head", SB_SHAPE(1 << 16), normal);
    cr_assert(parameters_flatten(set));
    if (frozen)
        MUST(sb_parameters_freeze(set, "base", true));
    sb_optimiser *adam = sb_adam_new(set, NULL);
    sb_average *average = sb_average_new(set, 0.9);
    cr_expect(sb_parameters_trainable(set) == (frozen ? 1 : 4) << 16);
    const int64_t with = memory_in_use().live_bytes;
    sb_average_free(average);
    sb_optimiser_free(adam);
    sb_parameters_free(set);
    return with - (int64_t)sizeof(float) * (4 << 16); /* the values */
}

/* The blocks of host memory that the pool keeps for later. */
static size_t cached_blocks(void)
{
    size_t blocks = 0;
    for (int i = 0; i < POOL_CLASSES; i++)
        blocks += memory_pool()->shelf[i].count;
    return blocks;
}

CPU_TEST(groups, the_memory_of_weights_before_they_were_joined_goes_back_to_the_system)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_parameters_add(set, "base", SB_SHAPE(3 << 16), normal);
    sb_parameters_add(set, "head", SB_SHAPE(1 << 16), normal);
    cr_assert(parameters_flatten(set));
    const size_t joined = cached_blocks();
    cr_assert(parameters_flatten(set)); /* nothing moves */
    cr_expect(joined <= 1 && cached_blocks() == joined, "%zu blocks are cached", joined);
}

CPU_TEST(groups, frozen_parameters_have_no_gradient_moments_or_average_in_memory)
{
    const int64_t all = bytes_of_training(false), few = bytes_of_training(true);
    const int64_t four = 4 * (int64_t)sizeof(float); /* gradient, two moments, average */
    cr_expect(all >= four * (4 << 16) && all < four * (4 << 16) + 8192, "%lld", (long long)all);
    cr_expect(few >= four * (1 << 16) && few < four * (1 << 16) + 8192, "%lld", (long long)few);
}

TEST(groups, a_parameter_without_a_gradient_is_neither_moved_nor_decayed)
{
    static sb_optimiser *(*const make[])(sb_parameters *, const sb_optimiser_options *) = {
        sb_sgd_new, sb_adam_new, sb_adamw_new};
    for (int kind = 0; kind < 3; kind++) {
        sb_parameters *set = set_new();
        const sb_optimiser_options o = {
            .weight_decay = 0.5, .decay_all = true, .momentum = kind == 0 ? 0.9 : 0};
        sb_optimiser *optimiser = KEPT(make[kind](set, &o));
        backward(set, "*"); /* now all have moments */
        MUST(sb_optimiser_step(optimiser));
        double *bias = copy_of(set, "encoder.bias"), *weight = copy_of(set, "decoder.weight");
        backward(set, "decoder.*");
        MUST(sb_optimiser_step(optimiser));
        cr_expect(stayed(set, "encoder.bias", bias), "kind %d", kind);
        cr_expect(!stayed(set, "decoder.weight", weight), "kind %d", kind);
    }
}

/* The first step of Adam has the size of the rate, whatever the number of steps of others. */
TEST(groups, a_thawed_parameter_begins_as_at_a_first_step)
{
    sb_parameters *set = set_new();
    const sb_optimiser_options o = {.learning_rate = 0.25, .epsilon = 1e-12};
    MUST(sb_parameters_freeze(set, "norm.*", true));
    sb_optimiser *adam = KEPT(sb_adam_new(set, &o));
    for (int step = 0; step < 5; step++) {
        backward(set, "*");
        MUST(sb_optimiser_step(adam));
    }
    sb_tensor *gain = sb_parameters_find(set, "norm.gain");
    const double before = sb_tensor_get(gain, 1),
                 weight = sb_tensor_get(sb_optimiser_moment(adam, 1), 20);
    MUST(sb_parameters_freeze(set, "norm.*", false));
    backward(set, "*");
    MUST(sb_optimiser_step(adam));
    cr_expect(fabs(fabs(sb_tensor_get(gain, 1) - before) - 0.25) < 1e-9);
    const sb_tensor *v = sb_optimiser_moment(adam, 1);
    cr_expect(sb_tensor_dim(v, 0) == 23 && sb_tensor_get(v, 20) >= 0.97 * weight && weight > 0);
}

/* SGD: w -= rate factor * rate (g + decay w), with g = 2 w. */
TEST(groups, rates_and_decays_of_groups_are_the_hand_worked_ones)
{
    sb_parameters *set = set_new();
    const sb_group slow = {.rate = 0.1}, none = {.decay = SB_ZERO}, still = {.rate = SB_ZERO};
    MUST(sb_parameters_group(set, "encoder.*", &slow) &&
         sb_parameters_group(set, "*.bias", &none) && sb_parameters_group(set, "norm.*", &still));
    const double w = sb_tensor_get(sb_parameters_find(set, "encoder.weight"), 1),
                 b = sb_tensor_get(sb_parameters_find(set, "encoder.bias"), 1),
                 d = sb_tensor_get(sb_parameters_find(set, "decoder.weight"), 1),
                 n = sb_tensor_get(sb_parameters_find(set, "norm.gain"), 1);
    const sb_optimiser_options o = {.learning_rate = 0.1, .weight_decay = 0.5};
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &o));
    backward(set, "*");
    MUST(sb_optimiser_step(sgd));
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "encoder.weight"), 1) -
                   w * (1 - 0.01 * 2.5)) < 1e-14);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "encoder.bias"), 1) - b * (1 - 0.01 * 2)) <
              1e-14);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "decoder.weight"), 1) -
                   d * (1 - 0.1 * 2.5)) < 1e-14);
    cr_expect(sb_tensor_get(sb_parameters_find(set, "norm.gain"), 1) == n);
}

TEST(groups, adamw_decays_neither_biases_nor_norms_unless_it_is_told_to)
{
    sb_parameters *set = set_new();
    const double b = sb_tensor_get(sb_parameters_find(set, "encoder.bias"), 0),
                 g = sb_tensor_get(sb_parameters_find(set, "norm.gain"), 0),
                 w = sb_tensor_get(sb_parameters_find(set, "decoder.weight"), 0);
    MUST(sb_parameters_group(set, "norm.*", &(sb_group){.decay = 0.25}));
    const sb_optimiser_options o = {.learning_rate = 0.1, .weight_decay = 0.5, .epsilon = 1e-14};
    sb_optimiser *adamw = KEPT(sb_adamw_new(set, &o));
    backward(set, "*");
    MUST(sb_optimiser_step(adamw));
    const double moved_b = b - copysign(0.1, b), moved_g = 0.975 * g - copysign(0.1, g),
                 moved_w = 0.95 * w - copysign(0.1, w);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "encoder.bias"), 0) - moved_b) < 1e-9);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "norm.gain"), 0) - moved_g) < 1e-9);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "decoder.weight"), 0) - moved_w) < 1e-9);
}

TEST(groups, the_rate_can_be_set_between_steps)
{
    sb_parameters *set = set_new();
    sb_tensor *w = sb_parameters_find(set, "norm.gain");
    const sb_optimiser_options o = {
        .schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 1, .warmup = 10, .steps = 100}};
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &o));
    cr_expect(!sb_optimiser_set_rate(sgd, -1) && !sb_optimiser_set_rate(sgd, NAN) &&
              !sb_optimiser_set_rate(NULL, 1));
    static const double rates[] = {0.25, 0, 0.125};
    for (int i = 0; i < 3; i++) {
        const double before = sb_tensor_get(w, 0);
        MUST(sb_optimiser_set_rate(sgd, rates[i]));
        backward(set, "*");
        MUST(sb_optimiser_step(sgd));
        cr_expect(fabs(sb_tensor_get(w, 0) - before * (1 - 2 * rates[i])) < 1e-14, "%g", rates[i]);
        cr_expect(sb_optimiser_rate(sgd) == rates[i]);
    }
}

TEST(groups, what_matches_nothing_or_is_out_of_range_is_refused)
{
    sb_parameters *set = set_new(), *empty = KEPT(sb_parameters_new(1));
    cr_expect(!sb_parameters_freeze(set, "encodr.*", true));
    EXPECT_ERROR("parameters_freeze: no parameter matches \"encodr.*\"; names are like "
                 "\"encoder.weight\"");
    REFUSED("parameters_freeze: the set has no parameters; call this after the model is made",
            sb_parameters_freeze(empty, "*", true));
    cr_expect(!sb_parameters_freeze(NULL, "*", true) && !sb_parameters_freeze(set, NULL, true));
    REFUSED("parameters_group: group is NULL", sb_parameters_group(set, "*", NULL));
    REFUSED("parameters_group: rate is -1; it must be a number >= 0",
            sb_parameters_group(set, "*", &(sb_group){.rate = -1}));
    REFUSED("parameters_group: decay is ",
            sb_parameters_group(set, "*", &(sb_group){.decay = NAN}));
    MUST(sb_parameters_freeze(set, "*", true));
    REFUSED("adam: all parameters are frozen, so there is nothing to train",
            sb_adam_new(set, NULL));
}

/* An average cannot follow parameters that are frozen or thawed after it was made. */
TEST(groups, an_average_covers_the_parameters_that_are_not_frozen)
{
    sb_parameters *set = set_new();
    MUST(sb_parameters_freeze(set, "encoder.bias", true));
    sb_average *average = KEPT(sb_average_new(set, 0.5));
    MUST(average && sb_tensor_dim(sb_average_values(average), 0) == 20);
    double *bias = copy_of(set, "encoder.bias"), *gain = copy_of(set, "norm.gain");
    sb_tensor *norm = sb_parameters_find(set, "norm.gain");
    sb_tensor_set(norm, 1, 7);
    MUST(sb_average_update(average) && sb_average_swap(average));
    cr_expect(fabs(sb_tensor_get(norm, 1) - (2 / 11.0 * gain[1] + 9 / 11.0 * 7)) < 1e-14);
    cr_expect(stayed(set, "encoder.bias", bias));
    cr_assert(sb_average_swap(average) && sb_tensor_get(norm, 1) == 7);
    MUST(sb_parameters_freeze(set, "*", false));
    REFUSED("average: parameters were added, frozen or thawed since it was made",
            sb_average_update(average));
}

/* Freezing and thawing change the layout, which moves gradients and moments. */
static bool freeze_and_step(void *context)
{
    (void)context;
    sb_parameters *set = sb_parameters_of(SB_F64, 5);
    bool ok = sb_parameters_add(set, "a", SB_SHAPE(3), normal) &&
              sb_parameters_add(set, "b", SB_SHAPE(2), normal);
    sb_optimiser *adam = ok ? sb_adam_new(set, NULL) : NULL;
    ok = adam && sb_parameters_freeze(set, "b", true);
    for (int step = 0; ok && step < 3; step++) {
        sb_tensor *a = sb_parameters_find(set, "a"), *b = sb_parameters_find(set, "b");
        const double before = sb_tensor_get(a, 0);
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        ok = sb_backward(sb_add(sb_sum(sb_multiply(a, a), SB_ALL, false),
                                sb_sum(sb_multiply(b, b), SB_ALL, false)));
        ok = sb_tape_end(&tape) && ok && sb_optimiser_step(adam);
        if (!ok)
            cr_expect(sb_tensor_get(a, 0) == before, "a failed step changes nothing");
        ok = ok && sb_parameters_freeze(set, "b", step == 1);
    }
    sb_optimiser_free(adam);
    sb_parameters_free(set);
    return ok;
}

CPU_TEST(groups, each_allocation_of_a_changing_layout_may_fail)
{
    cr_expect(test_each_allocation_fails(freeze_and_step, NULL) > 10);
}

/* A graph that was recorded before writes gradients where they are no longer. */
TEST(groups, a_trainer_follows_what_is_frozen_between_its_steps, WHOLE_MODELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 6);
    MUST(sb_parameters_freeze(run.weights, "encoder.*", true));
    const char *name = "encoder.layers.0.self_attention.query.weight",
               *other = "decoder.layers.0.self_attention.query.weight";
    double *frozen = copy_of(run.weights, name), *free_one = copy_of(run.weights, other);
    small_run_train(&run, 6);
    cr_expect(stayed(run.weights, name, frozen) && !stayed(run.weights, other, free_one));
    MUST(sb_parameters_freeze(run.weights, "*", false));
    frozen = copy_of(run.weights, name);
    small_run_train(&run, 6);
    cr_expect(!stayed(run.weights, name, frozen));
}
