/* Sequence parallelism, with threads as ranks, compared with tiled attention on one rank. */
#include "autograd/node.h"
#include "models/data/batch_parts.h"
#include "tests/support/mailbox.h"
#include "tests/support/tiny.h"
#include "tests/support/variant.h"
#include <stdio.h>

enum { Y, PARTS = 1 + VARIANT_INPUTS, RANKS = 4 };

/* The results of each rank for a variant: y and the gradients of all inputs. */
struct job {
    struct variant c;
    sb_tensor *x[VARIANT_INPUTS], *dy;
    sb_tensor *part[RANKS][PARTS];
};

/* When a rank fails, the others would wait forever. */
static void need(bool ok, const sb_communicator *c)
{
    if (ok)
        return;
    fprintf(stderr, "rank %d of %d: %s\n", sb_communicator_rank(c), sb_communicator_size(c),
            sb_error());
    abort();
}

static int length_axis(const struct variant *c)
{
    return c->layout == SB_LAYOUT_LENGTH_FIRST ? 1 : 2;
}

/* The axis of a bias that has the queries; -1 if it is broadcast over queries. */
static int bias_axis(const struct variant *c)
{
    return c->bias == BIAS_ALL ? 2 : c->bias == BIAS_HEADS || c->bias == BIAS_QUERIES ? 1 : -1;
}

static sb_partition pieces(const struct variant *c, int ranks, int rank, int64_t here[2])
{
    return (sb_partition){.target = sb_piece_zigzag(c->Lq, ranks, rank, &here[0]),
                          .source = sb_piece_zigzag(c->Lk, ranks, rank, &here[1])};
}

/* The axis along which result or input i is distributed: y and q by queries, k and v by keys. */
static int axis_of(const struct variant *c, int i)
{
    return i == 1 + 3 ? bias_axis(c) : i == 1 + 4 ? -1 : length_axis(c);
}

static const sb_piece *piece_of(const sb_partition *share, int i)
{
    return i == 2 || i == 3 ? &share->source : &share->target;
}

/* y and gradients of these inputs, on a tape that may be a part of a ring; to be released. */
static bool attend(const struct variant *c, sb_communicator *ring, const sb_partition *share,
                   sb_tensor *const x[], sb_tensor *dy, sb_tensor *result[PARTS])
{
    sb_random random = sb_random_new(c->seed, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = share, .ring = ring});
    sb_tape_random(&tape, &random);
    sb_attention_options options = variant_options(c, x);
    options.queries = SB_SEQUENCE_TARGET;
    options.keys = SB_SEQUENCE_SOURCE;
    sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &options));
    const bool ok = y && sb_backward_from(y, dy);
    result[Y] = ok ? retained(y) : NULL;
    for (int i = 0; i < VARIANT_INPUTS; i++) {
        result[1 + i] = ok && x[i] ? retained(sb_tensor_grad(x[i])) : NULL;
        sb_tensor_clear_grad(x[i]);
    }
    return sb_tape_end(&tape) && ok;
}

/* The part of an input, or of dy, that a rank holds. */
static sb_tensor *held(const struct job *job, const sb_partition *share, const int64_t here[2],
                       int i)
{
    sb_tensor *whole = i == Y ? job->dy : job->x[i - 1];
    const int axis = axis_of(&job->c, i);
    if (!whole)
        return NULL;
    const sb_piece all = {.of = 0};
    const sb_piece *piece = axis < 0 ? &all : piece_of(share, i);
    return share_part(whole, axis < 0 ? 0 : axis, piece,
                      axis >= 0          ? here[piece == &share->source]
                      : whole->rank == 0 ? 1
                                         : whole->dim[0]);
}

static void attend_rank(sb_communicator *ring, void *context)
{
    struct job *job = context;
    int64_t here[2];
    const sb_partition share =
        pieces(&job->c, sb_communicator_size(ring), sb_communicator_rank(ring), here);
    struct variant c = job->c;
    c.rows = share.target;
    c.rows_here = here[0];
    sb_tensor *x[PARTS];
    for (int i = 0; i < PARTS; i++)
        x[i] = held(job, &share, here, i);
    need(attend(&c, ring, &share, x + 1, x[Y], job->part[sb_communicator_rank(ring)]), ring);
}

