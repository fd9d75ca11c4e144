/* Parts of tensors on several ranks. */
#include "models/data/batch_parts.h"
#include "ops/runs.h"
#include "tests/support/mailbox.h"
#include "tests/support/tiny.h"
#include <stdio.h>

/* Dropout depends on the position within the unsharded tensor: any partition of a batch drops the
   same elements. */

static const sb_random random_at = {0x123456789abcdef, ((uint64_t)SB_STREAM_TRAIN << 48) + 77};

/* Whether the same elements are 0, and the others equal. */
static bool same_decisions(const sb_tensor *a, const sb_tensor *b, double tolerance)
{
    bool same = sb_tensor_size(a) == sb_tensor_size(b);
    double *x = numbers_of(a), *y = numbers_of(b);
    for (int64_t e = 0; same && e < sb_tensor_size(a); e++)
        same = (x[e] == 0) == (y[e] == 0);
    return same && (sb_tensor_size(a) == 0 || test_relative(a, b) <= tolerance);
}

/* ---- pieces ---- */

/* Each position is held by one rank. Under a causal mask position i sees i + 1 keys: if all chunks
   are equally long, all ranks have the same work. */
CPU_TEST(place, zigzag_pieces_cover_a_sequence_and_balance_causal_masks)
{
    for (int ranks = 1; ranks <= 5; ranks++)
        for (int64_t length = 0; length <= 40; length++) {
            int held[40] = {0};
            for (int rank = 0; rank < ranks; rank++) {
                int64_t here, pairs = 0;
                struct run run[2];
                const sb_piece piece = sb_piece_zigzag(length, ranks, rank, &here);
                piece_runs(&piece, here, run);
                for (int64_t n = 0; n < here; n++) {
                    const int64_t i =
                        n < run[0].count ? run[0].first + n : run[1].first + n - run[1].here;
                    held[i]++;
                    pairs += i + 1;
                }
                cr_expect(length % (2 * ranks) || pairs * ranks == length * (length + 1) / 2,
                          "%d positions, rank %d of %d", (int)length, rank, ranks);
            }
            for (int64_t i = 0; i < length; i++)
                cr_expect(held[i] == 1, "position %d of %d, %d ranks", (int)i, (int)length, ranks);
        }
}

/* ---- x (sentences, positions, units) ---- */

enum { DROPOUT, RESIDUAL, NORM, UNIT_KINDS };

static sb_tensor *run_units(int kind, sb_tensor *const x[2])
{
    const int64_t C = sb_tensor_dim(x[0], 2);
    sb_tensor *sum = NULL;
    if (kind == DROPOUT)
        return sb_dropout(x[0], 0.4);
    if (kind == RESIDUAL)
        return sb_residual_dropout(x[1], x[0], 0.4);
    sb_tensor *gain = sb_tape_own(sb_tensor_full(sb_tensor_dtype(x[0]), SB_SHAPE(C), 1));
    return sb_residual_layer_norm(x[1], x[0], 0.4, gain, NULL, 0, &sum) ? sum : NULL;
}

/* y and the gradient of x[0]. */
static void units(int kind, const sb_partition *share, sb_tensor *const x[2], sb_tensor *dy,
                  sb_tensor *result[2])
{
    sb_random random = random_at;
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = share});
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_keep(run_units(kind, x));
    MUST(y && sb_backward_from(y, dy));
    result[0] = retained(y);
    result[1] = retained(sb_tensor_grad(x[0]));
    cr_assert(sb_tape_end(&tape));
    sb_tensor_clear_grad(x[0]);
    sb_tensor_clear_grad(x[1]);
}

static sb_tensor *part_of(const sb_tensor *t, const sb_partition *share, int64_t B, int64_t L)
{
    sb_tensor *sentences =
        share->items.of ? share_part(t, 0, &share->items, B) : retained((sb_tensor *)t);
    return share->source.of ? share_part(sentences, 1, &share->source, L) : sentences;
}

