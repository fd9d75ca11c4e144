#include "nn/schedule.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include <math.h>

bool sb_schedule_check(const sb_schedule *s)
{
    if (!s)
        return fail_null("schedule", "schedule");
    if ((unsigned)s->kind > SB_SCHEDULE_CUSTOM)
        return sb_fail("schedule: %d is not a kind", (int)s->kind);
    if (!(sb_option_given(s->rate) && s->rate >= 0 && isfinite(s->rate)))
        return sb_fail("schedule: the rate is %g, not a positive number", s->rate);
    if (s->warmup < 0 || s->steps < 0)
        return sb_fail("schedule: warmup %lld or steps %lld is negative", (long long)s->warmup,
                       (long long)s->steps);
    if (s->kind == SB_SCHEDULE_INVERSE_ROOT && s->warmup < 1)
        return sb_fail("schedule: the inverse root needs a warmup of at least 1 step");
    if (s->kind == SB_SCHEDULE_COSINE && s->steps <= s->warmup)
        return sb_fail("schedule: steps is %lld; a cosine ends after its warmup of %lld steps",
                       (long long)s->steps, (long long)s->warmup);
    if (s->kind == SB_SCHEDULE_LINEAR && s->steps <= s->warmup)
        return sb_fail(
            "schedule: steps is %lld; a linear decay ends after its warmup of %lld steps",
            (long long)s->steps, (long long)s->warmup);
    if (s->kind == SB_SCHEDULE_RESTARTS && s->cycle < 1)
        return sb_fail("schedule: cycle is %lld; restarts need a first cycle of at least 1 step",
                       (long long)s->cycle);
    if (s->kind == SB_SCHEDULE_RESTARTS && s->growth != 0 && !(s->growth >= 1 && s->growth <= 1e6))
        return sb_fail("schedule: growth is %g, not in 1..1e6", s->growth);
    if (s->kind == SB_SCHEDULE_CUSTOM && !s->custom)
        return fail_null("schedule", "custom");
    if (!(s->lowest >= 0 && s->lowest <= s->rate))
        return sb_fail("schedule: the lowest rate is %g, not in 0..%g", s->lowest, s->rate);
    return check_share("schedule", "factor", s->factor) &&
           check_at_least("schedule", "patience", s->patience, 0);
}

/* From the peak at done = 0 to the lowest rate at 1. */
static double cosine(const sb_schedule *s, double peak, double done)
{
    return s->lowest + (peak - s->lowest) * 0.5 * (1 + math_cos(3.141592653589793 * done));
}

/* How far step t after warm-up is in its cycle, in 0..1. */
static double in_cycle(const sb_schedule *s, double t)
{
    const double growth = s->growth == 0 ? 1 : s->growth;
    double length = (double)s->cycle;
    if (growth == 1)
        return (double)((int64_t)t % s->cycle) / length;
    for (; t >= length; length *= growth)
        t -= length;
    return t / length;
}

double sb_schedule_rate(const sb_schedule *s, int64_t step, const sb_plateau *plateau)
{
    if (!s) {
        fail_null("schedule_rate", "schedule");
        return NAN;
    }
    const double peak = sb_option(s->rate, 0), t = (double)step, warmup = (double)s->warmup;
    if (step < s->warmup)
        return peak * t / warmup;
    switch (s->kind) {
    case SB_SCHEDULE_CONSTANT:
        break;
    case SB_SCHEDULE_INVERSE_ROOT:
        return peak * sqrt(warmup / t);
    case SB_SCHEDULE_COSINE:
        return cosine(s, peak, fmin(1, (t - warmup) / ((double)s->steps - warmup)));
    case SB_SCHEDULE_LINEAR:
        return peak + (s->lowest - peak) * fmin(1, (t - warmup) / ((double)s->steps - warmup));
    case SB_SCHEDULE_RESTARTS:
        return cosine(s, peak, in_cycle(s, t - warmup));
    case SB_SCHEDULE_CUSTOM:
        return peak * s->custom(step, s->custom_context);
    case SB_SCHEDULE_PLATEAU: {
        double rate = peak;
        for (int i = 0; plateau && i < plateau->reduced; i++)
            rate *= sb_option(s->factor, 0.5);
        return fmax(rate, s->lowest);
    }
    }
    return peak;
}

/* A loss that is NaN is worse than any other, also as the first one. */
static bool plateau_is_better(const sb_plateau *p, double loss)
{
    return p->seen == 0 || loss < p->best || (isnan(p->best) && !isnan(loss));
}

void sb_plateau_observe(sb_plateau *plateau, const sb_schedule *schedule, double loss)
{
    if (!plateau || !schedule) {
        fail_null("plateau_observe", plateau ? "schedule" : "plateau");
        return;
    }
    const bool better = plateau_is_better(plateau, loss);
    plateau->seen++;
    if (better) {
        plateau->best = loss;
        plateau->waited = 0;
    } else if (++plateau->waited >= (schedule->patience ? schedule->patience : 2)) {
        plateau->reduced++;
        plateau->waited = 0;
    }
}
