/* Other methods that attention contains: messages on a graph, an associative memory, kernel
   regression, and attention with sinks. */
#include "tests/support/test.h"

/* Independent draws of mean 0 and variance 1, which require a gradient; the tape owns them. */
static sb_tensor *normal(uint64_t seed, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    sb_tensor *t = sb_tape_own(sb_tensor_zeros(SB_F64, rank, dim));
    for (int64_t i = 0; i < sb_tensor_size(t); i++)
        sb_tensor_set(t, i, sb_random_normal(&random));
    return sb_tensor_requires_grad(t);
}

/* What node i of a graph receives from its neighbours: their values, each in proportion to
   exp(x_i . x_j); 0 without neighbours. */
static void pass_messages(int64_t N, int64_t D, const sb_tensor *edge, const sb_tensor *x,
                          const sb_tensor *v, int64_t i, double *received)
{
    double total = 0;
    memset(received, 0, (size_t)D * sizeof *received);
    for (int64_t j = 0; j < N; j++) {
        double message = 0;
        for (int64_t c = 0; c < D; c++)
            message += sb_tensor_get(x, i * D + c) * sb_tensor_get(x, j * D + c);
        double weight = sb_tensor_get(edge, i * N + j) ? exp(message) : 0;
        total += weight;
        for (int64_t c = 0; c < D; c++)
            received[c] += weight * sb_tensor_get(v, j * D + c);
    }
    for (int64_t c = 0; c < D && total > 0; c++)
        received[c] /= total;
}

/* Node 3 has no neighbours. */
TEST(attention_relatives, a_mask_that_is_an_adjacency_matrix_gives_message_passing)
{
    enum { N = 40, D = 3 };
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_random random = sb_random_new(8, SB_STREAM_USER);
        TAPE(SB_NO_RECORD);
        sb_tensor *edge = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(N, N)));
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < i; j++) {
                bool joined = i != 3 && j != 3 && sb_random_uniform(&random) < 0.15;
                sb_tensor_set(edge, i * N + j, joined);
                sb_tensor_set(edge, j * N + i, joined);
            }
        sb_tensor *x = normal(1, SB_SHAPE(N, D)), *v = normal(2, SB_SHAPE(N, D));
        sb_attention_options o = {.algorithm = a, .mask = sb_mask_allow(edge), .scale = 1};
        sb_tensor *y = sb_attention(x, x, v, &o);
        for (int64_t i = 0; i < N; i++) {
            double received[D];
            pass_messages(N, D, edge, x, v, i, received);
            for (int64_t c = 0; c < D; c++)
                cr_assert(fabs(sb_tensor_get(y, i * D + c) - received[c]) < 1e-14, "node %d",
                          (int)i);
        }
    }
}

/* Recall of N stored patterns of length 1 from cues with noise of length about 1/2: the root mean
   square error over all patterns; for temperature 0 that of the cue itself. */
static double recall_error(double temperature, sb_attention_algorithm algorithm)
{
    enum { N = 100, D = 64 };
    TAPE(SB_NO_RECORD);
    sb_tensor *stored = sb_l2_normalize(normal(31, SB_SHAPE(N, D)));
    sb_tensor *cue = sb_add(stored, sb_scale(normal(32, SB_SHAPE(N, D)), 0.5 / 8));
    sb_attention_options o = {.algorithm = algorithm, .scale = 1, .temperature = temperature};
    sb_tensor *recalled = temperature ? sb_attention(cue, stored, stored, &o) : cue;
    sb_tensor *error = MUST(sb_mean_squared_error(recalled, stored, SB_REDUCE_SUM));
    double result = sqrt(sb_tensor_value(error) / N);
    return result;
}

/* The average of all patterns has an error of sqrt(1 - 1/N), about 1. */
TEST(attention_relatives, a_low_temperature_recalls_a_pattern_and_a_high_one_averages)
{
    const double temperatures[] = {0.03, 0.1, 0.2, 0.3, 1, 10};
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        double error[6];
        for (int i = 0; i < 6; i++) {
            error[i] = recall_error(temperatures[i], a);
            cr_expect(i == 0 || error[i] > error[i - 1], "%g at temperature %g, %g before it",
                      error[i], temperatures[i], error[i - 1]);
        }
        cr_expect(error[0] < 1e-6 && recall_error(0, a) > 0.4, "%g", error[0]);
        cr_expect(error[2] > 0.2 && error[2] < 0.6, "between, at 0.2: %g", error[2]);
        cr_expect(fabs(error[5] - sqrt(0.99)) < 0.02, "%g", error[5]);
    }
}

/* The regression at x, from N points: sum of K(x - x_i) v_i over sum of K(x - x_i), with the
   Gaussian kernel of width h (Nadaraya 1964, Watson 1964). */
static double regression(int64_t N, int64_t D, const sb_tensor *points, const sb_tensor *v,
                         const sb_tensor *x, int64_t i, double h)
{
    double above = 0, below = 0;
    for (int64_t j = 0; j < N; j++) {
        double square = 0;
        for (int64_t c = 0; c < D; c++)
            square += pow(sb_tensor_get(x, i * D + c) - sb_tensor_get(points, j * D + c), 2);
        double kernel = exp(-square / (2 * h * h));
        above += kernel * sb_tensor_get(v, j);
        below += kernel;
    }
    return above / below;
}