static void expect_units(int kind, sb_dtype dtype, int64_t C, const sb_partition *share, int64_t B,
                         int64_t L)
{
    sb_tensor *x[3], *part[3], *whole[2], *share_of[2];
    for (int i = 0; i < 3; i++) {
        x[i] = test_leaf(dtype, (uint64_t)i + 1, SB_SHAPE(5, 7, C));
        part[i] = part_of(x[i], share, B, L);
    }
    units(kind, NULL, x, x[2], whole);
    units(kind, share, part, part[2], share_of);
    for (int i = 0; i < 2; i++) {
        sb_tensor *expected = part_of(whole[i], share, B, L);
        cr_expect(same_decisions(share_of[i], expected, 0), "kind %d, result %d, %d units", kind, i,
                  (int)C);
    }
}

TEST(place, parts_of_activations_drop_the_same_elements, KNOWN_KERNELS)
{
    const int64_t sizes[] = {1, 8, 13, 300};
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int n = 0; n < 8 * UNIT_KINDS; n++) {
            sb_partition share = {.items = {.of = 5, .first = 2}};
            const sb_dtype dtype = n % 2 ? SB_F64 : SB_F32;
            const int64_t C = sizes[n / 2 % 4];
            expect_units(n / 8, dtype, C, &share, 3, 7);
            for (int rank = 0; rank < 3; rank++) {
                int64_t L;
                share.source = sb_piece_zigzag(7, 3, rank, &L);
                expect_units(n / 8, dtype, C, &share, 3, L);
                expect_units(n / 8, dtype, C, &(sb_partition){.source = share.source}, 5, L);
            }
        }
}

/* ---- attention's weights (sentences, heads, queries of the target, keys of the source) ---- */

enum { HEADS = 4, QUERIES = 70 };

static const sb_piece all_heads = {0};

static void attend(sb_attention_algorithm algorithm, const sb_partition *share,
                   const sb_piece *heads, sb_tensor *const x[3], sb_tensor *dy,
                   sb_tensor *result[4])
{
    const sb_attention_options options = {.dropout = 0.4,
                                          .algorithm = algorithm,
                                          .queries = SB_SEQUENCE_TARGET,
                                          .keys = SB_SEQUENCE_SOURCE,
                                          .heads = *heads};
    sb_random random = random_at;
    TAPE_WITH(SB_RECORD, &(sb_context){.partition = share});
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &options));
    MUST(y && sb_backward_from(y, dy));
    result[0] = retained(y);
    for (int i = 0; i < 3; i++) {
        result[1 + i] = retained(sb_tensor_grad(x[i]));
        sb_tensor_clear_grad(x[i]);
    }
}

/* q, k, v and dy; queries and keys that are 0 make all weights of a row equal. */
static void operands(sb_dtype dtype, int64_t keys, bool equal, sb_tensor *x[4])
{
    const int64_t rows[] = {QUERIES, keys, keys, QUERIES};
    for (uint64_t i = 0; i < 4; i++) {
        x[i] = test_leaf(dtype, i + 1, SB_SHAPE(3, rows[i], HEADS, 3));
        if (equal && i < 2)
            x[i] = sb_tensor_requires_grad(
                KEPT(sb_tensor_zeros(dtype, SB_SHAPE(3, rows[i], HEADS, 3))));
    }
}

/* Splits an axis of q, k, v and dy, and compares the results with parts of the unsharded
   results. */
static void expect_cut(sb_dtype dtype, sb_attention_algorithm algorithm, int64_t keys, int axis,
                       const sb_piece *piece, int64_t here)
{
    sb_partition share = {0};
    sb_piece heads = {0};
    const double tolerance = dtype == SB_F64 ? 1e-13 : 0.02; /* wrong decisions differ more */
    sb_tensor *x[4], *part[4], *whole[4], *got[4];
    operands(dtype, keys, false, x);
    for (int i = 0; i < 4; i++)
        part[i] =
            axis == 1 && (i == 1 || i == 2) ? retained(x[i]) : share_part(x[i], axis, piece, here);
    *(axis == 0 ? &share.items : axis == 1 ? &share.target : &heads) = *piece;
    attend(algorithm, NULL, &all_heads, x, x[3], whole);
    attend(algorithm, &share, &heads, part, part[3], got);
    for (int i = 0; i < (axis == 1 ? 2 : 4); i++) { /* keys get their gradient from all queries */
        sb_tensor *expected = share_part(whole[i], axis, piece, here);
        cr_expect(test_relative(got[i], expected) <= tolerance, "axis %d, %d keys, result %d: %g",
                  axis, (int)keys, i, test_relative(got[i], expected));
    }
}

