/* Shares of a batch: threads compute them at the same time, and nothing but speed depends on that.
 */
#include "nn/flat.h"
#include "nn/shares_run.h"
#include "tensor/threads.h"
#include "tests/support/small_run.h"
#include "tests/support/tiny.h"

/* ---- calls ---- */

static bool count_call(void *counts, int64_t i)
{
    atomic_fetch_add(&((atomic_int *)counts)[i], 1);
    return true;
}

static bool fail_call(void *from, int64_t i)
{
    return i < *(int64_t *)from || sb_fail("call %lld failed", (long long)i);
}

CPU_TEST(shares, each_call_is_made_once_by_any_number_of_threads)
{
    for (int threads = 1; threads <= 5; threads++) {
        atomic_int counts[9] = {0};
        cr_assert(sb_set_threads(threads));
        cr_expect(threads_each(9, threads == 5, count_call, counts) &&
                  threads_each(0, false, count_call, counts));
        for (int i = 0; i < 9; i++)
            cr_expect(counts[i] == 1, "%d threads: call %d was made %d times", threads, i,
                      counts[i]);
        cr_expect(sb_threads() == threads);
        int64_t from = 3;
        cr_expect(!threads_each(9, threads == 5, fail_call, &from));
        EXPECT_ERROR("call 3 failed");
    }
}

/* ---- a trainer ---- */

static struct settings settings_of(int64_t shares)
{
    struct settings s = small_settings();
    s.trainer.shares = shares;
    s.data.batch_pairs = 9;
    return s;
}

/* How far the weights of two runs of five steps are apart. */
static double apart(const struct settings *a, const struct settings *b, sb_dtype dtype)
{
    struct small_run one, two;
    cr_assert(small_run_open(&one, a, NULL, dtype) && small_run_open(&two, b, NULL, dtype), "%s",
              sb_error());
    const double losses[2] = {small_run_train(&one, 5), small_run_train(&two, 5)};
    cr_expect(fabs(losses[0] - losses[1]) < (dtype == SB_F64 ? 1e-12 : 1e-4), "losses %.17g, %.17g",
              losses[0], losses[1]);
    const double d = test_relative(parameters_values(one.weights), parameters_values(two.weights));
    small_run_close(&one);
    small_run_close(&two);
    return d;
}

TEST(shares, steps_differ_from_those_of_the_whole_batch_by_rounding_alone)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    struct settings whole = settings_of(1), shared = settings_of(4);
    whole.trainer.optimiser_kind = shared.trainer.optimiser_kind = SB_OPTIMISER_SGD;
    for (int i = 0; i < 4; i++) { /* dropout alone, accumulated, recomputed, tied */
        whole.trainer.accumulate = shared.trainer.accumulate = i == 1 ? 3 : 1;
        whole.model.transformer.recompute = shared.model.transformer.recompute = i == 2;
        whole.model.tie_embeddings = shared.model.tie_embeddings = i == 3;
        const double d = apart(&whole, &shared, SB_F64);
        cr_expect(d < 1e-12, "case %d: weights differ by %g", i, d);
        cr_expect(d > 0 || device_opened(), "case %d was not computed in shares", i);
    }
}

static uint64_t bits_of(const struct settings *s, int threads)
{
    cr_assert(sb_set_threads(threads));
    struct small_run run = small_run(s, NULL);
    small_run_train(&run, 4);
    const uint64_t bits = small_run_bits(&run);
    return bits;
}

CPU_TEST(shares, any_number_of_threads_gives_the_same_bits)
{
    const int64_t usual = kernel_parallel_work;
    kernel_parallel_work = 1000; /* threads of a team divide even small loops */
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct settings s = settings_of(4);
        s.model.transformer.precision = bf16 ? SB_PRECISION_BF16 : SB_PRECISION_F32;
        const uint64_t bits = bits_of(&s, 1);
        cr_expect(bits_of(&s, 2) == bits && bits_of(&s, 3) == bits && bits_of(&s, 8) == bits);
        s.trainer.shares = 1;
        cr_expect(bits_of(&s, 2) != bits, "it was not computed in shares");
    }
    kernel_parallel_work = usual;
}

CPU_TEST(shares, a_step_in_which_an_allocation_fails_can_be_repeated)
{
    struct settings s = settings_of(3);
    cr_assert(sb_set_threads(2));
    struct small_run plain = small_run(&s, NULL), disturbed = small_run(&s, NULL);
    int failures = 0;
    for (int i = 0; i < 25; i++) {
        sb_trained trained;
        small_run_train(&plain, 1);
        pool_fail_after(i * 97 % 1301, false);
        const bool ok = sb_trainer_step(disturbed.trainer, &trained);
        pool_fail_after(-1, false);
        if (ok)
            continue;
        EXPECT_ERROR("out of memory");
        cr_assert(sb_trainer_steps(disturbed.trainer) == i);
        cr_assert(sb_trainer_step(disturbed.trainer, &trained), "%s", sb_error());
        failures++;
    }
    cr_expect(failures > 12, "%d steps failed", failures);
    cr_expect(small_run_bits(&plain) == small_run_bits(&disturbed));
}

CPU_TEST(shares, a_loss_that_is_not_finite_names_its_origin)
{
    struct settings s = settings_of(3);
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 1);
    sb_tensor_set(sb_parameters_find(run.weights, "output.weight"), 1, NAN);
    sb_trained trained;
    cr_expect(!sb_trainer_step(run.trainer, &trained));
    EXPECT_ERROR("trainer: the loss is nan; the first value that is not finite is "
                 "linear_cross_entropy input weight (14, 8)");
}