/* Concatenates the ranks' parts of a result. */
static sb_tensor *joined(const struct job *job, int ranks, int i, const sb_tensor *like)
{
    sb_tensor *whole = sb_tensor_zeros(SB_F64, like->rank, like->dim);
    for (int rank = 0; rank < ranks; rank++) {
        int64_t here[2];
        const sb_partition share = pieces(&job->c, ranks, rank, here);
        const int axis = axis_of(&job->c, i);
        share_add(whole, axis < 0 ? 0 : axis, axis < 0 ? &(sb_piece){0} : piece_of(&share, i),
                  job->part[rank][i]);
    }
    return KEPT(whole);
}

/* The ranks' results differ from those of one rank by no more than limit[i]. */
static void expect_near(const struct variant *c, sb_dtype dtype, int ranks,
                        const double limit[PARTS])
{
    static const char *const names[PARTS] = {"y", "dq", "dk", "dv", "dbias", "dlog_temperature"};
    struct job job = {.c = *c};
    sb_tensor *expected[PARTS];
    const int64_t last = c->layout == SB_LAYOUT_LENGTH_FIRST ? c->H : c->Lq;
    variant_inputs(c, dtype, job.x);
    job.dy = test_leaf(dtype, 7, SB_SHAPE(c->B, last == c->Lq ? c->H : c->Lq, last, c->Dv));
    MUST(attend(c, NULL, NULL, job.x, job.dy, expected));
    mailbox_run(ranks, attend_rank, &job);
    for (int i = 0; i < PARTS; i++) {
        /* a bias's gradient may cancel as a temperature's does */
        const int result = i == Y ? 0 : i == 4 ? 6 : i + 1;
        if (!expected[i])
            continue;
        sb_tensor *got = joined(&job, ranks, i, expected[i]);
        const double difference = variant_difference(c, result, got, expected[i]);
        cr_expect(difference <= limit[i],
                  "variant %d on %d ranks: %s of %s differs by %g (lengths %d, %d, heads %d, %d, "
                  "mask %d, bias %d, score %d, dropout %g)",
                  (int)c->seed, ranks, names[i], sb_dtype_name(dtype), difference, (int)c->Lq,
                  (int)c->Lk, (int)c->H, (int)c->G, c->mask, c->bias, (int)c->score, c->dropout);
    }
}

static void expect_same(const struct variant *c, int ranks)
{
    expect_near(c, SB_F64, ranks, (double[PARTS]){1e-12, 1e-12, 1e-12, 1e-12, 8e-12, 8e-12});
}

/* All masks, biases, scores, temperatures, layouts and groups of heads, also with empty pieces:
   there are fewer queries or keys than chunks. */
TEST(attention_ring, short_sequences_equal_the_tiled_path, MANY_CASES)
{
    const int variants = test_long() ? 600 : test_some(300); /* tensors live until the end */
    for (uint64_t seed = 0; seed < (uint64_t)variants; seed++) {
        const struct variant c = variant_draw(seed);
        expect_same(&c, 1 + (int)(seed % RANKS));
    }
}

/* Pieces around the sizes of tiles, which dropout's groups of eight do not divide. */
TEST(attention_ring, long_sequences_equal_the_tiled_path)
{
    too_slow(SANITIZED, "short sequences run the same kernels");
    static const int64_t lengths[] = {130, 257, 300, 511, 600, 1030};
    const int variants = test_long() ? 400 : test_some(40);
    for (uint64_t seed = 0; seed < (uint64_t)variants; seed++) {
        sb_random r = sb_random_new(seed, SB_STREAM_USER + 1);
        struct variant c = variant_draw(seed);
        c.Lq = lengths[sb_random_below(&r, test_brief() ? 3 : 6)];
        c.Lk = lengths[sb_random_below(&r, test_brief() ? 3 : 6)];
        c.D = 1 + sb_random_below(&r, 64);
        c.dropout = seed % 2 ? 0.3 : 0;
        c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0;
        expect_same(&c, 1 + (int)(seed % RANKS));
    }
}