TEST(place, parts_of_attention_weights_drop_the_same_elements, MANY_CASES)
{
    const sb_attention_algorithm algorithms[] = {SB_ATTENTION_COMPOSED, SB_ATTENTION_TILED,
                                                 SB_ATTENTION_TILED};
    const sb_dtype dtypes[] = {SB_F64, SB_F64, SB_BF16};
    for (int n = 0; n < 6; n++) {
        const sb_attention_algorithm algorithm = algorithms[n % 3];
        const sb_dtype dtype = dtypes[n % 3];
        const int64_t keys = n < 3 ? 9 : test_slow() ? 70 : 300;
        expect_cut(dtype, algorithm, keys, 0, &(sb_piece){.of = 3, .first = 1}, 2);
        expect_cut(dtype, algorithm, keys, 2, &(sb_piece){.of = HEADS, .first = 1}, 3);
        for (int rank = 0; rank < 3; rank++) {
            int64_t here;
            const sb_piece piece = sb_piece_zigzag(QUERIES, 3, rank, &here);
            expect_cut(dtype, algorithm, keys, 1, &piece, here);
        }
    }
}

/* If all weights of a row are equal, y is the mean of the results of blocks of keys, weighted by
   their numbers of keys; a value's gradient is that of its block, times the same weight. */
static void expect_blocks(sb_attention_algorithm algorithm, int64_t keys, int ranks)
{
    sb_tensor *x[4], *whole[4], *got[4];
    operands(SB_F64, keys, true, x);
    attend(algorithm, NULL, &all_heads, x, x[3], whole);
    double *sum = KEPT(calloc((size_t)sb_tensor_size(whole[0]), sizeof *sum));
    for (int rank = 0; rank < ranks; rank++) {
        int64_t here;
        const sb_partition share = {.source = sb_piece_zigzag(keys, ranks, rank, &here)};
        const double weight = (double)here / (double)keys;
        sb_tensor *part[] = {x[0], share_part(x[1], 1, &share.source, here),
                             share_part(x[2], 1, &share.source, here)};
        attend(algorithm, &share, &all_heads, part, x[3], got);
        sb_tensor *dv = share_part(whole[3], 1, &share.source, here);
        double *y = numbers_of(got[0]), *expected = numbers_of(dv);
        for (int64_t e = 0; e < sb_tensor_size(got[0]); e++)
            sum[e] += weight * y[e];
        for (int64_t e = 0; e < sb_tensor_size(dv); e++)
            expected[e] /= weight;
        sb_tensor_write(dv, expected);
        cr_expect(test_relative(got[3], dv) <= 1e-13, "rank %d of %d, %d keys", rank, ranks,
                  (int)keys);
    }
    double *y = numbers_of(whole[0]);
    const double difference = test_relative_arrays(sb_tensor_size(whole[0]), sum, y);
    cr_expect(difference <= 1e-13, "%d ranks, %d keys: %g", ranks, (int)keys, difference);
}

TEST(place, blocks_of_keys_drop_the_same_elements, KNOWN_KERNELS)
{
    expect_blocks(SB_ATTENTION_COMPOSED, 70, 2);
    expect_blocks(SB_ATTENTION_TILED, 70, 3);
    if (test_slow_device())
        return;
    expect_blocks(SB_ATTENTION_COMPOSED, 601, 3);
    expect_blocks(SB_ATTENTION_TILED, 601, 2);
    expect_blocks(SB_ATTENTION_TILED, 1040, 1);
}

/* ---- a model ---- */

