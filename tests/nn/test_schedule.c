#include "nn/schedule.h"
#include "tests/support/test.h"

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
