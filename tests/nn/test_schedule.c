#include "nn/schedule.h"
#include "tests/support/test.h"

static double rate(sb_schedule schedule, int64_t step)
{
    return sb_schedule_rate(&schedule, step, NULL);
}

TEST(schedule, the_warm_up_rises_linearly_to_the_rate)
{
    for (sb_schedule_kind kind = SB_SCHEDULE_CONSTANT; kind <= SB_SCHEDULE_PLATEAU; kind++) {
        sb_schedule s = {.kind = kind, .rate = 0.8, .warmup = 8, .steps = 100};
        cr_expect(fabs(rate(s, 1) - 0.1) < 1e-15 && fabs(rate(s, 4) - 0.4) < 1e-15);
        cr_expect(fabs(rate(s, 8) - 0.8) < 1e-15);
    }
}

/* Vaswani et al. 2017: C^-0.5 min(step^-0.5, step warmup^-1.5). */
TEST(schedule, the_inverse_root_is_the_published_schedule)
{
    const double C = 512, warmup = 4000;
    sb_schedule s = {SB_SCHEDULE_INVERSE_ROOT, 1 / sqrt(C * warmup), 4000, 0, 0, 0, 0};
    for (int64_t step = 1; step < 100000; step = 3 * step + 1) {
        double t = (double)step, published = fmin(1 / sqrt(t), t * pow(warmup, -1.5)) / sqrt(C);
        cr_expect(fabs(rate(s, step) / published - 1) < 1e-12);
    }
}

TEST(schedule, the_cosine_has_half_the_rate_in_the_middle)
{
    sb_schedule s = {
        .kind = SB_SCHEDULE_COSINE, .rate = 1, .warmup = 10, .steps = 110, .lowest = 0.2};
    cr_expect(fabs(rate(s, 60) - 0.6) < 1e-12);
    cr_expect(fabs(rate(s, 110) - 0.2) < 1e-12 && rate(s, 5000) == rate(s, 110));
}

TEST(schedule, a_plateau_lowers_the_rate_after_its_patience)
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

TEST(schedule, a_plateau_may_end_at_zero)
{
    sb_schedule s = {.kind = SB_SCHEDULE_PLATEAU, .rate = 1, .factor = SB_ZERO, .patience = 1};
    const sb_plateau once = {.seen = 2, .reduced = 1};
    cr_expect(sb_schedule_check(&s) && sb_schedule_rate(&s, 1, &once) == 0);
    s.rate = SB_ZERO;
    cr_expect(sb_schedule_check(&s) && sb_schedule_rate(&s, 1, NULL) == 0, "%s", sb_error());
}

TEST(schedule, numbers_out_of_range_are_refused)
{
    cr_expect(!sb_schedule_check(NULL));
    cr_expect(!sb_schedule_check(&(sb_schedule){.rate = 0}));
    EXPECT_ERROR("the rate is 0");
    cr_expect(!sb_schedule_check(&(sb_schedule){.rate = 1, .kind = SB_SCHEDULE_INVERSE_ROOT}));
    EXPECT_ERROR("needs a warmup");
    cr_expect(!sb_schedule_check(&(sb_schedule){.rate = 1, .kind = SB_SCHEDULE_COSINE}));
    EXPECT_ERROR("steps is 0; a cosine ends after its warmup");
    cr_expect(!sb_schedule_check(&(sb_schedule){.rate = 1, .lowest = 2}));
    EXPECT_ERROR("the lowest rate is 2");
}