/* The unit of rounding is 2^29 times that of f64. */
TEST(attention_ring, numbers_of_f32_err_as_on_one_rank)
{
    for (uint64_t seed = 0; seed < (uint64_t)test_some(80); seed++) {
        const struct variant c = variant_draw(seed + 500);
        const double limit = 1e-13 * 0x1p29;
        expect_near(&c, SB_F32, 1 + (int)(seed % RANKS),
                    (double[PARTS]){limit, limit, limit, limit, 8 * limit, 8 * limit});
    }
}

/* Twice the roundings of tests/ops/test_attention_tiled.c: one rank and several have that many
   each. Sums travel in f32; if each part were rounded, they would err by more. */
TEST(attention_ring, numbers_of_bf16_err_as_on_one_rank, MANY_CASES)
{
    static const double roundings[PARTS] = {8, 16, 16, 12, 16, 0};
    double limit[PARTS];
    for (int i = 0; i < PARTS; i++)
        limit[i] = roundings[i] * 0x1p-9;
    for (uint64_t seed = 0; seed < (uint64_t)test_some(80); seed++) {
        struct variant c = variant_draw(seed + 600);
        c.Lq += 60;
        c.Lk += 90;
        c.D = 1 + (int64_t)seed * 9 % 130;
        c.Dv = seed % 2 ? c.D : 40;
        c.score = seed % 2 ? SB_SCORE_BALANCED : SB_SCORE_SCALED;
        c.temperature = seed % 3 ? TEMPERATURE_NONE : TEMPERATURE_FIXED;
        c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0;
        c.dropout = seed % 3 == 1 ? 0.3 : 0;
        if (c.bias == BIAS_QUERIES || c.bias == BIAS_ONE) /* its gradient is 0, but for rounding */
            c.bias = BIAS_ALL;
        expect_near(&c, SB_BF16, 2 + (int)(seed % 3), limit);
    }
}

/* ---- determinism and failures ---- */

/* Additions follow the order of ranks, whichever rank is faster. */
TEST(attention_ring, a_second_run_gives_the_same_bits, MANY_CASES)
{
    struct variant c = variant_draw(9);
    c.Lq = c.Lk = 300;
    c.dropout = 0.2;
    struct job job[2] = {{.c = c}, {.c = c}};
    for (int n = 0; n < 2; n++) {
        variant_inputs(&c, SB_F32, job[n].x);
        const bool heads = c.layout == SB_LAYOUT_HEADS_FIRST;
        job[n].dy =
            test_leaf(SB_F32, 7, SB_SHAPE(c.B, heads ? c.H : c.Lq, heads ? c.Lq : c.H, c.Dv));
        mailbox_run(3, attend_rank, &job[n]);
    }
    for (int rank = 0; rank < 3; rank++)
        for (int i = 0; i < PARTS && job[0].part[rank][i]; i++)
            cr_expect(test_same_bits(job[0].part[rank][i], job[1].part[rank][i]), "rank %d: %d",
                      rank, i);
}

struct same {
    const sb_tensor *x;
    sb_tensor *dx; /* of the unsharded tensor */
};

/* One tensor is q, k and v: its gradient is the sum of three parts and of an existing one. */
static bool use_same(sb_tensor *x, sb_communicator *ring, const sb_piece *piece)
{
    const sb_partition partition = {.source = *piece};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = &partition, .ring = ring});
    const sb_attention_options options = {.algorithm = SB_ATTENTION_TILED};
    sb_tensor *k = sb_scale(x, 2), *y = sb_attention(x, x, x, &options);
    y = sb_add(sb_multiply(y, y), sb_attention(x, k, k, &options));
    const bool ok = y && sb_backward(sb_sum(y, SB_ALL, false));
    return sb_tape_end(&tape) && ok;
}

static void use_same_rank(sb_communicator *c, void *context)
{
    struct same *s = context;
    const int rank = sb_communicator_rank(c);
    int64_t here;
    const sb_piece piece = sb_piece_zigzag(s->x->dim[1], sb_communicator_size(c), rank, &here);
    sb_tensor *x = share_part(s->x, 1, &piece, here);
    need(use_same(x, c, &piece), c);
    sb_tensor *expected = share_part(s->dx, 1, &piece, here);
    cr_expect(test_relative(sb_tensor_grad(x), expected) <= 1e-13, "rank %d: %g", rank,
              test_relative(sb_tensor_grad(x), expected));
}

