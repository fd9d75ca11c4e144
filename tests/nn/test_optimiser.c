/* Optimisers, schedules, and parameters of few bits. */
#include "nn/flat.h"
#include "nn/rounded_parameters.h"
#include "ops/linear.h"
#include "ops/update.h"
#include "tests/support/test.h"
#include <stdio.h>

/* A set with one parameter "w" of three values and one "v" of two. */
static sb_parameters *set_new(void)
{
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    const sb_initial one = {SB_INITIAL_CONSTANT, 1};
    MUST(sb_parameters_add(set, "w", SB_SHAPE(3), one));
    MUST(sb_parameters_add(set, "v", SB_SHAPE(2), one));
    return KEPT(set);
}

/* Leaves the gradient `scale` * 2 p of the sum of scale * p^2 over all parameters. */
static void backward(sb_parameters *set, double scale)
{
    TAPE(SB_RECORD);
    sb_tensor *w = sb_parameters_find(set, "w"), *v = sb_parameters_find(set, "v");
    sb_tensor *loss =
        sb_add(sb_sum(sb_multiply(w, w), SB_ALL, false), sb_sum(sb_multiply(v, v), SB_ALL, false));
    MUST(sb_backward(sb_scale(loss, scale)));
}

/* Adam's first step is rate * g / (|g| + epsilon): about the rate, for any gradient. */
TEST(optimiser, the_first_step_of_adam_has_the_size_of_the_rate)
{
    sb_parameters *set = set_new();
    sb_optimiser *adam = KEPT(sb_adam_new(set, &(sb_optimiser_options){.learning_rate = 0.25}));
    backward(set, 1000);
    MUST(sb_optimiser_step(adam));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), i) - 0.75) < 1e-9);
}

/* u1 = g1 = 2, w = 1 - 0.1*2 = 0.8; u2 = 0.9*2 + 1.6 = 3.4, w = 0.8 - 0.34 = 0.46. */
TEST(optimiser, two_steps_of_sgd_with_momentum_are_the_hand_worked_ones)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd =
        KEPT(sb_sgd_new(set, &(sb_optimiser_options){.learning_rate = 0.1, .momentum = 0.9}));
    for (int step = 0; step < 2; step++) {
        backward(set, 1);
        MUST(sb_optimiser_step(sgd));
    }
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "v"), 1) - 0.46) < 1e-12);
}

/* Without means and epsilon a step of Adam is rate g / |g|; with the defaults it would be shorter
   from the second step on, since the gradient 2 w falls. */
TEST(optimiser, zero_is_used_where_it_is_given)
{
    sb_parameters *set = set_new();
    const sb_optimiser_options o = {
        .learning_rate = 0.25, .beta1 = SB_ZERO, .beta2 = SB_ZERO, .epsilon = SB_ZERO};
    sb_optimiser *adam = KEPT(sb_adam_new(set, &o));
    for (int step = 1; step <= 3; step++) {
        backward(set, 1);
        MUST(sb_optimiser_step(adam));
        cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), 2) - (1 - 0.25 * step)) < 1e-12);
    }
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &(sb_optimiser_options){.learning_rate = SB_ZERO}));
    backward(set, 1);
    cr_expect(sb_optimiser_step(sgd) && sb_optimiser_rate(sgd) == 0);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), 2) - 0.25) < 1e-12);
}

TEST(optimiser, nesterov_without_momentum_is_refused)
{
    sb_parameters *set = set_new();
    REFUSED("sgd: nesterov is set and momentum is 0; Nesterov's step needs a momentum",
            sb_sgd_new(set, &(sb_optimiser_options){.nesterov = true}));
    sb_optimiser *sgd =
        KEPT(sb_sgd_new(set, &(sb_optimiser_options){.nesterov = true, .momentum = 0.5}));
    cr_expect(sgd, "%s", sb_error());
}

TEST(optimiser, parameters_of_bf16_are_refused_at_its_making)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_BF16, 1));
    cr_assert(sb_parameters_add(set, "w", SB_SHAPE(3), (sb_initial){SB_INITIAL_CONSTANT, 1}));
    REFUSED("sgd: the parameters are of bf16", sb_sgd_new(set, NULL));
    REFUSED("adam: the parameters are of bf16", sb_adam_new(set, NULL));
    REFUSED("make them of f32", sb_adamw_new(set, NULL));
}