/* The pairs from .. to - 1 of a batch, with the batch's padding. */
static sb_batch pairs_of(const sb_batch *batch, int64_t from, int64_t to)
{
    const sb_piece piece = {.of = batch->items, .first = from};
    sb_batch part = *batch;
    part.items = to - from;
    for (int i = 0; i < part.parts; i++)
        part.part[i].t = share_part(batch->part[i].t, 0, &piece, to - from);
    return part;
}

/* The sum of losses of a part of a batch; adds its gradients to existing ones. */
static double learn(const sb_seq2seq *model, const sb_batch *batch, const sb_partition *share)
{
    sb_random random = random_at;
    TAPE_WITH(SB_RECORD, &(sb_context){.partition = share});
    sb_tape_random(&tape, &random);
    sb_tensor *loss = sb_seq2seq_loss_sum(model, batch);
    MUST(loss && sb_backward(loss));
    return sb_tensor_value(loss);
}

/* max |a - b|, and of b. */
static void widen(const sb_tensor *a, const sb_tensor *b, double *difference, double *largest)
{
    double *x = numbers_of(a), *y = numbers_of(b);
    for (int64_t e = 0; e < sb_tensor_size(b); e++) {
        *difference = fmax(*difference, isnan(x[e]) ? INFINITY : fabs(x[e] - y[e]));
        *largest = fmax(*largest, fabs(y[e]));
    }
}

static void expect_batch(const sb_seq2seq_options *options)
{
    struct tiny tiny = tiny_new(SB_F64, 3, options);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 5, 5, 9);
    const int64_t cuts[] = {0, 1, 5}, n = sb_parameters_count(tiny.weights);
    const double whole = learn(tiny.model, batch, NULL);
    sb_tensor **expected = KEPT(malloc((size_t)n * sizeof *expected));
    for (int64_t i = 0; i < n; i++)
        expected[i] = retained(sb_tensor_grad(sb_parameters_get(tiny.weights, i)));
    sb_parameters_clear(tiny.weights);
    double sum = 0, difference = 0, largest = 0;
    for (int i = 0; i < 2; i++) {
        sb_batch part = pairs_of(batch, cuts[i], cuts[i + 1]);
        sum += learn(tiny.model, &part, &(sb_partition){.items = {.of = 5, .first = cuts[i]}});
    }
    cr_expect(fabs(sum - whole) <= 1e-12 * whole, "%.17g, not %.17g", sum, whole);
    for (int64_t i = 0; i < n; i++)
        widen(sb_tensor_grad(sb_parameters_get(tiny.weights, i)), expected[i], &difference,
              &largest);
    cr_expect(difference <= 1e-12 * largest, "gradients up to %g differ by %g", largest,
              difference);
    sb_parameters_clear(tiny.weights);
}

TEST(place, parts_of_a_batch_give_the_gradients_of_the_batch, KNOWN_KERNELS)
{
    for (int recompute = 0; recompute < 2; recompute++) {
        sb_seq2seq_options options = tiny_options();
        options.transformer.dropout = 0.3;
        options.transformer.recompute = recompute;
        expect_batch(&options);
    }
}

TEST(place, wrong_partitions_are_named)
{
    sb_random random = random_at;
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(3, 2, 4));
    const sb_partition shares[] = {{.items = {.of = 5, .first = 3}},
                                   {.source = {.of = 4, .first = 0, .turn = 1, .second = 4}},
                                   {.source = {.of = 4, .first = -1}}};
    const char *const messages[] = {
        "dropout: 3 items from 3 on are not part of 5",
        "dropout: 2 positions from 0 on are not part of 4",
        "dropout: positions have first -1, turn 0, second 0 of 4; none may be negative"};
    for (int i = 0; i < 3; i++) {
        sb_tape tape;
        sb_tape_begin_with(&tape, SB_RECORD, &(sb_context){.partition = &shares[i]});
        sb_tape_random(&tape, &random);
        REFUSED(messages[i], sb_dropout(x, 0.5));
        cr_expect(!sb_tape_end(&tape));
    }
    cr_expect(random.position == random_at.position, "a call that fails takes no position");
}

/* ---- The operations of tensor parallelism, with threads as ranks ---- */

enum { RANKS = 3, IN = 4, HIDDEN = 6, OUT = 2 };

