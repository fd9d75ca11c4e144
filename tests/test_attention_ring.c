/* Attention over a sequence that is cut over ranks, here threads, against the tiled path on one. */
#include "autograd/node.h"
#include "tests/share.h"
#include "tests/threads_ring.h"
#include "tests/variant.h"
#include <time.h>

enum { Y, PARTS = 1 + VARIANT_INPUTS, RANKS = 4 };

/* What each rank gets of a variant: y and the gradients of all inputs. */
struct job {
    struct variant c;
    sb_dtype dtype;
    sb_tensor *x[VARIANT_INPUTS], *dy;
    sb_tensor *part[RANKS][PARTS];
};

static int length_axis(const struct variant *c)
{
    return c->layout == SB_LENGTH_FIRST ? 1 : 2;
}

/* Along which axis a bias has the queries; -1: it is the same for all. */
static int bias_axis(const struct variant *c)
{
    return c->bias == BIAS_ALL ? 2 : c->bias == BIAS_HEADS || c->bias == BIAS_QUERIES ? 1 : -1;
}

static sb_share pieces(const struct variant *c, int ranks, int rank, int64_t here[2])
{
    return (sb_share){.target = sb_piece_zigzag(c->Lq, ranks, rank, &here[0]),
                      .source = sb_piece_zigzag(c->Lk, ranks, rank, &here[1])};
}

/* Along which axis result or input i is cut: y and q by queries, k and v by keys. */
static int axis_of(const struct variant *c, int i)
{
    return i == 1 + 3 ? bias_axis(c) : i == 1 + 4 ? -1 : length_axis(c);
}

static const sb_piece *piece_of(const sb_share *share, int i)
{
    return i == 2 || i == 3 ? &share->source : &share->target;
}

/* y and gradients of these inputs, on a tape that may be a part of a ring; to be released. */
static bool attend(const struct variant *c, const struct ring *ring, const sb_share *share,
                   sb_tensor *const x[], sb_tensor *dy, sb_tensor *result[PARTS])
{
    sb_random random = sb_random_new(c->seed, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tape_share(&tape, share);
    tape_ring(&tape, ring);
    tape_sequences(TARGET, SOURCE);
    const sb_attention_options options = variant_options(c, x);
    sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &options));
    const bool ok = y && sb_backward_from(y, dy);
    result[Y] = ok ? sb_tensor_retain(y) : NULL;
    for (int i = 0; i < VARIANT_INPUTS; i++) {
        result[1 + i] = ok && x[i] ? sb_tensor_retain(sb_grad(x[i])) : NULL;
        sb_clear_grad(x[i]);
    }
    return sb_tape_end(&tape) && ok;
}

/* What a rank holds of an input, or of dy. */
static sb_tensor *held(const struct job *job, const sb_share *share, const int64_t here[2], int i)
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

static bool attend_rank(const struct ring *ring, void *context)
{
    struct job *job = context;
    int64_t here[2];
    const sb_share share = pieces(&job->c, ring->ranks, ring->rank, here);
    struct variant c = job->c;
    c.rows = share.target;
    c.rows_here = here[0];
    sb_tensor *x[PARTS];
    for (int i = 0; i < PARTS; i++)
        x[i] = held(job, &share, here, i);
    const bool ok = attend(&c, ring, &share, x + 1, x[Y], job->part[ring->rank]);
    for (int i = 0; i < PARTS; i++)
        sb_tensor_release(x[i]);
    return ok;
}

/* The ranks' parts of a result, put together. */
static sb_tensor *joined(const struct job *job, int ranks, int i, const sb_tensor *like)
{
    sb_tensor *whole = sb_tensor_zeros(like->dtype, like->rank, like->dim);
    for (int rank = 0; rank < ranks; rank++) {
        int64_t here[2];
        const sb_share share = pieces(&job->c, ranks, rank, here);
        const int axis = axis_of(&job->c, i);
        share_add(whole, axis < 0 ? 0 : axis, axis < 0 ? &(sb_piece){0} : piece_of(&share, i),
                  job->part[rank][i]);
    }
    return whole;
}

static void expect_same(const struct variant *c, int ranks)
{
    static const char *const names[PARTS] = {"y", "dq", "dk", "dv", "dbias", "dlog_temperature"};
    struct job job = {.c = *c};
    sb_tensor *expected[PARTS];
    const int64_t last = c->layout == SB_LENGTH_FIRST ? c->H : c->Lq;
    variant_inputs(c, SB_F64, job.x);
    job.dy = test_leaf(SB_F64, 7, SB_SHAPE(c->B, last == c->Lq ? c->H : c->Lq, last, c->Dv));
    cr_assert(attend(c, NULL, NULL, job.x, job.dy, expected), "%s", sb_error());
    ring_run(ranks, attend_rank, &job);
    for (int i = 0; i < PARTS; i++) {
        const int result = i == Y ? 0 : i + 1;
        if (!expected[i])
            continue;
        sb_tensor *got = joined(&job, ranks, i, expected[i]);
        const double difference = variant_difference(c, result, got, expected[i]);
        cr_expect(difference <= (result == 6 ? 8e-12 : 1e-12),
                  "variant %d on %d ranks: %s differs by %g (lengths %d, %d, heads %d, %d, mask "
                  "%d, bias %d, score %d, dropout %g)",
                  (int)c->seed, ranks, names[i], difference, (int)c->Lq, (int)c->Lk, (int)c->H,
                  (int)c->G, c->mask, c->bias, (int)c->score, c->dropout);
        sb_tensor_release(got);
    }
    for (int i = 0; i < PARTS; i++) {
        sb_tensor_release(expected[i]);
        for (int rank = 0; rank < ranks; rank++)
            sb_tensor_release(job.part[rank][i]);
    }
    for (int i = 0; i < VARIANT_INPUTS; i++)
        sb_tensor_release(job.x[i]);
    sb_tensor_release(job.dy);
}

/* All masks, biases, scores, temperatures, layouts and groups of heads, also with pieces that are
   empty: there are fewer queries or keys than chunks. */
CPU_CLAIM(attention_ring, short_sequences_equal_the_tiled_path)
{
    const int variants = test_long() ? 4000 : test_some(300);
    for (uint64_t seed = 0; seed < (uint64_t)variants; seed++) {
        const struct variant c = variant_draw(seed);
        expect_same(&c, 1 + (int)(seed % RANKS));
    }
}

/* Pieces around the sizes of tiles, which dropout's groups of eight do not divide. */
CPU_CLAIM(attention_ring, long_sequences_equal_the_tiled_path)
{
    static const int64_t lengths[] = {130, 257, 300, 511, 600, 1030};
    const int variants = test_long() ? 400 : test_some(40);
    for (uint64_t seed = 0; seed < (uint64_t)variants; seed++) {
        sb_random r = sb_random_new(seed, SB_STREAM_USER + 1);
        struct variant c = variant_draw(seed);
        c.Lq = lengths[sb_random_below(&r, 6)];
        c.Lk = lengths[sb_random_below(&r, 6)];
        c.D = 1 + sb_random_below(&r, 64);
        c.dropout = seed % 2 ? 0.3 : 0;
        c.scale = c.scale ? 1.3 / sqrt((double)c.D) : 0;
        expect_same(&c, 1 + (int)(seed % RANKS));
    }
}