TEST(optimiser, a_step_between_forward_and_backward_is_noticed)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, NULL));
    sb_tensor *w = sb_parameters_find(set, "w");
    backward(set, 1);
    FAILED_TAPE(SB_RECORD);
    sb_tensor *loss = sb_sum(sb_multiply(w, w), SB_ALL, false);
    cr_expect(sb_optimiser_step(sgd), "%s", sb_error());
    REFUSED("backward: multiply: its input a (3) was written after forward had read it",
            sb_backward(loss));
}

/* An optimiser that is made between them moves the parameters, and changes none. */
TEST(optimiser, one_that_is_made_between_forward_and_backward_does_no_harm)
{
    sb_parameters *set = set_new();
    sb_tensor *w = sb_parameters_find(set, "w");
    sb_tape tape;
    sb_tensor_set(w, 0, 5);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = sb_sum(sb_multiply(w, w), SB_ALL, false);
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, NULL));
    MUST(sgd && sb_backward(loss));
    cr_expect(sb_tape_end(&tape) && sb_tensor_get(sb_tensor_grad(w), 0) == 10);
}

TEST(optimiser, a_step_consumes_the_gradients)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, NULL));
    backward(set, 1);
    cr_assert(sb_optimiser_step(sgd));
    cr_expect(sb_tensor_grad(sb_parameters_find(set, "w")) == NULL);
    REFUSED("no parameter has a gradient", sb_optimiser_step(sgd));
    backward(set, 1); /* the gradient is 2 w, without the previous one */
    cr_expect(sb_tensor_get(sb_tensor_grad(sb_parameters_find(set, "w")), 0) ==
              2 * sb_tensor_get(sb_parameters_find(set, "w"), 0));
}

TEST(optimiser, gradients_of_two_backwards_add_up)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &(sb_optimiser_options){.learning_rate = 0.1}));
    backward(set, 1);
    backward(set, 3);
    cr_assert(sb_optimiser_step_scaled(sgd, 0.25)); /* 1 - 0.1 * 0.25 * (2 + 6) */
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), 0) - 0.8) < 1e-12);
}

/* Five gradients of 2 have a norm of sqrt 20. */
TEST(optimiser, the_gradient_is_clipped_by_its_global_norm)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd =
        KEPT(sb_sgd_new(set, &(sb_optimiser_options){.learning_rate = 1, .clip = sqrt(20) / 4}));
    backward(set, 1);
    cr_assert(sb_optimiser_step(sgd));
    cr_expect(fabs(sb_optimiser_norm(sgd) - sqrt(20)) < 1e-12);
    const double scale = sqrt(20) / 4 / (sqrt(20) + 1e-6);
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), 0) - (1 - 2 * scale)) < 1e-12);
}

/* The same with sb_parameters_clip: five gradients of 2 become 1/4 of that; below the limit they
   stay. */
TEST(optimiser, gradients_can_be_clipped_before_a_step)
{
    for (int flat = 0; flat < 2; flat++) {
        sb_parameters *set = set_new();
        if (flat)
            KEPT(sb_sgd_new(set, NULL));
        sb_tensor *w = sb_parameters_find(set, "w"), *v = sb_parameters_find(set, "v");
        double norm;
        backward(set, 1);
        cr_assert(sb_parameters_clip(set, 5, &norm) && fabs(norm - sqrt(20)) < 1e-12);
        cr_expect(sb_tensor_get(sb_tensor_grad(w), 2) == 2);
        MUST(sb_parameters_clip(set, sqrt(20) / 4, &norm));
        const double expected = 2 * (sqrt(20) / 4 / (sqrt(20) + 1e-6));
        for (int i = 0; i < 3; i++)
            cr_expect(fabs(sb_tensor_get(sb_tensor_grad(w), i) - expected) < 1e-14);
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(v), 1) - expected) < 1e-14);
        MUST(sb_parameters_clip(set, 1e9, NULL));
    }
}

TEST(optimiser, what_cannot_be_clipped_is_refused_and_unchanged)
{
    sb_parameters *set = set_new();
    REFUSED("parameters_clip: set is NULL", sb_parameters_clip(NULL, 1, NULL));
    REFUSED("parameters_clip: no parameter has a gradient; call sb_backward first",
            sb_parameters_clip(set, 1, NULL));
    backward(set, 1);
    const double limits[] = {0, -1, INFINITY, NAN};
    for (int i = 0; i < 4; i++)
        REFUSED("parameters_clip: limit is ", sb_parameters_clip(set, limits[i], NULL));
    sb_tensor *grad = sb_tensor_grad(sb_parameters_find(set, "v"));
    sb_tensor_set(grad, 1, NAN);
    REFUSED("parameters_clip: the gradient of \"v\" is not finite",
            sb_parameters_clip(set, 1, NULL));
    cr_expect(sb_tensor_get(sb_tensor_grad(sb_parameters_find(set, "w")), 0) == 2);
}