/* A layer y = tanh(x up') down' whose hidden units are split over ranks, after Shoeybi et al. 2019:
   the inputs of all ranks, and each rank's results. */
struct layer {
    sb_tensor *x, *up, *down; /* unsharded */
    bool passes[RANKS];
    sb_tensor *y[RANKS], *dx[RANKS], *dup[RANKS], *ddown[RANKS];
};

/* The part of one rank. */
struct part {
    sb_communicator *ranks;
    sb_tensor *up, *down;
};

static sb_tensor *run_part(void *context, sb_tensor *const x[])
{
    const struct part *part = context;
    sb_tensor *in = sb_to_ranks(x[0], part->ranks);
    sb_tensor *hidden = sb_tanh(sb_linear(in, part->up, NULL));
    sb_tensor *y = sb_from_ranks(sb_linear(hidden, part->down, NULL), part->ranks);
    return sb_add(sb_multiply(y, y), sb_sum(x[0], SB_ALL, false)); /* x is used twice */
}

static void need(bool ok)
{
    if (ok)
        return;
    fprintf(stderr, "%s\n", sb_error()); /* the other ranks would wait forever */
    abort();
}

static void run_rank(sb_communicator *c, void *context)
{
    struct layer *l = context;
    const int rank = sb_communicator_rank(c), ranks = sb_communicator_size(c);
    const int64_t here = HIDDEN / ranks;
    const sb_piece piece = {.of = HIDDEN, .first = rank * here};
    struct part part = {c, share_part(l->up, 0, &piece, here),
                        share_part(l->down, 1, &piece, here)};
    sb_tensor *x = share_part(l->x, 0, &(sb_piece){0}, l->x->dim[0]);
    l->passes[rank] = sb_gradcheck(run_part, &part, &x, 1, NULL, NULL);
    if (!l->passes[rank])
        fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, sb_error());
    sb_tensor_clear_grad(x);
    sb_tensor_clear_grad(part.up);
    sb_tensor_clear_grad(part.down);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_keep(run_part(&part, &x));
    need(y && sb_backward(sb_sum(y, SB_ALL, false)));
    l->y[rank] = retained(y);
    l->dx[rank] = retained(sb_tensor_grad(x));
    l->dup[rank] = retained(sb_tensor_grad(part.up));
    l->ddown[rank] = retained(sb_tensor_grad(part.down));
    need(sb_tape_end(&tape));
}

static struct layer layer_new(void)
{
    return (struct layer){.x = test_leaf(SB_F64, 1, SB_SHAPE(5, IN)),
                          .up = test_leaf(SB_F64, 2, SB_SHAPE(HIDDEN, IN)),
                          .down = test_leaf(SB_F64, 3, SB_SHAPE(OUT, HIDDEN))};
}

CPU_TEST(ranks, a_sharded_layer_has_the_values_and_gradients_of_the_unsharded_one)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        struct layer whole = layer_new(), cut = layer_new();
        mailbox_run(1, run_rank, &whole);
        mailbox_run(ranks, run_rank, &cut);
        for (int rank = 0; rank < ranks; rank++) {
            const int64_t here = HIDDEN / ranks;
            const sb_piece piece = {.of = HIDDEN, .first = rank * here};
            sb_tensor *dup = share_part(whole.dup[0], 0, &piece, here);
            sb_tensor *ddown = share_part(whole.ddown[0], 1, &piece, here);
            cr_expect(cut.passes[rank], "the gradient check fails on rank %d of %d", rank, ranks);
            cr_expect(test_relative(cut.y[rank], whole.y[0]) <= 1e-14);
            cr_expect(test_relative(cut.dx[rank], whole.dx[0]) <= 1e-14);
            cr_expect(test_relative(cut.dup[rank], dup) <= 1e-14);
            cr_expect(test_relative(cut.ddown[rank], ddown) <= 1e-14);
            cr_expect(test_same_bits(cut.y[rank], cut.y[0]) &&
                          test_same_bits(cut.dx[rank], cut.dx[0]),
                      "rank %d of %d has different bits", rank, ranks);
        }
    }
}
