/* Gradients and parameters that ranks share. */
#include "nn/flat.h"
#include "nn/optimiser_parts.h"
#include "nn/shares_run.h"
#include "tensor/threads.h"
#include "tests/support/mailbox.h"
#include "tests/support/small_run.h"
#include "tests/support/tiny.h"
#include <stdio.h>

/* Shares of a batch: threads compute them at the same time, and nothing but speed depends on that.
 */

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
        REFUSED("call 3 failed", threads_each(9, threads == 5, fail_call, &from));
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

/* What of a run shares must respect. */
static const struct variant {
    const char *setting, *value;
} variants[] = {{"dropout", "0.3"},
                {"accumulate", "3"},
                {"recompute", "true"},
                {"tie-embeddings", "true"},
                {"positions", "rotary"},
                {"positions", "alibi"},
                {"positions", "relative"},
                {"lora", "2"},
                {"average", "0.9"},
                {"freeze", "encoder.*"},
                {"group", "decoder.*:rate=0.1;encoder.*:frozen"},
                {"precision", "bf16"},
                {NULL, NULL}};

static struct settings settings_with(const struct variant *v, int64_t shares)
{
    struct settings s = settings_of(shares);
    MUST(setting_set(&s, setting_find(v->setting), v->value));
    return s;
}

/* Takes four steps. Then the weights are their average, if the run has one. */
static double train(struct small_run *run, const struct settings *settings, sb_dtype dtype)
{
    MUST(small_run_open(run, settings, NULL, dtype));
    const double loss = small_run_train(run, 4);
    sb_average *average = sb_trainer_average(run->trainer);
    cr_assert(!average || sb_average_swap(average));
    return loss;
}

TEST(shares, steps_differ_from_those_of_the_whole_batch_by_rounding_alone, WHOLE_MODELS)
{
    for (size_t i = 0; variants[i].setting; i++) {
        const struct variant *v = &variants[i];
        if (test_brief() && i % 4 > 0)
            continue;
        struct settings s[2] = {settings_with(v, 1), settings_with(v, 4)};
        struct small_run run[2];
        double loss[2];
        for (int k = 0; k < 2; k++) {
            s[k].trainer.optimiser_kind = SB_OPTIMISER_SGD;
            loss[k] = train(&run[k], &s[k], SB_F64);
        }
        const double limit = s->model.transformer.precision == SB_PRECISION_BF16 ? 1e-2 : 1e-12;
        const double d =
            test_relative(parameters_values(run[0].weights), parameters_values(run[1].weights));
        cr_expect(d < limit, "%s %s: weights differ by %g", v->setting, v->value, d);
        cr_expect(fabs(loss[0] - loss[1]) < limit, "%s %s: losses are %.17g and %.17g", v->setting,
                  v->value, loss[0], loss[1]);
        cr_expect(d > 0 || device_opened(), "%s %s: not in shares", v->setting, v->value);
        small_run_close(&run[0]);
        small_run_close(&run[1]);
    }
}

static uint64_t bits_of(const struct settings *s, sb_dtype dtype, int threads)
{
    cr_assert(sb_set_threads(threads));
    struct small_run run;
    train(&run, s, dtype);
    const uint64_t bits = small_run_bits(&run);
    small_run_close(&run);
    return bits;
}