TEST(optimiser, a_gradient_that_is_not_finite_skips_the_step_and_is_named)
{
    sb_parameters *set = set_new();
    sb_optimiser *adam = KEPT(sb_adam_new(set, NULL));
    backward(set, 1);
    sb_tensor_set(sb_tensor_grad(sb_parameters_find(set, "v")), 1, NAN);
    REFUSED("the gradient of \"v\" is not finite", sb_optimiser_step(adam));
    cr_expect(sb_tensor_get(sb_parameters_find(set, "w"), 0) == 1 && sb_optimiser_steps(adam) == 0);
    backward(set, 1);
    cr_expect(sb_optimiser_step(adam), "%s", sb_error());
}

TEST(optimiser, adam_skips_a_step_whose_squares_overflow)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F32, 1));
    const sb_initial one = {SB_INITIAL_CONSTANT, 1};
    cr_assert(sb_parameters_add(set, "w", SB_SHAPE(3), one) &&
              sb_parameters_add(set, "v", SB_SHAPE(2), one));
    sb_optimiser *adam = KEPT(sb_adam_new(set, NULL)),
                 *clips = KEPT(sb_adam_new(set, &(sb_optimiser_options){.clip = 1}));
    backward(set, 1e25);
    REFUSED("optimiser_step: the gradient has the norm ", sb_optimiser_step(adam));
    cr_expect(sb_tensor_get(sb_parameters_find(set, "w"), 0) == 1 && sb_optimiser_steps(adam) == 0);
    backward(set, 1e25);
    cr_expect(sb_optimiser_step_scaled(adam, 1e-20), "%s", sb_error());
    backward(set, 1e25);
    cr_expect(sb_optimiser_step(clips), "%s", sb_error());
}

/* More elements than one pass processes: pages of zeros, which need no memory. */
CPU_TEST(optimiser, the_norm_covers_every_element)
{
    const int64_t n = ((int64_t)1 << 26) + 5;
    const struct update_kernels *k = kernel_row_if_any(&update_rows, sb_device_cpu(), SB_F32);
    float *x = KEPT(calloc((size_t)n, sizeof *x));
    cr_assert(k && x);
    double sum;
    int64_t bad;
    x[1] = 3;
    x[n - 6] = 4;
    x[n - 1] = 12;
    cr_expect(k->squares(n, x, &sum, &bad) && sum == 169 && bad == -1, "%g", sum);
    x[n - 2] = NAN;
    cr_expect(k->squares(n, x, &sum, &bad) && isnan(sum) && bad == n - 2);
}

/* The norm of a gradient of many slabs, which must not depend on the number of threads. */
static double norm_with(int threads)
{
    sb_parameters *set = KEPT(sb_parameters_new(3));
    sb_tensor *w =
        sb_parameters_add(set, "w", SB_SHAPE(100001), (sb_initial){SB_INITIAL_NORMAL, 1});
    sb_optimiser *adam = KEPT(sb_adam_new(set, NULL));
    sb_set_threads(threads);
    TAPE(SB_RECORD);
    MUST(sb_backward(sb_sum(sb_multiply(w, w), SB_ALL, false)));
    MUST(sb_optimiser_step(adam));
    return sb_optimiser_norm(adam);
}

CPU_TEST(optimiser, the_norm_has_the_same_bits_for_any_number_of_threads)
{
    const int usual = sb_threads();
    const double norm = norm_with(1);
    cr_expect(norm > 600 && norm == norm_with(2) && norm == norm_with(3));
    sb_set_threads(usual);
}

TEST(optimiser, decoupled_decay_shrinks_weights_by_rate_times_decay)
{
    sb_parameters *set = set_new();
    const sb_optimiser_options o = {.learning_rate = 0.1, .weight_decay = 0.5, .decay_all = true};
    sb_optimiser *adamw = KEPT(sb_adamw_new(set, &o));
    backward(set, 1);
    cr_assert(sb_optimiser_step(adamw));
    cr_expect(fabs(sb_tensor_get(sb_parameters_find(set, "w"), 0) - (1 - 0.1 * 0.5 - 0.1)) < 1e-9);
}

TEST(optimiser, a_parameter_added_later_is_trained_too)
{
    sb_parameters *set = set_new();
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &(sb_optimiser_options){.learning_rate = 0.1}));
    sb_tensor *late =
        sb_parameters_add(set, "late", SB_SHAPE(1), (sb_initial){SB_INITIAL_CONSTANT, 5});
    TAPE(SB_RECORD);
    cr_assert(sb_backward(sb_sum(sb_multiply(late, late), SB_ALL, false)));
    MUST(sb_optimiser_step(sgd));
    cr_expect(fabs(sb_tensor_get(late, 0) - 4) < 1e-12);
    cr_expect(sb_tensor_get(sb_parameters_find(set, "w"), 0) == 1);
}