TEST(attention_ring, one_tensor_may_be_queries_keys_and_values, MANY_CASES)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 19, 2, 3));
    MUST(use_same(x, NULL, &(sb_piece){0}));
    for (int ranks = 1; ranks <= 3; ranks++)
        mailbox_run(ranks, use_same_rank, &(struct same){.x = x, .dx = sb_tensor_grad(x)});
}

/* If all scores of a block of keys are -infinity, only the others count; if all are, y is NaN. */
TEST(attention_ring, infinite_scores_of_a_block_do_not_change_the_others)
{
    struct job job = {.c = {.seed = 3, .B = 1, .H = 1, .G = 1, .Lq = 8, .Lk = 8, .D = 2, .Dv = 2}};
    sb_tensor *expected[PARTS];
    job.c.bias = BIAS_ALL;
    variant_inputs(&job.c, SB_F64, job.x);
    job.dy = test_leaf(SB_F64, 7, SB_SHAPE(1, 8, 1, 2));
    for (int j = 0; j < 8; j++) {
        sb_tensor_set(job.x[3], j,
                      j == 0 || j == 7 ? -INFINITY : 0); /* query 0, the keys of rank 0 */
        sb_tensor_set(job.x[3], 8 + j, -INFINITY);
    }
    MUST(attend(&job.c, NULL, NULL, job.x, job.dy, expected));
    mailbox_run(4, attend_rank, &job);
    sb_tensor *y = joined(&job, 4, Y, expected[Y]);
    for (int e = 0; e < 16; e++) {
        const double a = sb_tensor_get(y, e), b = sb_tensor_get(expected[Y], e);
        cr_expect(e / 2 == 1 ? isnan(a) && isnan(b) : fabs(a - b) <= 1e-12, "%d: %g, %g", e, a, b);
    }
}

/* Non-finite keys and values of one rank reach the same results as on one rank, and no others. */
TEST(attention_ring, non_finite_numbers_propagate_only_through_kept_pairs)
{
    enum { L = 150, D = 16 };
    const struct variant c = {
        .seed = 4, .B = 1, .H = 1, .G = 1, .Lq = L, .Lk = L, .D = D, .Dv = D, .mask = MASK_CAUSAL};
    for (sb_dtype dtype = SB_F32; dtype <= SB_BF16; dtype++) {
        struct job job = {.c = c};
        sb_tensor *expected[PARTS];
        variant_inputs(&job.c, dtype, job.x);
        job.dy = test_leaf(dtype, 7, SB_SHAPE(1, L, 1, D));
        sb_tensor_set(job.x[1], 120 * D + 3, NAN);
        sb_tensor_set(job.x[2], 100 * D + 5, INFINITY);
        MUST(attend(&job.c, NULL, NULL, job.x, job.dy, expected));
        mailbox_run(3, attend_rank, &job);
        for (int i = 0; i < 4; i++) {
            sb_tensor *got = joined(&job, 3, i, expected[i]);
            double *x = numbers_of(got), *y = numbers_of(expected[i]);
            int64_t nonfinite = 0;
            for (int64_t e = 0; e < L * D; e++) {
                nonfinite += !isfinite(y[e]);
                cr_expect(!isfinite(x[e]) == !isfinite(y[e]), "%s, result %d, %d: %g, not %g",
                          sb_dtype_name(dtype), i, (int)e, x[e], y[e]);
            }
            cr_expect(nonfinite > 0 && (i > 1 || nonfinite < L * D), "%s, result %d",
                      sb_dtype_name(dtype), i);
        }
    }
}

TEST(attention_ring, wrong_arguments_are_named)
{
    static const char *const messages[] = {
        "attention: weights are not available with sequence parallelism",
        "attention: 4 queries are not rank 0's zig-zag piece of 5 on 1 ranks",
        "attention: 4 keys are not rank 0's zig-zag piece of 0 on 1 ranks",
    };
    sb_communicator *alone = KEPT(communicator_new(NULL, NULL));
    for (int i = 0; i < 3; i++) {
        sb_tensor *weights = NULL;
        const sb_partition share = {.source = sb_piece_zigzag(i == 1 ? 5 : 4, 1, 0, &(int64_t){0})};
        sb_tape tape;
        sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = &share, .ring = alone});
        sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(2, 4, 3));
        sb_attention_options options = {.weights = i == 0 ? &weights : NULL,
                                        .keys = i == 2 ? SB_SEQUENCE_TARGET : SB_SEQUENCE_SOURCE};
        REFUSED(messages[i], sb_attention(x, x, x, &options));
        cr_expect(!sb_tape_end(&tape));
    }
}

