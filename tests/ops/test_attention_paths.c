/* Path lengths of attention, compared with recurrence and convolution; rank collapse with depth;
   and computation in parts. */
#include "autograd/node.h"
#include "tests/support/test.h"

enum { MOST = 64 };

/* Normal numbers of this deviation that require a gradient; the tape owns them. */
static sb_tensor *normal(uint64_t seed, double deviation, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    const int64_t n = shape_size(rank, dim);
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = deviation * sb_random_normal(&random);
    sb_tensor *t = sb_tape_own(sb_tensor_from_doubles(SB_F64, rank, dim, values));
    return sb_tensor_requires_grad(t);
}

/* The distance of a tensor from the end of the path. */
struct distance {
    const sb_tensor *of;
    int edges;
};

static int *distance(struct distance known[], int *n, const sb_tensor *of)
{
    for (int i = 0; i < *n; i++)
        if (known[i].of == of)
            return &known[i].edges;
    cr_assert(*n < 2000);
    known[*n] = (struct distance){of, 1000000};
    return &known[(*n)++].edges;
}

/* The number of edges of the tape, each from an input of an operation to its output, on the
   shortest path between two tensors. An operation lies after its inputs on the tape, so one pass
   finds every distance. */
static int path_length(const sb_tensor *from, const sb_tensor *to)
{
    struct distance known[2000];
    int n = 0;
    *distance(known, &n, to) = 0;
    for (sb_node *node = tape_open()->last; node; node = node->previous)
        for (int i = 0; i < node->inputs && node->made; i++) {
            int edges = *distance(known, &n, node->out[0]) + 1;
            int *before = distance(known, &n, node->in[i]);
            *before = edges < *before ? edges : *before;
        }
    return *distance(known, &n, from);
}

/* Edges from the first position to the output at the last, through stack, attention and slice. */
static int attention_path(int64_t L, sb_attention_algorithm algorithm)
{
    enum { D = 4 };
    sb_attention_options o = {.algorithm = algorithm};
    sb_tensor *x[MOST];
    TAPE(SB_RECORD);
    for (int64_t t = 0; t < L; t++)
        x[t] = normal((uint64_t)t, 1, SB_SHAPE(D));
    sb_tensor *all = sb_stack(x, (int)L, 0);
    sb_tensor *last = sb_slice(sb_attention(all, all, all, &o), 0, L - 1, 1);
    int edges = path_length(x[0], last);
    MUST(sb_backward(sb_sum(last, SB_ALL, false)));
    cr_expect(sb_tensor_get(sb_tensor_grad(x[0]), 0) != 0);
    return edges;
}

TEST(attention_paths, the_path_length_does_not_depend_on_the_sequence_length)
{
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++)
        for (int64_t L = 1; L <= MOST; L *= 4)
            cr_expect(attention_path(L, a) == 3, "%d at length %d", attention_path(L, a), (int)L);
}

/* Edges from x_1 to h_L, where h_t = tanh(W h_{t-1} + U x_t). */
static int recurrent_path(int64_t L)
{
    enum { D = 4 };
    sb_tensor *first = NULL, *h = NULL;
    TAPE(SB_RECORD);
    sb_tensor *W = normal(1, 0.5, SB_SHAPE(D, D)), *U = normal(2, 0.5, SB_SHAPE(D, D));
    h = normal(3, 1, SB_SHAPE(D));
    for (int64_t t = 0; t < L; t++) {
        sb_tensor *x = normal((uint64_t)(4 + t), 1, SB_SHAPE(D));
        sb_tensor *old = sb_linear(h, W, NULL), *new = sb_linear(x, U, NULL);
        h = sb_tanh(sb_add(old, new));
        first = first ? first : x;
    }
    return path_length(first, h);
}

/* Each step adds linear, add and tanh. */
TEST(attention_paths, the_path_length_of_a_recurrence_is_proportional_to_the_length)
{
    for (int64_t L = 1; L <= MOST; L *= 4)
        cr_expect(recurrent_path(L) == 3 * L, "%d at length %d", recurrent_path(L), (int)L);
}