/* Of more elements than are drawn at a time, one parameter after the other. */
TEST(parameters, initial_weights_follow_the_order_of_the_stream)
{
    enum { N = 5000 };
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 7));
    sb_random random = sb_random_new(7, SB_STREAM_INITIAL);
    sb_tensor *normal =
        sb_parameters_add(set, "normal", SB_SHAPE(N), (sb_initial){SB_INITIAL_NORMAL, 0.5});
    sb_tensor *uniform =
        sb_parameters_add(set, "uniform", SB_SHAPE(2, N), (sb_initial){SB_INITIAL_XAVIER, 0});
    const double *got = test_data(normal), limit = sqrt(6.0 / (2 + N));
    for (int i = 0; i < N; i++)
        cr_assert(got[i] == 0.5 * sb_random_normal(&random), "element %d", i);
    got = test_data(uniform);
    for (int i = 0; i < 2 * N; i++)
        cr_assert(fabs(got[i] - limit * (2 * sb_random_uniform(&random) - 1)) < 1e-15);
}

TEST(average, the_average_follows_the_parameters_and_can_replace_them)
{
    sb_parameters *set = set_new();
    sb_average *average = KEPT(sb_average_new(set, 0.5));
    sb_tensor *w = sb_parameters_find(set, "w");
    sb_tensor_set(w, 0, 3);
    cr_assert(sb_average_update(average)); /* d = min(0.5, 2/11) */
    double expected = 2 / 11.0 * 1 + 9 / 11.0 * 3;
    cr_assert(sb_average_swap(average));
    cr_expect(fabs(sb_tensor_get(w, 0) - expected) < 1e-12);
    cr_assert(sb_average_swap(average));
    cr_expect(sb_tensor_get(w, 0) == 3);
}

/* ---- schedule ---- */

static double rate(sb_schedule schedule, int64_t step)
{
    return sb_schedule_rate(&schedule, step, NULL);
}

CPU_TEST(schedule, the_warm_up_rises_linearly_to_the_rate)
{
    for (sb_schedule_kind kind = SB_SCHEDULE_CONSTANT; kind <= SB_SCHEDULE_RESTARTS; kind++) {
        sb_schedule s = {.kind = kind, .rate = 0.8, .warmup = 8, .steps = 100, .cycle = 9};
        cr_expect(fabs(rate(s, 1) - 0.1) < 1e-15 && fabs(rate(s, 4) - 0.4) < 1e-15);
        cr_expect(fabs(rate(s, 8) - 0.8) < 1e-15);
    }
}

/* Vaswani et al. 2017: C^-0.5 min(step^-0.5, step warmup^-1.5). */
CPU_TEST(schedule, the_inverse_root_is_the_published_schedule)
{
    const double C = 512, warmup = 4000;
    const sb_schedule s = {
        .kind = SB_SCHEDULE_INVERSE_ROOT, .rate = 1 / sqrt(C * warmup), .warmup = 4000};
    for (int64_t step = 1; step < 100000; step = 3 * step + 1) {
        double t = (double)step, published = fmin(1 / sqrt(t), t * pow(warmup, -1.5)) / sqrt(C);
        cr_expect(fabs(rate(s, step) / published - 1) < 1e-12);
    }
}

CPU_TEST(schedule, the_cosine_has_half_the_rate_in_the_middle)
{
    sb_schedule s = {
        .kind = SB_SCHEDULE_COSINE, .rate = 1, .warmup = 10, .steps = 110, .lowest = 0.2};
    cr_expect(fabs(rate(s, 60) - 0.6) < 1e-12);
    cr_expect(fabs(rate(s, 110) - 0.2) < 1e-12 && rate(s, 5000) == rate(s, 110));
}

CPU_TEST(schedule, linear_decay_is_a_straight_line)
{
    sb_schedule s = {
        .kind = SB_SCHEDULE_LINEAR, .rate = 1, .warmup = 10, .steps = 110, .lowest = 0.2};
    cr_expect(fabs(rate(s, 10) - 1) < 1e-12 && fabs(rate(s, 35) - 0.8) < 1e-12);
    cr_expect(fabs(rate(s, 110) - 0.2) < 1e-12 && rate(s, 5000) == rate(s, 110));
}