CPU_TEST(shares, any_number_of_threads_gives_the_same_bits)
{
    const int64_t usual = kernel_parallel_work;
    kernel_parallel_work = 1000; /* threads of a team divide even small loops */
    for (const struct variant *v = variants; v->setting; v++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct settings s = settings_with(v, 4), whole = settings_with(v, 1);
            const sb_dtype dtype = f64 ? SB_F64 : SB_F32;
            const uint64_t bits = bits_of(&s, dtype, 1);
            const int threads[] = {2, 3, 8};
            for (int i = 0; i < 3; i++)
                cr_expect(bits_of(&s, dtype, threads[i]) == bits, "%s %s: %d threads, %s",
                          v->setting, v->value, threads[i], sb_dtype_name(dtype));
            cr_expect(bits_of(&whole, dtype, 2) != bits, "%s %s: not in shares", v->setting,
                      v->value);
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
        MUST(sb_trainer_step(disturbed.trainer, &trained));
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
    cr_expect(!sb_trainer_step(run.trainer, &trained) && isnan(trained.loss));
    EXPECT_ERROR("trainer: the loss is nan; the first value that is not finite is "
                 "linear_cross_entropy input weight (14, 8)");
}

CPU_TEST(shares, frozen_parameters_stay_and_thawed_ones_learn)
{
    struct settings whole = settings_of(1), shared = settings_of(3);
    whole.trainer.optimiser_kind = shared.trainer.optimiser_kind = SB_OPTIMISER_SGD;
    struct small_run run[2] = {small_run(&whole, NULL), small_run(&shared, NULL)};
    for (int i = 0; i < 2; i++) {
        MUST(sb_parameters_freeze(run[i].weights, "encoder.*", true));
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
    line.x = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(ITEMS, 2), values));
    return line;
}

TEST(shares, a_loop_of_ones_own_gets_the_gradient_of_the_whole_batch)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    struct line line = line_new(set);
    double sums[2], gradients[2];
    for (int i = 0; i < 2; i++) { /* with dropout, which must not depend on the shares */
        sb_random random = sb_random_new(7, SB_STREAM_USER);
        MUST(sb_backward_in_shares(set, ITEMS, i ? 3 : 1, &random, line_loss, &line, &sums[i]));
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
}

TEST(shares, the_first_share_that_fails_gives_the_message)
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    struct line line = line_new(set);
    line.fails = 3;
    REFUSED("item 3 is refused",
            sb_backward_in_shares(set, ITEMS, 5, NULL, line_loss, &line, NULL));
    cr_expect(!sb_tensor_grad(line.slope));
    line.fails = -1;
    cr_expect(sb_backward_in_shares(set, ITEMS, 5, NULL, line_loss, &line, NULL));
    cr_expect(sb_tensor_get(sb_tensor_grad(line.slope), 0) == 2 * 3 * 1023);
    REFUSED("backward_in_shares: 6 shares of 5 items; expected from 1 to 256, each of an item",
            sb_backward_in_shares(set, ITEMS, 6, NULL, line_loss, &line, NULL));
    REFUSED("backward_in_shares: loss is NULL",
            sb_backward_in_shares(set, ITEMS, 2, NULL, NULL, &line, NULL));
}

/* ---- exact derivatives inside a share ---- */

FUNCTION(sum_of_cubes, sb_sum(sb_multiply(x[0], sb_multiply(x[0], x[0])), SB_ALL, false))
FUNCTION(softmax_of, sb_softmax(x[0]))

/* The sum of slope^3, with the parameters for inputs. */
FUNCTION(cube_of_slope, sum_of_cubes(NULL, &((const struct line *)context)->slope))

struct products {
    struct line line;
    sb_parameters *set;
    double hvp[ITEMS], jvp[ITEMS], of_set[ITEMS]; /* of the share of each item */
    bool checked[ITEMS];
};

static sb_tensor *loss_with_products(void *context, int64_t first, int64_t count)
{
    struct products *p = context;
    sb_tensor *x = sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){1, 2});
    sb_tensor *v = sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){1, 0}), *hv, *dy;
    sb_gradcheck_result result = {0};
    sb_tensor_requires_grad(x);
    sb_parameters *u = sb_parameters_vector(p->set, NULL);
    cr_assert(u && sb_tensor_set(sb_parameters_find(u, "slope"), 0, 1));
    cr_expect(sb_hvp(sum_of_cubes, NULL, &x, &v, 1, &hv), "%s", sb_error());
    cr_expect(sb_jvp(softmax_of, NULL, &x, &v, 1, NULL, &dy), "%s", sb_error());
    sb_parameters *hu = sb_parameters_hvp(p->set, cube_of_slope, &p->line, u);
    cr_expect(hu != NULL, "%s", sb_error());
    cr_expect(sb_gradcheck(sum_of_cubes, NULL, &x, 1, NULL, &result), "%s", sb_error());
    p->hvp[first] = sb_tensor_get(hv, 0);
    p->jvp[first] = sb_tensor_get(dy, 0);
    p->of_set[first] = hu ? sb_tensor_get(sb_parameters_find(hu, "slope"), 0) : NAN;
    p->checked[first] = result.method == SB_GRADCHECK_EXACT;
    for (int i = 0; i < 4; i++)
        sb_tensor_release(((sb_tensor *[]){x, v, hv, dy})[i]);
    sb_parameters_free(u);
    sb_parameters_free(hu);
    return line_loss(&p->line, first, count);
}

