/* Language models and classifiers with every kind of positions: bf16, recomputation, and ranks.
   Encoder-decoders have tests of their own, but for recomputation in bf16. */
#include "tests/support/mailbox.h"
#include "tests/support/parallel_run.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { RANKS = 2 };

static const char *const kinds[] = {"language_model", "classifier", "seq2seq"};
static const char *const positions[] = {"sinusoidal", "learned",  "rotary",
                                        "alibi",      "relative", "none"};

static struct settings settings_of(int place)
{
    struct settings s = parallel_settings();
    s.model.label_smoothing = 0;
    s.model.transformer.width = 16;
    s.model.transformer.positions = (sb_positions)place;
    s.model.transformer.positions_longest = 12;
    s.trainer.optimiser.learning_rate = 0.02;
    return s;
}

/* Fewer kinds of positions and steps with emulated kernels. */
static int next_place(int place)
{
    return place + (test_slow() ? 3 : 1);
}

static int steps(void)
{
    return test_slow() ? 8 : PARALLEL_STEPS;
}

static struct parallel_run trained_for(int64_t n, const char *kind, const struct settings *s,
                                       sb_dtype dtype)
{
    struct parallel_run run;
    parallel_run_make(
        &run, NULL,
        &(struct parallel_job){.kind = kind, .settings = s, .dtype = dtype, .steps = n});
    cr_assert(run.ok, "%s: %s", kind, run.message);
    return run;
}

static struct parallel_run trained(const char *kind, const struct settings *s, sb_dtype dtype)
{
    return trained_for(steps(), kind, s, dtype);
}

/* The mean of the first losses, or of the last. */
static double mean_of(const double *loss)
{
    return (loss[0] + loss[1] + loss[2] + loss[3]) / 4;
}

static void expect_falls(const char *kind, int place, const struct parallel_run *run)
{
    const double first = mean_of(run->loss), last = mean_of(run->loss + steps() - 4);
    cr_expect(last < (test_slow() ? 1 : 0.9) * first, "%s, %s: %.3f, then %.3f", kind,
              positions[place], first, last);
}

TEST(kinds, the_loss_falls_with_every_kind_of_positions)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            const struct settings s = settings_of(place);
            FREED_BY(parallel_run_free) struct parallel_run run = trained(kinds[k], &s, SB_F32);
            expect_falls(kinds[k], place, &run);
        }
}

static void expect_same_when_recomputed(const char *kind, int place, sb_precision precision)
{
    struct settings s = settings_of(place);
    s.model.transformer.dropout = 0.1;
    s.model.transformer.precision = precision;
    const int64_t n = test_brief() ? 3 : steps();
    FREED_BY(parallel_run_free) struct parallel_run plain = trained_for(n, kind, &s, SB_F32);
    s.model.transformer.recompute = true;
    FREED_BY(parallel_run_free) struct parallel_run again = trained_for(n, kind, &s, SB_F32);
    cr_expect(plain.bits == again.bits && plain.position == again.position &&
                  memcmp(plain.loss, again.loss, sizeof plain.loss) == 0,
              "%s, %s, precision %d", kind, positions[place], (int)precision);
}

TEST(kinds, recomputation_gives_the_same_bits)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    for (int k = 0; k < 3; k++)
        for (int place = test_slow() ? k : 0; place <= SB_POSITIONS_NONE;
             place = next_place(place)) {
            expect_same_when_recomputed(kinds[k], place, SB_PRECISION_F32);
            expect_same_when_recomputed(kinds[k], place, SB_PRECISION_BF16);
        }
}

TEST(kinds, bf16_trains_as_f32_does_but_for_rounding)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            struct settings s = settings_of(place);
            FREED_BY(parallel_run_free) struct parallel_run exact = trained(kinds[k], &s, SB_F32);
            s.model.transformer.precision = SB_PRECISION_BF16;
            FREED_BY(parallel_run_free) struct parallel_run run = trained(kinds[k], &s, SB_F32);
            const struct parallel_compared apart = parallel_compare(&run, &exact);
            cr_expect(apart.gradients > 0 && apart.gradients < 0.05, "%s, %s: gradients %g apart",
                      kinds[k], positions[place], apart.gradients);
            expect_falls(kinds[k], place, &run);
        }
}

/* Two ranks compute what one does, but for rounding, and both have the same weights. */
static void expect_as_on_one(const char *kind, const struct settings *s, int heads,
                             const char *split)
{
    struct parallel_ranks job = {
        .one = {.kind = kind, .settings = s, .dtype = SB_F64, .steps = steps(), .heads = heads}};
    mailbox_run(RANKS, parallel_run_rank, &job);
    FREED_BY(parallel_run_free) struct parallel_run one = trained(kind, s, SB_F64);
    const struct parallel_compared apart = parallel_compare(&job.run[1], &one);
    cr_expect(job.run[0].bits == job.run[1].bits, "%s by %s: weights differ", kind, split);
    cr_expect(apart.gradients <= 1e-12 && apart.losses <= 1e-12,
              "%s by %s, %s: gradients %g apart, losses %g", kind, split,
              positions[s->model.transformer.positions], apart.gradients, apart.losses);
    for (int r = 0; r < RANKS; r++)
        parallel_run_free(&job.run[r]);
}

CPU_TEST(kinds, two_ranks_train_like_one)
{
    for (int k = 0; k < 2; k++)
        for (int place = 0; place <= SB_POSITIONS_NONE; place = next_place(place)) {
            struct settings s = settings_of(place);
            s.model.transformer.dropout = 0.1;
            s.model.pooling = (sb_pooling)(place % 2);
            expect_as_on_one(kinds[k], &s, 1, "batch");
            expect_as_on_one(kinds[k], &s, 2, "heads");
            s.trainer.sequence_ranks = 2;
            if (k == 0)
                expect_as_on_one(kinds[k], &s, 1, "sequence");
        }
}