/* As PyTorch's CosineAnnealingWarmRestarts(T_0=4, T_mult=2, eta_min=0.1) at a rate of 1, whose
   epoch 0 is the step at the end of the warm-up here. */
CPU_TEST(schedule, warm_restarts_are_as_in_pytorch)
{
    static const double expected[] = {1.0,
                                      0.8681980515339464,
                                      0.55,
                                      0.23180194846605365,
                                      1.0,
                                      0.9657457896300791,
                                      0.8681980515339464,
                                      0.7222075445642904,
                                      0.55,
                                      0.3777924554357096,
                                      0.23180194846605365,
                                      0.13425421036992097,
                                      1.0,
                                      0.9913533761814537};
    sb_schedule s = {.kind = SB_SCHEDULE_RESTARTS,
                     .rate = 1,
                     .warmup = 3,
                     .lowest = 0.1,
                     .cycle = 4,
                     .growth = 2};
    for (int i = 0; i < 14; i++)
        cr_expect(fabs(rate(s, 3 + i) - expected[i]) < 1e-12, "at %d: %.17g", i, rate(s, 3 + i));
    s.growth = 0;
    for (int i = 0; i < 40; i++)
        cr_expect(fabs(rate(s, 3 + i) - expected[i % 4]) < 1e-12, "at %d", i);
}

/* A rate of 0 that is written as -0 in a log would look like a mistake. */
CPU_TEST(schedule, a_rate_of_zero_has_no_sign_and_no_rate_is_zero)
{
    for (int64_t step = 1; step < 4; step++) {
        const double zero = rate((sb_schedule){.rate = SB_ZERO, .warmup = 2}, step),
                     none = rate((sb_schedule){.warmup = 2}, step);
        cr_expect(zero == 0 && !signbit(zero) && none == 0, "at %d: %g, %g", (int)step, zero, none);
    }
    cr_expect(isnan(sb_schedule_rate(NULL, 1, NULL)));
    EXPECT_ERROR("schedule_rate: schedule is NULL");
}

static double halved_every_step(int64_t step, void *context)
{
    ++*(int *)context;
    return pow(0.5, (double)step);
}

CPU_TEST(schedule, a_function_of_ones_own_gives_the_factor)
{
    int calls = 0;
    sb_schedule s = {.kind = SB_SCHEDULE_CUSTOM,
                     .rate = 8,
                     .warmup = 2,
                     .custom = halved_every_step,
                     .custom_context = &calls};
    cr_expect(sb_schedule_check(&s) && rate(s, 1) == 4 && calls == 0);
    cr_expect(rate(s, 2) == 2 && rate(s, 3) == 1 && calls == 2);
}

static double not_a_number(int64_t step, void *unused)
{
    (void)unused;
    return step == 2 ? NAN : 1;
}

TEST(schedule, a_step_without_a_rate_changes_nothing)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_tensor *w = sb_parameters_add(set, "w", SB_SHAPE(2), (sb_initial){SB_INITIAL_CONSTANT, 1});
    const sb_optimiser_options o = {
        .schedule = {.kind = SB_SCHEDULE_CUSTOM, .rate = 0.25, .custom = not_a_number}};
    sb_optimiser *sgd = KEPT(sb_sgd_new(set, &o));
    for (int step = 1; step <= 2; step++) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        MUST(sb_backward(sb_sum(w, SB_ALL, false)));
        sb_tape_end(&tape);
        cr_expect(sb_optimiser_step(sgd) == (step == 1));
        cr_expect(sb_tensor_get(w, 1) == 0.75 && sb_optimiser_steps(sgd) == 1);
    }
    EXPECT_ERROR("optimiser_step: the schedule's rate is ");
}

CPU_TEST(schedule, a_plateau_lowers_the_rate_after_its_patience)
{
    sb_schedule s = {.kind = SB_SCHEDULE_PLATEAU, .rate = 1, .lowest = 0.3, .patience = 2};
    sb_plateau seen = {0};
    const double losses[] = {3, 2, 2.5, 2.1, 1.9, 2, 2, 2, 2};
    const double rates[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3};
    for (int i = 0; i < 9; i++) {
        sb_plateau_observe(&seen, &s, losses[i]);
        cr_expect(fabs(sb_schedule_rate(&s, 1, &seen) - rates[i]) < 1e-15, "at %d", i);
    }
}