/* y_t = tanh(sum over i < width of W_i x_{t-i}), with zeros before the first position. */
static sb_tensor *convolve(sb_tensor *x, int64_t width, uint64_t seed)
{
    int64_t L = sb_tensor_dim(x, 0), C = sb_tensor_dim(x, 1);
    sb_tensor *zeros = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(width - 1, C))), *y = NULL;
    sb_tensor *padded = sb_concatenate((sb_tensor *[]){zeros, x}, 2, 0);
    for (int64_t i = 0; i < width; i++) {
        sb_tensor *W = normal(seed + (uint64_t)i, 0.5, SB_SHAPE(C, C));
        sb_tensor *part = sb_linear(sb_slice(padded, 0, width - 1 - i, L), W, NULL);
        y = y ? sb_add(y, part) : part;
    }
    return sb_tanh(y);
}

/* How many positions reach the last row of y: they have a gradient, and are the last ones of x. */
static int64_t positions_reached(sb_tensor *x, sb_tensor *y)
{
    int64_t L = sb_tensor_dim(x, 0), C = sb_tensor_dim(x, 1), reached = 0;
    MUST(sb_backward(sb_sum(sb_slice(y, 0, L - 1, 1), SB_ALL, false)));
    for (int64_t t = 0; t < L; t++) {
        bool reaches = false;
        for (int64_t c = 0; c < C; c++)
            reaches = reaches || sb_tensor_get(sb_tensor_grad(x), t * C + c) != 0;
        cr_expect(reaches || !reached, "position %d is skipped", (int)t);
        reached += reaches;
    }
    return reached;
}

TEST(attention_paths, T_causal_convolutions_of_width_w_reach_1_plus_T_times_w_minus_1_positions)
{
    for (int64_t width = 1; width <= 5; width++)
        for (int64_t depth = 1; depth <= 6; depth++) {
            TAPE(SB_RECORD);
            sb_tensor *x = normal(1, 1, SB_SHAPE(40, 3)), *y = x;
            for (int64_t layer = 0; layer < depth; layer++)
                y = convolve(y, width, (uint64_t)(10 + 10 * layer));
            int64_t reached = positions_reached(x, y);
            cr_expect(reached == 1 + depth * (width - 1), "width %d, depth %d: %d", (int)width,
                      (int)depth, (int)reached);
        }
}

TEST(attention_paths, one_causal_attention_reaches_every_position)
{
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        TAPE(SB_RECORD);
        sb_attention_options o = {.algorithm = a, .mask = sb_mask_causal()};
        sb_tensor *x = normal(1, 1, SB_SHAPE(300, 3));
        cr_expect(positions_reached(x, sb_attention(x, x, x, &o)) == 300);
    }
}

/* How different the rows of x are: their distance from their mean, relative to their norm. */
static double diversity(sb_tensor *x)
{
    sb_tensor *apart = sb_subtract(x, sb_mean(x, 0, true));
    sb_tensor *above = sb_sum(sb_multiply(apart, apart), SB_ALL, false);
    sb_tensor *below = sb_sum(sb_multiply(x, x), SB_ALL, false);
    MUST(above && below);
    return sqrt(sb_tensor_value(above) / sb_tensor_value(below));
}

/* The diversity after each of `depth` layers of self-attention. */
static void stack_layers(sb_attention_algorithm algorithm, bool residual, int depth, double after[])
{
    enum { L = 32, D = 32 };
    sb_attention_options o = {.algorithm = algorithm};
    TAPE(SB_NO_RECORD);
    sb_tensor *x = normal(1, 1, SB_SHAPE(L, D));
    for (int layer = 0; layer < depth; layer++) {
        sb_tensor *part[3];
        for (int i = 0; i < 3; i++) {
            sb_tensor *W =
                normal((uint64_t)(10 + 3 * layer + i), 1 / sqrt((double)D), SB_SHAPE(D, D));
            part[i] = sb_linear(x, W, NULL);
        }
        sb_tensor *y = sb_attention(part[0], part[1], part[2], &o);
        x = residual ? sb_add(x, y) : y;
        after[layer] = diversity(x);
    }
}