CPU_TEST(shares, frozen_parameters_stay_and_thawed_ones_learn)
{
    struct settings whole = settings_of(1), shared = settings_of(3);
    whole.trainer.optimiser_kind = shared.trainer.optimiser_kind = SB_OPTIMISER_SGD;
    struct small_run run[2] = {small_run(&whole, NULL), small_run(&shared, NULL)};
    for (int i = 0; i < 2; i++) {
        cr_assert(sb_parameters_freeze(run[i].weights, "encoder.*", true), "%s", sb_error());
        small_run_train(&run[i], 3);
        cr_assert(sb_parameters_freeze(run[i].weights, "encoder.*", false));
        small_run_train(&run[i], 3);
    }
    const double d =
        test_relative(parameters_values(run[0].weights), parameters_values(run[1].weights));
    cr_expect(d < 1e-4 && d > 0, "weights differ by %g", d);
}

/* ---- loops of one's own ---- */

enum { ITEMS = 5 };

struct line {
    sb_tensor *slope, *rare, *unused, *x; /* `rare` is read for the last item alone */
    int64_t fails;                        /* the item at which the loss is refused; -1: none */
};

/* The sum of slope^2 x over some items. */
static sb_tensor *line_loss(void *context, int64_t first, int64_t count)
{
    const struct line *line = context;
    if (line->fails >= first && line->fails < first + count)
        return sb_fail("item %lld is refused", (long long)line->fails);
    sb_tensor *x = sb_dropout(sb_slice(line->x, 0, first, count), 0.5);
    sb_tensor *y = sb_sum(sb_multiply(sb_multiply(line->slope, line->slope), x), SB_ALL, false);
    return first + count < ITEMS ? y : sb_add(y, sb_sum(line->rare, SB_ALL, false));
}

static struct line line_new(sb_parameters *set)
{
    struct line line = {.fails = -1};
    line.slope = sb_parameters_add(set, "slope", SB_SHAPE(1), (sb_initial){SB_INITIAL_CONSTANT, 3});
    line.rare = sb_parameters_add(set, "rare", SB_SHAPE(2), (sb_initial){SB_INITIAL_CONSTANT, 0});
    line.unused = sb_parameters_add(set, "unused", SB_SHAPE(3), (sb_initial){0});
    double values[2 * ITEMS];
    for (int k = 0; k < 2 * ITEMS; k++)
        values[k] = 1 << k;
    line.x = sb_tensor_from_doubles(SB_F64, SB_SHAPE(ITEMS, 2), values);
    return line;
}

TEST(shares, a_loop_of_ones_own_gets_the_gradient_of_the_whole_batch)
{
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    struct line line = line_new(set);
    double sums[2], gradients[2];
    for (int i = 0; i < 2; i++) { /* with dropout, which must not depend on the shares */
        sb_random random = sb_random_new(7, SB_STREAM_USER);
        cr_assert(sb_backward_in_shares(set, ITEMS, i ? 3 : 1, &random, line_loss, &line, &sums[i]),
                  "%s", sb_error());
        gradients[i] = sb_tensor_get(sb_tensor_grad(line.slope), 0);
        cr_expect(random.position > 0);
        cr_expect(gradients[i] == sums[i] * 2 / 3 && sums[i] > 0, "loss %g, gradient %g", sums[i],
                  gradients[i]);
        cr_expect(!sb_tensor_grad(line.unused));
        sb_parameters_clear(set);
    }
    cr_expect(sums[0] == sums[1] && gradients[0] == gradients[1]);
    cr_assert(sb_backward_in_shares(set, ITEMS, 2, NULL, line_loss, &line, NULL) &&
              sb_backward_in_shares(set, ITEMS, 5, NULL, line_loss, &line, NULL));
    cr_expect(sb_tensor_get(sb_tensor_grad(line.slope), 0) == 2 * 2 * 3 * 1023, "gradients add up");
    cr_expect(sb_tensor_get(sb_tensor_grad(line.rare), 1) == 2);
    sb_parameters_clear(set); /* fewer shares than before: what the others hold is not added */
    cr_assert(sb_backward_in_shares(set, ITEMS, 2, NULL, line_loss, &line, NULL));
    cr_expect(sb_tensor_get(sb_tensor_grad(line.slope), 0) == 2 * 3 * 1023);
    sb_tensor_release(line.x);
    sb_parameters_free(set);
}

TEST(shares, the_first_share_that_fails_gives_the_message)
{
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    struct line line = line_new(set);
    line.fails = 3;
    cr_expect(!sb_backward_in_shares(set, ITEMS, 5, NULL, line_loss, &line, NULL));
    EXPECT_ERROR("item 3 is refused");
    cr_expect(!sb_tensor_grad(line.slope));
    line.fails = -1;
    cr_expect(sb_backward_in_shares(set, ITEMS, 5, NULL, line_loss, &line, NULL));
    cr_expect(sb_tensor_get(sb_tensor_grad(line.slope), 0) == 2 * 3 * 1023);
    cr_expect(!sb_backward_in_shares(set, ITEMS, 6, NULL, line_loss, &line, NULL));
    EXPECT_ERROR(
        "backward_in_shares: 6 shares of 5 items; expected from 1 to 256, each of an item");
    cr_expect(!sb_backward_in_shares(set, ITEMS, 2, NULL, NULL, &line, NULL));
    EXPECT_ERROR("backward_in_shares: loss is NULL");
    sb_tensor_release(line.x);
    sb_parameters_free(set);
}