static sb_tensor *small_x;

/* On a ring of one rank, which has no other threads. */
static bool small_run(void *alone)
{
    sb_tensor *x = small_x;
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    const sb_partition share = {.source = sb_piece_zigzag(5, 1, 0, &(int64_t){0})};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = &share, .ring = alone});
    sb_tape_random(&tape, &random);
    const sb_attention_options options = {.mask = sb_mask_causal(), .dropout = 0.3};
    sb_backward(sb_sum(sb_attention(x, x, x, &options), SB_ALL, false));
    const bool ok = sb_tape_end(&tape);
    sb_tensor_clear_grad(x);
    return ok;
}

TEST(attention_ring, each_allocation_may_fail)
{
    sb_communicator *alone = KEPT(communicator_new(NULL, NULL));
    small_x = test_leaf(SB_F32, 1, SB_SHAPE(1, 5, 2));
    test_each_allocation_fails(small_run, alone);
}

/* ---- memory of a rank ---- */

enum { HEADS = 8, SIZE = 64 };

/* Operands of one sequence, and the sum of all ranks' bytes. */
struct cost {
    int64_t length, before, peak;
};

static sb_tensor *own_leaf(uint64_t seed, int64_t L)
{
    return test_leaf(SB_F32, seed, SB_SHAPE(1, L, HEADS, SIZE));
}

static void attend_long(sb_communicator *ring, void *context)
{
    const struct cost *cost = context;
    int64_t L;
    const sb_piece piece =
        sb_piece_zigzag(cost->length, sb_communicator_size(ring), sb_communicator_rank(ring), &L);
    const sb_partition partition = {.source = piece};
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = &partition, .ring = ring});
    sb_tensor *q = own_leaf(1, L), *k = own_leaf(2, L), *v = own_leaf(3, L), *dy = own_leaf(4, L);
    const sb_attention_options options = {.mask = sb_mask_causal()};
    sb_tensor *y = sb_attention(q, k, v, &options);
    need(y && sb_backward_from(y, dy) && sb_tape_end(&tape), ring);
}

/* The peak memory of all ranks together. */
static int64_t peak_bytes(int64_t length, int ranks)
{
    struct cost cost = {.length = length};
    const int64_t before = memory_in_use().live_bytes;
    sb_device_reset_peak(sb_device_in_use());
    mailbox_run(ranks, attend_long, &cost);
    return memory_in_use().peak_bytes - before;
}

/* A rank's share of q, k, v, y, their gradients and dy, and two statistics for each query; two
   blocks of k and v, and two of dk and dv; delta of one of the two runs of queries; and tiles for
   its thread. On a busy machine not all ranks reach their peak at the same time. */
CPU_TEST(attention_ring, a_rank_holds_its_share_and_two_blocks)
{
    too_slow(SANITIZED, "it measures memory, and short sequences run the same kernels");
    const int usual = sb_threads();
    const int64_t n = test_long() ? 16384 : 2048, element = sizeof(float);
    const int64_t share = n / RANKS * HEADS * SIZE * element;
    const int64_t numbers = n / RANKS * HEADS * element;
    sb_set_threads(1);
    const int64_t own = 9 * share + 2 * numbers, blocks = 8 * share, delta = numbers / 2;
    const int64_t tiles = (256 * 5 * SIZE + 64 * 2 * SIZE + 2 * 64 * (256 + 16)) * element;
    const int64_t formula = RANKS * (own + blocks + delta + tiles), peak = peak_bytes(n, RANKS);
    cr_log_info("%lld positions on %d ranks, 8 heads of 64: %.2f MB a rank at most, of which its "
                "share is %.2f MB; by the formula %.2f MB",
                (long long)n, RANKS, (double)peak / RANKS / 1e6, (double)own / 1e6,
                (double)formula / RANKS / 1e6);
    cr_expect((double)peak <= 1.05 * (double)formula && peak >= RANKS * own, "%lld bytes, not %lld",
              (long long)peak, (long long)formula);
    sb_set_threads(usual);
}