CPU_TEST(shares, derivatives_in_a_loss_are_exact_in_every_share)
{
    struct products p = {.set = KEPT(sb_parameters_of(SB_F64, 1))};
    p.line = line_new(p.set);
    for (int threads = 1; threads <= 3; threads++) {
        cr_assert(sb_set_threads(threads));
        MUST(sb_backward_in_shares(p.set, ITEMS, ITEMS, NULL, loss_with_products, &p, NULL));
        const double y = 1 / (1 + exp(1)); /* softmax of (1, 2) */
        for (int i = 0; i < ITEMS; i++) {
            cr_expect(p.hvp[i] == 6 && p.of_set[i] == 6 * 3, "share %d: %g, %g", i, p.hvp[i],
                      p.of_set[i]);
            cr_expect(fabs(p.jvp[i] - y * (1 - y)) < 1e-15 && p.checked[i], "share %d: %g", i,
                      p.jvp[i]);
        }
        cr_expect(sb_tensor_get(sb_tensor_grad(p.line.slope), 0) == 2 * 3 * 1023);
        sb_parameters_clear(p.set);
    }
}

static bool check_slope(struct products *p)
{
    return sb_gradcheck(sum_of_cubes, NULL, &p->line.slope, 1, NULL, NULL);
}

static bool add_to_set(struct products *p)
{
    return sb_parameters_add(p->set, "new", SB_SHAPE(1), (sb_initial){0}) != NULL;
}

static bool clear_set(struct products *p)
{
    sb_parameters_clear(p->set);
    return true;
}

static bool freeze_set(struct products *p)
{
    return sb_parameters_freeze(p->set, "slope", true);
}

static bool average_set(struct products *p)
{
    sb_average *average = sb_average_new(p->set, 0.9);
    sb_average_free(average);
    return average != NULL;
}

static bool share_again(struct products *p)
{
    return sb_backward_in_shares(p->set, ITEMS, 2, NULL, line_loss, &p->line, NULL);
}

/* What a loss may not do, with the message. */
static const struct mischief {
    const char *message;
    bool (*does)(struct products *p);
} mischiefs[] = {
    {"gradcheck: input 0, (1), is a parameter that other shares read", check_slope},
    {"parameters_add: ", add_to_set},
    {"parameters_clear: ", clear_set},
    {"parameters_freeze: ", freeze_set},
    {"parameters: ", average_set},
    {"backward_in_shares: ", share_again},
};

static atomic_int tried_in; /* which one, in which share */

static sb_tensor *loss_with_mischief(void *context, int64_t first, int64_t count)
{
    struct products *p = context;
    if (atomic_load(&tried_in) % ITEMS == first)
        mischiefs[atomic_load(&tried_in) / ITEMS].does(p);
    return line_loss(&p->line, first, count);
}

CPU_TEST(shares, a_loss_may_not_change_the_set_that_it_is_for)
{
    struct products p = {.set = KEPT(sb_parameters_of(SB_F64, 1))};
    p.line = line_new(p.set);
    cr_assert(sb_set_threads(2));
    for (int i = 0; i < ITEMS * (int)(sizeof mischiefs / sizeof *mischiefs); i++) {
        atomic_store(&tried_in, i);
        cr_expect(!sb_backward_in_shares(p.set, ITEMS, ITEMS, NULL, loss_with_mischief, &p, NULL),
                  "%s in share %d", mischiefs[i / ITEMS].message, i % ITEMS);
        EXPECT_ERROR(mischiefs[i / ITEMS].message);
        cr_expect(sb_parameters_count(p.set) == 3 && !sb_tensor_grad(p.line.slope));
    }
    MUST(share_again(&p));
    cr_expect(sb_tensor_get(sb_tensor_grad(p.line.slope), 0) == 2 * 3 * 1023);
}