CPU_TEST(schedule, a_plateau_counts_no_nan_as_the_best)
{
    const sb_schedule s = {.kind = SB_SCHEDULE_PLATEAU, .rate = 1, .patience = 2};
    sb_plateau first = {0}, later = {0}, stored = {.seen = 1, .best = NAN};
    const double losses[] = {NAN, 5, 4, 3, 2, 1}, others[] = {3, NAN, 2, NAN, NAN, 1},
                 rates[] = {1, 1, 1, 1, 0.5, 0.5};
    for (int i = 0; i < 6; i++) {
        sb_plateau_observe(&first, &s, losses[i]);
        cr_expect(sb_schedule_rate(&s, 1, &first) == 1 && !(first.best > losses[i]), "at %d", i);
        sb_plateau_observe(&later, &s, others[i]);
        cr_expect(sb_schedule_rate(&s, 1, &later) == rates[i], "at %d", i);
    }
    sb_plateau_observe(&stored, &s, 5); /* a state that an earlier version has saved */
    cr_expect(stored.best == 5 && stored.waited == 0 && later.best == 1);
}

CPU_TEST(schedule, a_plateau_may_end_at_zero)
{
    sb_schedule s = {.kind = SB_SCHEDULE_PLATEAU, .rate = 1, .factor = SB_ZERO, .patience = 1};
    const sb_plateau once = {.seen = 2, .reduced = 1};
    cr_expect(sb_schedule_check(&s) && sb_schedule_rate(&s, 1, &once) == 0);
    s.rate = SB_ZERO;
    cr_expect(sb_schedule_check(&s) && sb_schedule_rate(&s, 1, NULL) == 0, "%s", sb_error());
}

/*
 * Parameters that a training step on a device rounds to bf16 together: the gradients have the bits
 * of single casts.
 */

enum { LAYERS = 70, WIDTH = 5 }; /* more parameters than a list of casts has */

struct chain {
    sb_parameters *set;
    sb_linear_layer layer[LAYERS];
};

static struct chain chain_new(void)
{
    struct chain c = {.set = KEPT(sb_parameters_new(3))};
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", i);
        MUST(sb_linear_layer_init(&c.layer[i], c.set, name, WIDTH, WIDTH, true));
    }
    return c;
}

/* Forward and backward through the first `layers` layers, the last of them twice. */
static void chain_step(struct chain *c, bool together, int layers)
{
    sb_context context = {0};
    sb_tape tape;
    if (together)
        rounded_parameters_begin(c->set, &tape, &context);
    else
        sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_cast(sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(3, WIDTH), 0.5)), SB_BF16);
    for (int i = 0; i < layers; i++)
        y = sb_add(y, sb_linear_layer_forward(&c->layer[i], y, SB_ACTIVATION_GELU));
    y = sb_linear_layer_forward(&c->layer[layers - 1], y, SB_ACTIVATION_IDENTITY);
    MUST(sb_backward(sb_mean(y, SB_ALL, false)));
    cr_assert(sb_tape_end(&tape));
}

/* Whether both have gradients of the same parameters, of the same bits. */
static void expect_same_gradients(const struct chain *a, const struct chain *b, const char *when)
{
    for (int64_t i = 0; i < sb_parameters_count(a->set); i++) {
        const sb_tensor *p = sb_tensor_grad(sb_parameters_get(a->set, i));
        const sb_tensor *q = sb_tensor_grad(sb_parameters_get(b->set, i));
        cr_expect((!p && !q) || test_same_bits(p, q), "%s: the gradients of %s differ", when,
                  sb_parameters_name(a->set, i));
    }
}

TEST(rounded_parameters, gradients_have_the_bits_of_single_casts)
{
    struct chain one = chain_new(), all = chain_new();
    for (int step = 0; step < 3; step++) { /* gradients add up */
        chain_step(&one, false, LAYERS);
        chain_step(&all, true, LAYERS);
        expect_same_gradients(&one, &all, "all layers");
    }
}

TEST(rounded_parameters, a_parameter_that_a_step_does_not_use_gets_no_gradient)
{
    struct chain one = chain_new(), all = chain_new();
    for (int step = 0; step < 2; step++)
        chain_step(&all, true, LAYERS);
    sb_parameters_clear(all.set);
    chain_step(&one, false, 3);
    chain_step(&all, true, 3);
    expect_same_gradients(&one, &all, "three layers");
    cr_expect(!sb_tensor_grad(all.layer[3].weight));
}

TEST(rounded_parameters, frozen_ones_get_no_gradient)
{
    struct chain one = chain_new(), all = chain_new();
    chain_step(&all, true, LAYERS);
    sb_parameters_clear(all.set);
    MUST(sb_parameters_freeze(one.set, "layer1*", true) &&
         sb_parameters_freeze(all.set, "layer1*", true));
    chain_step(&one, false, LAYERS);
    chain_step(&all, true, LAYERS);
    expect_same_gradients(&one, &all, "some are frozen");
    cr_expect(!sb_tensor_grad(all.layer[10].weight) && sb_tensor_grad(all.layer[20].weight));
}