/* ---- whole models ---- */

struct training {
    const sb_batch *batch;
    double loss[RANKS];
    struct tiny tiny[RANKS]; /* equal on all ranks */
};

/* The sum of losses of a batch, or of a rank's part of it, and its gradients. */
static bool learn(const struct tiny *tiny, const sb_batch *batch, sb_communicator *ring,
                  const sb_partition *share, double *loss)
{
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = share, .ring = ring});
    sb_tape_random(&tape, &random);
    sb_tensor *sum = sb_seq2seq_loss_sum(tiny->model, batch);
    *loss = sum ? sb_tensor_value(sum) : 0;
    const bool ok = sum && sb_backward(sum);
    return sb_tape_end(&tape) && ok;
}

static void learn_piece(sb_communicator *ring, void *context)
{
    struct training *t = context;
    const int rank = sb_communicator_rank(ring), ranks = sb_communicator_size(ring);
    sb_batch part = *t->batch;
    sb_partition share = {.source = {0}};
    for (int i = 0; i < part.parts; i++) {
        sb_batch_part *p = &part.part[i];
        sb_piece *piece = p->along == SB_SEQUENCE_SOURCE ? &share.source : &share.target;
        int64_t here;
        if (p->along == SB_SEQUENCE_NONE)
            continue;
        *piece = sb_piece_zigzag(p->t->dim[1], ranks, rank, &here);
        p->t = share_part(p->t, 1, piece, here);
    }
    need(learn(&t->tiny[rank], &part, ring, &share, &t->loss[rank]), ring);
}

/* The largest difference between the ranks' summed gradients and `whole`'s, over its largest. */
static double gradient_difference(const struct training *t, int ranks, const struct tiny *whole)
{
    double difference = 0, largest = 0;
    for (int64_t i = 0; i < sb_parameters_count(whole->weights); i++) {
        const sb_tensor *expected = sb_tensor_grad(sb_parameters_get(whole->weights, i));
        double *y = numbers_of(expected);
        for (int64_t e = 0; e < sb_tensor_size(expected); e++) {
            double sum = 0;
            for (int rank = 0; rank < ranks; rank++)
                sum +=
                    sb_tensor_get(sb_tensor_grad(sb_parameters_get(t->tiny[rank].weights, i)), e);
            difference = fmax(difference, isnan(sum) ? INFINITY : fabs(sum - y[e]));
            largest = fmax(largest, fabs(y[e]));
        }
    }
    return difference / largest;
}

static void expect_training(const char *name, const sb_seq2seq_options *options, int ranks)
{
    struct tiny whole = tiny_new(SB_F64, 3, options);
    sb_batch *batch = tiny_batch(whole.vocabulary, 8, 3, 11);
    struct training t = {.batch = batch};
    double expected, loss = 0;
    for (int rank = 0; rank < ranks; rank++)
        t.tiny[rank] = tiny_new(SB_F64, 3, options);
    MUST(learn(&whole, batch, NULL, NULL, &expected));
    mailbox_run(ranks, learn_piece, &t);
    for (int rank = 0; rank < ranks; rank++)
        loss += t.loss[rank];
    cr_expect(fabs(loss - expected) <= 1e-12 * expected, "%s, %d ranks: %.17g, not %.17g", name,
              ranks, loss, expected);
    const double difference = gradient_difference(&t, ranks, &whole);
    cr_expect(difference <= 1e-12, "%s, %d ranks: gradients differ by %g", name, ranks, difference);
}

/* With dropout, every kind of position, and attention from one sequence to another. */
TEST(attention_ring, models_of_every_variant_train_as_on_one_rank, MANY_CASES)
{
    for (int i = tiny_first(6); tiny_variant(i); i += tiny_step()) {
        sb_seq2seq_options options = tiny_variant(i)->options;
        options.transformer.dropout = 0.3;
        options.transformer.recompute = i % 3 == 0;
        expect_training(tiny_variant(i)->name, &options, 1 + i % RANKS);
        expect_training(tiny_variant(i)->name, &options, 2);
    }
}