static sb_tensor *loss_in_shares(void *products, sb_tensor *const x[])
{
    struct products *p = products;
    return share_again(p) ? sum_of_cubes(NULL, x) : NULL;
}

CPU_TEST(shares, shares_inside_an_exact_derivative_are_refused)
{
    struct products p = {.set = KEPT(sb_parameters_of(SB_F64, 1))};
    p.line = line_new(p.set);
    sb_tensor *hv, *v = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(1), 1));
    REFUSED("backward_in_shares: it was called inside an exact derivative",
            sb_hvp(loss_in_shares, &p, &p.line.slope, &v, 1, &hv));
}

/* ---- Distributed parameters and the norm of their gradients. Ranks are threads ---- */

enum { RANKS = 3, NUMBERS = 36 + 5 + 12 + 18 };

/* Parameters distributed along each axis, and one that is not distributed. */
static sb_parameters *set_new(sb_communicator *c)
{
    static const sb_initial xavier = {SB_INITIAL_XAVIER, 0}, normal = {SB_INITIAL_NORMAL, 2};
    sb_parameters *set = sb_parameters_of(SB_F64, 7);
    const bool ok = sb_parameters_add_cut(set, "rows", SB_SHAPE(6, 6), xavier, (sb_cut){c, 0}) &&
                    sb_parameters_add(set, "whole", SB_SHAPE(5), normal) &&
                    sb_parameters_add_cut(set, "columns", SB_SHAPE(2, 6), xavier, (sb_cut){c, 1}) &&
                    sb_parameters_add_cut(set, "middle", SB_SHAPE(2, 3, 3), normal, (sb_cut){c, 1});
    if (!ok || !parameters_flatten(set)) {
        fprintf(stderr, "%s\n", sb_error());
        abort(); /* the other ranks would wait forever */
    }
    return KEPT(set);
}

struct joined {
    double number[RANKS][NUMBERS]; /* as each rank gathers them */
    double kept[RANKS][NUMBERS];   /* gathered again, after parts_take of doubled values */
    bool ok[RANKS];
    int64_t here[RANKS], whole[RANKS];
};

static void join(sb_communicator *c, void *context)
{
    struct joined *j = context;
    const int rank = sb_communicator_rank(c);
    sb_parameters *set = set_new(c);
    sb_tensor *values = parameters_values(set);
    sb_tensor *all = parts_join(set, values, 0, 4);
    j->ok[rank] = all && tensor_read_part(all, 0, NUMBERS, j->number[rank]);
    j->here[rank] = sb_parameters_size(set);
    j->whole[rank] = parts_size(set, values, 0, 4);
    for (int64_t i = 0; i < NUMBERS; i++)
        sb_tensor_set(all, i, 2 * sb_tensor_get(all, i));
    j->ok[rank] &= parts_take(set, values, 0, 4, all);
    sb_tensor_release(all);
    all = parts_join(set, values, 1, 2); /* two of them */
    j->ok[rank] &= all && tensor_read_part(all, 0, 5 + 12, j->kept[rank]);
    sb_tensor_release(all);
}

CPU_TEST(parts, joined_parts_are_the_unsharded_parameters)
{
    struct joined *j = KEPT(calloc(1, sizeof *j));
    double whole[NUMBERS];
    sb_parameters *one = set_new(NULL);
    cr_assert(tensor_read_part(parameters_values(one), 0, NUMBERS, whole));
    mailbox_run(RANKS, join, j);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(j->ok[r] && j->whole[r] == NUMBERS && j->here[r] == 5 + (NUMBERS - 5) / RANKS);
        cr_expect(memcmp(j->number[r], whole, sizeof whole) == 0, "rank %d", r);
        for (int i = 0; i < 5 + 12; i++)
            cr_expect(j->kept[r][i] == 2 * whole[36 + i], "rank %d: number %d", r, i);
    }
}