/* -(x - k)^2 / 2h^2 = x.k / h^2 - k^2 / 2h^2 - x^2 / 2h^2: a scale, a bias for each key, and a
   term that is the same for all keys of a query, which cancels. */
TEST(attention_relatives, nadaraya_watson_regression_is_attention)
{
    enum { N = 300, M = 50, D = 2 };
    const double h = 0.4;
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        TAPE(SB_NO_RECORD);
        sb_tensor *points = normal(1, SB_SHAPE(N, D)), *v = normal(2, SB_SHAPE(N, 1));
        sb_tensor *x = normal(3, SB_SHAPE(M, D)), *squares = sb_multiply(points, points);
        sb_attention_options o = {.algorithm = a, .scale = 1 / (h * h)};
        o.bias = sb_scale(sb_sum(squares, -1, false), -1 / (2 * h * h));
        sb_tensor *y = MUST(sb_attention(x, points, v, &o));
        for (int64_t i = 0; i < M; i++)
            cr_assert(fabs(sb_tensor_get(y, i) - regression(N, D, points, v, x, i, h)) < 1e-12);
    }
}

enum { SINK_L = 70, SINK_H = 2, SINK_D = 4 };

static sb_tensor *zeros(int rank, const int64_t *dim)
{
    return sb_tape_own(sb_tensor_zeros(SB_F64, rank, dim));
}

/* x (2, L, H, D) after a first row of zeros. */
static sb_tensor *after_zeros(sb_tensor *x)
{
    sb_tensor *both[] = {zeros(SB_SHAPE(2, 1, SINK_H, SINK_D)), x};
    return sb_concatenate(both, 2, 1);
}

/* Attention of q, k, v with the sinks x[3] (H) as biases of a first key. */
static sb_tensor *attend_to_sinks(sb_tensor *const x[4], sb_attention_algorithm algorithm)
{
    sb_tensor *bias[] = {sb_reshape(x[3], SB_SHAPE(SINK_H, 1, 1)),
                         zeros(SB_SHAPE(SINK_H, 1, SINK_L))};
    const sb_attention_options o = {
        .mask = sb_mask_causal_last(), .bias = sb_concatenate(bias, 2, 2), .algorithm = algorithm};
    return sb_attention(x[0], after_zeros(x[1]), after_zeros(x[2]), &o);
}

/* The same step by step: the logits are a last column of the scores, which goes after the softmax.
 */
static sb_tensor *sinks_by_steps(sb_tensor *const x[4])
{
    const int order[] = {0, 2, 1, 3};
    sb_tensor *part[3], *later = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(SINK_L, SINK_L)));
    for (int i = 0; i < 3; i++)
        part[i] = sb_permute(x[i], 4, order);
    for (int64_t i = 0; i < SINK_L * SINK_L; i++)
        sb_tensor_set(later, i, i % SINK_L > i / SINK_L);
    sb_tensor *scores = sb_scale(sb_matmul_nt(part[0], part[1]), 1 / sqrt((double)SINK_D));
    sb_tensor *none = sb_tape_own(sb_tensor_scalar(SB_F64, -1e9));
    sb_tensor *logits =
        sb_expand(sb_reshape(x[3], SB_SHAPE(1, SINK_H, 1, 1)), SB_SHAPE(2, SINK_H, SINK_L, 1));
    sb_tensor *all[] = {sb_where(later, none, scores), logits};
    sb_tensor *weights = sb_slice(sb_softmax(sb_concatenate(all, 2, 3)), 3, 0, SINK_L);
    return sb_permute(sb_matmul(weights, part[2]), 4, order);
}

TEST(attention_relatives, a_first_key_of_zeros_with_a_learned_bias_is_an_attention_sink)
{
    const int64_t dim[] = {2, SINK_L, SINK_H, SINK_D};
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        sb_tensor *x[4], *expected[4];
        for (int i = 0; i < 4; i++)
            x[i] = i < 3 ? test_leaf(SB_F64, 1 + (uint64_t)i, 4, dim)
                         : test_leaf(SB_F64, 4, SB_SHAPE(SINK_H));
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *y = sb_keep(sinks_by_steps(x)), *dy = test_leaf(SB_F64, 5, 4, dim);
        cr_expect(test_relative(attend_to_sinks(x, a), y) < 1e-14);
        MUST(sb_backward_from(y, dy));
        cr_expect(sb_tape_end(&tape), "%s", sb_error());
        for (int i = 0; i < 4; i++) {
            expected[i] = KEPT(sb_tensor_to(sb_tensor_grad(x[i]), sb_tensor_device(x[i])));
            sb_tensor_clear_grad(x[i]);
        }
        sb_tape_begin(&tape, SB_RECORD);
        dy = test_leaf(SB_F64, 5, 4, dim);
        MUST(sb_backward_from(attend_to_sinks(x, a), dy));
        for (int i = 0; i < 4; i++)
            cr_expect(test_relative(sb_tensor_grad(x[i]), expected[i]) < 1e-13, "gradient %d", i);
        cr_expect(sb_tape_end(&tape), "%s", sb_error());
    }
}