/* Whether the copies of three weights lie in one block at equal distances. */
static bool copies_are_even(sb_tensor *const copy[3])
{
    const char *const at[] = {copy[0]->data, copy[1]->data, copy[2]->data};
    return copy[0]->base && copy[0]->base == copy[1]->base && copy[1]->base == copy[2]->base &&
           at[1] - at[0] == at[2] - at[1];
}

/* Groups of six parameters, which the length of a list is no multiple of. */
static int chain_uneven(struct chain *c)
{
    sb_context context = {0};
    sb_tape tape;
    int uneven = 0;
    rounded_parameters_begin(c->set, &tape, &context);
    for (int i = 0; i + 3 <= LAYERS; i += 3) {
        sb_tensor *copy[3];
        rounded_parameters_in_one_list(c->layer[i].weight, 6);
        for (int k = 0; k < 3; k++) {
            copy[k] = rounded_parameter(c->layer[i + k].weight);
            rounded_parameter(c->layer[i + k].bias);
        }
        uneven += !copies_are_even(copy);
    }
    MUST(sb_tape_end(&tape));
    return uneven;
}

TEST(rounded_parameters, those_of_one_list_lie_at_equal_distances, device_needed())
{
    struct chain c = chain_new();
    cr_expect(chain_uneven(&c) == LAYERS / 3, "the first step makes single copies");
    cr_expect(chain_uneven(&c) == 0);
}

static bool chain_begins(void *chain)
{
    struct chain *c = chain;
    sb_context context = {0};
    sb_tape tape;
    rounded_parameters_begin(c->set, &tape, &context);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(1, WIDTH), 1));
    sb_tensor *y = sb_linear_layer_forward(&c->layer[0], sb_cast(x, SB_BF16), SB_ACTIVATION_RELU);
    const bool ok = sb_backward(sb_mean(y, SB_ALL, false));
    sb_parameters_clear(c->set);
    return sb_tape_end(&tape) && ok;
}

TEST(rounded_parameters, each_allocation_may_fail)
{
    struct chain c = chain_new();
    chain_step(&c, true, 2);
    sb_parameters_clear(c.set);
    cr_expect(test_each_allocation_fails(chain_begins, &c) > 0);
}

/* The gradients of parameters in mixed precision are sums that no rounding to bf16 follows. */

enum { ROUNDED_ROWS = 130, ROUNDED_WIDTH = 24 };

FUNCTION(rounded_linear, sb_linear(x[0], x[1], x[2]))
FUNCTION(rounded_norm, sb_layer_norm(x[0], x[2], x[3], 0))
FUNCTION(rounded_rms_norm, sb_rms_norm(x[0], x[2], 0))
FUNCTION(rounded_twice, sb_add(sb_linear(x[0], x[1], x[3]), sb_linear(x[0], x[1], x[2])))
FUNCTION_HEAD(rounded_residual_norm)
{
    sb_tensor *sum;
    return sb_residual_layer_norm(x[0], x[0], 0, x[2], x[3], 0, &sum);
}
FUNCTION_HEAD(rounded_group)
{
    sb_tensor *y[2];
    if (!linear_group(x[0], 2, (sb_tensor *[]){x[1], x[4]}, (sb_tensor *[]){x[2], x[3]}, 2, y))
        return NULL;
    return sb_reshape(sb_subtract(y[0], y[1]), SB_SHAPE(ROUNDED_ROWS, ROUNDED_WIDTH));
}

enum { ROUNDED = 4 }; /* parameters: a weight, a gain, a bias, and another weight */

/* Numbers that bf16 has too. */
static sb_tensor *rounded_leaf(uint64_t seed, int rank, const int64_t *dim)
{
    sb_tensor *x = test_leaf(SB_F32, seed, rank, dim);
    for (int64_t i = 0; i < sb_tensor_size(x); i++)
        sb_tensor_set(x, i, round(16 * sb_tensor_get(x, i)) / 16);
    return x;
}

/* The gradients of the parameters, with copies of the last `keep` kept, which then get them; added
   to what they have. */