CPU_TEST(parts, unequal_parts_are_refused)
{
    static const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    struct mailbox *m = mailbox_open(2), *other = mailbox_open(2);
    sb_communicator *c = mailbox_rank(m, 1), *d = mailbox_rank(other, 1);
    sb_parameters *set = KEPT(sb_parameters_new(1));
    REFUSED("parameters_add: axis 0 of \"w\" (3, 4) cannot be split into 2 equal parts",
            sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 0}));
    REFUSED("parameters_add: axis 2 of \"w\" (3, 4) cannot be split into 2 equal parts",
            sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 2}));
    cr_expect(sb_parameters_add_cut(set, "w", SB_SHAPE(3, 4), zero, (sb_cut){c, 1}) != NULL);
    REFUSED("parameters_add: \"v\" is split over other ranks than the others",
            sb_parameters_add_cut(set, "v", SB_SHAPE(4), zero, (sb_cut){d, 0}));
    sb_transformer_options o = {.heads = 3, .width = 12, .ranks = c}, complete;
    REFUSED("transformer: heads 3 cannot be split over 2 ranks",
            sb_transformer_complete(&o, &complete));
    o = (sb_transformer_options){.heads = 4, .key_heads = 1, .ranks = c};
    REFUSED("transformer: key_heads 1 cannot be split over 2 ranks",
            sb_transformer_complete(&o, &complete));
    o = (sb_transformer_options){.feed_forward = 13, .ranks = c};
    REFUSED("transformer: feed_forward 13 cannot be split over 2 ranks",
            sb_transformer_complete(&o, &complete));
    mailbox_close(m);
    mailbox_close(other);
}

struct clipped {
    bool spoils; /* rank 1 has a number that is not finite */
    double norm[RANKS], scale[RANKS];
    char message[RANKS][128]; /* "": no failure */
};

/* The gradient equals the parameters. */
static void clip(sb_communicator *c, void *context)
{
    struct clipped *s = context;
    const int rank = sb_communicator_rank(c);
    sb_parameters *set = set_new(c);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *sum = NULL;
    for (int i = 0; i < 4; i++) {
        sb_tensor *w = sb_parameters_get(set, i);
        sb_tensor *half = sb_scale(sb_sum(sb_multiply(w, w), SB_ALL, false), 0.5);
        sum = sum ? sb_add(sum, half) : half;
    }
    sb_backward(sum);
    sb_tape_end(&tape);
    if (s->spoils) /* all name the first parameter that any rank has spoilt */
        sb_tensor_set(sb_tensor_grad(sb_parameters_get(set, rank == 1 ? 2 : 3)), 3, INFINITY);
    const struct clip_caller caller = {"optimiser_step", "step skipped"};
    if (!clip_scale(&caller, set, 1, 2, &s->norm[rank], &s->scale[rank]))
        snprintf(s->message[rank], 128, "%s", sb_error());
}

CPU_TEST(parts, all_ranks_have_the_same_gradient_norm)
{
    struct clipped one = {.spoils = false}, cut = {.spoils = false}, bad = {.spoils = true};
    clip(NULL, &one);
    mailbox_run(RANKS, clip, &cut);
    mailbox_run(RANKS, clip, &bad);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(fabs(cut.norm[r] - one.norm[0]) <= 1e-14 * one.norm[0], "%g", cut.norm[r]);
        cr_expect(cut.norm[r] == cut.norm[0] && cut.scale[r] == cut.scale[0], "rank %d", r);
        cr_expect_str_eq(bad.message[r], "optimiser_step: the gradient of \"columns\" is not "
                                         "finite; step skipped");
    }
    cr_expect(one.norm[0] > 1 && strcmp(cut.message[0], "") == 0);
}