/* Source: Dong, Cordonnier and Loukas 2021, "Attention is not all you need: pure attention loses
   rank doubly exponentially with depth". */
TEST(attention_paths, rows_collapse_with_depth_without_residual_connections)
{
    enum { DEPTH = 4 };
    for (sb_attention_algorithm a = SB_ATTENTION_COMPOSED; a <= SB_ATTENTION_TILED; a++) {
        double pure[DEPTH], residual[DEPTH];
        stack_layers(a, false, DEPTH, pure);
        stack_layers(a, true, DEPTH, residual);
        for (int i = 1; i < DEPTH; i++)
            cr_expect(pure[i] < pure[i - 1] / 10, "layer %d: %g after %g", i, pure[i], pure[i - 1]);
        cr_expect(pure[DEPTH - 1] < 1e-12, "%g", pure[DEPTH - 1]);
        cr_expect(residual[DEPTH - 1] > 0.6, "%g", residual[DEPTH - 1]);
    }
}

enum { B = 2, L = 70, H = 2, D = 8, PARTS = 4 };

/* y and the gradients of q, k and v, for blocks of `block` queries; to be released. A causal block
   needs only the keys up to its own last position. */
static void run_blocks(sb_tensor *const x[3], sb_tensor *dy, int64_t block, bool causal,
                       sb_attention_algorithm algorithm, sb_tensor *result[PARTS])
{
    sb_tensor *parts[L];
    int n = 0;
    TAPE(SB_RECORD);
    for (int64_t start = 0; start < L; start += block) {
        int64_t end = start + block < L ? start + block : L;
        sb_tensor *q = sb_slice(x[0], 1, start, end - start);
        sb_tensor *k = causal ? sb_slice(x[1], 1, 0, end) : x[1];
        sb_tensor *v = causal ? sb_slice(x[2], 1, 0, end) : x[2];
        sb_attention_options o = {.algorithm = algorithm};
        o.mask = causal ? sb_mask_causal_last() : NULL;
        parts[n++] = sb_attention(q, k, v, &o);
    }
    sb_tensor *y = sb_keep(sb_concatenate(parts, n, 1));
    MUST(sb_backward_from(y, dy));
    result[0] = retained(y);
    for (int i = 0; i < 3; i++) {
        result[1 + i] = retained(sb_tensor_grad(x[i]));
        sb_tensor_clear_grad(x[i]);
    }
}

/* On the composed path y and dq have the same bits, since each query is computed alone; dk and dv
   are sums over queries, which blocks add in another order. */
TEST(attention_paths, blocks_of_queries_give_what_all_queries_give, MANY_CASES)
{
    static const int64_t blocks[] = {1, 24, 64};
    sb_tensor *x[3], *dy = test_leaf(SB_F64, 4, SB_SHAPE(B, L, H, D));
    for (int i = 0; i < 3; i++)
        x[i] = test_leaf(SB_F64, (uint64_t)i, SB_SHAPE(B, L, H, D));
    for (int run = 0; run < 12; run++) {
        sb_attention_algorithm algorithm = run / 6 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
        sb_tensor *whole[PARTS], *blockwise[PARTS];
        run_blocks(x, dy, L, run / 3 % 2, SB_ATTENTION_COMPOSED, whole);
        run_blocks(x, dy, blocks[run % 3], run / 3 % 2, algorithm, blockwise);
        for (int i = 0; i < PARTS; i++) {
            double error = test_relative(blockwise[i], whole[i]);
            bool same_bits = algorithm == SB_ATTENTION_COMPOSED && i < 2;
            cr_expect(error <= (same_bits ? 0 : 2e-15), "run %d, result %d differs by %g", run, i,
                      error);
        }
    }
}