static void rounded_gradients(sb_function f, sb_dtype dtype, int keep, sb_tensor *const leaf[])
{
    sb_tensor *in[1 + ROUNDED];
    TAPE(SB_RECORD);
    for (int i = 0; i <= ROUNDED; i++)
        in[i] = sb_cast(leaf[i], dtype);
    for (int i = 0; i < keep; i++)
        sb_keep(in[ROUNDED - i]);
    sb_tensor *y = sb_cast(f(NULL, in), SB_F32);
    MUST(sb_backward(sb_sum(sb_multiply(y, leaf[ROUNDED + 1]), SB_ALL, false)));
    for (int i = 0; i < keep; i++) {
        const sb_tensor *copy = sb_tensor_grad(in[ROUNDED - i]),
                        *dx = sb_tensor_grad(leaf[ROUNDED - i]);
        cr_expect(!copy == !dx && (!copy || copy->dtype == dtype));
    }
}

static void expect_unrounded(const char *name, sb_function f, int keep, double limit)
{
    static const int64_t dim[] = {ROUNDED_ROWS, ROUNDED_WIDTH};
    static const int64_t square[] = {ROUNDED_WIDTH, ROUNDED_WIDTH};
    sb_tensor *leaf[2][ROUNDED + 2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < ROUNDED + 2; i++) {
            const bool rows = i == 0 || i > ROUNDED, matrix = i == 1 || i == 4;
            leaf[k][i] = rounded_leaf((uint64_t)i, rows || matrix ? 2 : 1,
                                      rows     ? dim
                                      : matrix ? square
                                               : &dim[1]);
        }
        for (int step = 0; step < 2; step++) /* the second adds to the gradients */
            rounded_gradients(f, k ? SB_F32 : SB_BF16, k ? 0 : keep, leaf[k]);
    }
    for (int i = 1; i <= ROUNDED; i++) {
        const sb_tensor *got = sb_tensor_grad(leaf[0][i]), *wanted = sb_tensor_grad(leaf[1][i]);
        cr_expect(!got == !wanted, "%s: parameter %d", name, i);
        cr_expect(!got || test_relative(got, wanted) < limit,
                  "%s, %d kept: the gradient of parameter %d differs by %g", name, keep, i,
                  test_relative(got, wanted));
    }
}

TEST(rounded_parameters, their_gradients_are_not_rounded_unless_copies_are_kept)
{
    static const struct {
        const char *name;
        sb_function f;
    } uses[] = {{"linear", rounded_linear},
                {"two linears", rounded_twice},
                {"linear_group", rounded_group},
                {"layer_norm", rounded_norm},
                {"residual_layer_norm", rounded_residual_norm}};
    for (int i = 0; i < 5; i++) {
        expect_unrounded(uses[i].name, uses[i].f, 0, 4e-6);
        expect_unrounded(uses[i].name, uses[i].f, 2, 0x1p-8);
        expect_unrounded(uses[i].name, uses[i].f, ROUNDED, 0x1p-8);
    }
    /* on the CPU it computes in f32, and a cast follows */
    const bool cpu = sb_device_in_use() == sb_device_cpu();
    expect_unrounded("rms_norm", rounded_rms_norm, 0, cpu ? 0x1p-8 : 4e-6);
}

/* A copy is a constant where it was made on an outer tape, or before its leaf wanted a gradient. */
TEST(rounded_parameters, leaves_of_constant_copies_get_no_gradient)
{
    sb_tensor *x = rounded_leaf(1, SB_SHAPE(3, 8)), *w = rounded_leaf(2, SB_SHAPE(5, 8)),
              *late = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(5, 8)));
    TAPE(SB_RECORD);
    sb_tensor *outer = sb_cast(w, SB_BF16), *before = sb_cast(late, SB_BF16);
    sb_tape inner;
    sb_tape_begin(&inner, SB_RECORD);
    MUST(sb_backward(sb_sum(sb_linear(sb_cast(x, SB_BF16), outer, NULL), SB_ALL, false)));
    MUST(sb_tape_end(&inner));
    cr_expect(!sb_tensor_grad(w) && sb_tensor_grad(x));
    sb_tensor_requires_grad(late);
    MUST(sb_backward(sb_sum(sb_linear(sb_cast(x, SB_BF16), before, NULL), SB_ALL, false)));
    cr_expect(!sb_tensor_grad(late));
}

TEST(rounded_parameters, backward_refuses_those_that_were_written_since)
{
    sb_tensor *x = rounded_leaf(1, SB_SHAPE(3, 8)), *w = rounded_leaf(2, SB_SHAPE(5, 8));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *y = sb_linear(sb_cast(x, SB_BF16), sb_cast(w, SB_BF16), NULL);
    sb_tensor_set(w, 0, 42);
    REFUSED("was written after forward had read it", sb_backward(sb_sum(y, SB_ALL, false)));
    cr_expect(!sb_tensor_grad(w));
}
