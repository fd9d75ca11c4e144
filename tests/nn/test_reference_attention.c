/* Attention agrees with PyTorch's in value and gradients, by each algorithm:
   tests/golden/references/attention.py has the same cases, with inputs (batch, heads, length, size)
   unless said otherwise. */
#include "tests/support/reference.h"

static sb_attention_algorithm algorithm; /* of the cases below */

#define OPTIONS(...) (&(sb_attention_options){.algorithm = algorithm, __VA_ARGS__})
#define ATTEND(...)                                                                                \
    sb_attention(x[0], x[1], x[2], OPTIONS(.layout = SB_LAYOUT_HEADS_FIRST, __VA_ARGS__))

FUNCTION(plain, ATTEND(.mask = NULL))
FUNCTION(length_first, sb_attention(x[0], x[1], x[2], OPTIONS(.layout = SB_LAYOUT_LENGTH_FIRST)))
FUNCTION(scale, ATTEND(.scale = 0.3))
FUNCTION(temperature, ATTEND(.temperature = 1.7)) /* D is 4, so the scale 1/2 */
FUNCTION(causal, ATTEND(.mask = sb_mask_causal()))
FUNCTION(causal_last, ATTEND(.mask = sb_mask_causal_last()))
FUNCTION(window, ATTEND(.mask = sb_mask_window(1, 3)))
FUNCTION(lengths, ATTEND(.mask = sb_mask_lengths(x[3])))
FUNCTION(lengths_and_causal, ATTEND(.mask = sb_mask_and(sb_mask_lengths(x[3]), sb_mask_causal())))
FUNCTION(allowed, ATTEND(.mask = sb_mask_allow(x[3])))
FUNCTION(blocked, ATTEND(.mask = sb_mask_block(x[3])))
FUNCTION(bias, ATTEND(.bias = x[3]))
FUNCTION(bias_and_causal, ATTEND(.bias = x[3], .mask = sb_mask_causal()))
FUNCTION(log_temperature, ATTEND(.log_temperature = x[3]))
FUNCTION(balanced, ATTEND(.score = SB_SCORE_BALANCED))
FUNCTION(cosine, ATTEND(.score = SB_SCORE_COSINE))
FUNCTION(cosine_scale, ATTEND(.score = SB_SCORE_COSINE, .scale = 8))
FUNCTION(tiles, ATTEND(.scale = 0.8, .bias = x[3]))

/* The weights of x[0] .. x[2]. Tiles recompute them without a gradient, so that of stored weights
   is used. */
static sb_tensor *weights_of(sb_tensor *const x[], sb_layout layout)
{
    sb_tensor *found = NULL;
    sb_attention_options o = {.layout = layout, .mask = sb_mask_causal(), .weights = &found};
    if (!sb_attention(x[0], x[1], x[2], &o) || algorithm != SB_ATTENTION_TILED)
        return found;
    o.weights = NULL;
    o.algorithm = SB_ATTENTION_TILED;
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    sb_tensor *again = sb_attention_weights(y, 0, sb_tensor_dim(found, 2));
    return sb_add(found, sb_detach(sb_subtract(again, found)));
}

FUNCTION(weights, weights_of(x, SB_LAYOUT_HEADS_FIRST))

static void compare_attention(void)
{
    static const struct reference_case cases[] = {CASE(plain),
                                                  {"one_head", length_first},
                                                  CASE(length_first),
                                                  {"long", plain},
                                                  CASE(scale),
                                                  CASE(temperature),
                                                  {"groups", plain},
                                                  {"one_group", causal},
                                                  CASE(causal),
                                                  CASE(causal_last),
                                                  CASE(window),
                                                  CASE(lengths),
                                                  CASE(lengths_and_causal),
                                                  CASE(allowed),
                                                  CASE(blocked),
                                                  CASE(bias),
                                                  {"bias_broadcast", bias},
                                                  CASE(bias_and_causal),
                                                  CASE(log_temperature),
                                                  {"log_temperatures", log_temperature},
                                                  CASE(balanced),
                                                  CASE(cosine),
                                                  CASE(cosine_scale),
                                                  CASE(weights),
                                                  {"allowed_pairs", allowed},
                                                  {"allowed_heads", allowed},
                                                  {"bias_of_keys", bias},
                                                  {"causal_tall", causal},
                                                  CASE(tiles),
                                                  {"tiles_causal", causal}};
    COMPARE("attention", "attention", cases);
}

TEST(reference_attention, composed_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_COMPOSED;
    compare_attention();
}

TEST(reference_attention, tiled_attention_is_as_in_pytorch)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    algorithm = SB_ATTENTION_TILED;
    compare_attention();
}

/* torch.nn.MultiheadAttention: two heads of two, made of linear layers and sb_attention, since its
   further options are not among those of sb_multi_head_attention. Inputs are (batch, length,
   width). */
enum { B = 2, H = 2, D = 2, C = H * D };

static sb_tensor *heads(sb_tensor *x)
{
    return sb_reshape(x, SB_SHAPE(B, -1, H, D));
}

/* The projection of queries, keys or values (0, 1 or 2), which share a matrix and a bias. */
static sb_tensor *project(sb_tensor *x, sb_tensor *weight, sb_tensor *bias, int which)
{
    return sb_linear(x, sb_slice(weight, 0, which * C, C), sb_slice(bias, 0, which * C, C));
}

/* The heads joined again, and the last projection. */
static sb_tensor *output(sb_tensor *y, sb_tensor *weight, sb_tensor *bias)
{
    return sb_linear(sb_reshape(y, SB_SHAPE(B, -1, C)), weight, bias);
}

/* Attention of x to a memory, with the weight and bias of all projections, and of the last. */
static sb_tensor *multi_head(sb_tensor *x, sb_tensor *memory, sb_tensor *const w[4],
                             const sb_attention_options *options)
{
    sb_tensor *q = heads(project(x, w[0], w[1], 0)), *k = heads(project(memory, w[0], w[1], 1));
    sb_tensor *v = heads(project(memory, w[0], w[1], 2));
    return output(sb_attention(q, k, v, options), w[2], w[3]);
}

/* Pairs blocked for each head, and padding. */
static sb_tensor *masks(sb_tensor *const x[])
{
    sb_mask *mask = sb_mask_and(sb_mask_block(x[2]), sb_mask_lengths(x[3]));
    return multi_head(x[0], x[1], x + 4, OPTIONS(.mask = mask));
}

/* The same as additive biases: one for each head's pairs, and one for keys (B, Lk). */
static sb_tensor *biases(sb_tensor *const x[])
{
    sb_tensor *bias = sb_add(x[2], sb_reshape(x[3], SB_SHAPE(B, 1, 1, -1)));
    return multi_head(x[0], x[1], x + 4, OPTIONS(.bias = bias));
}

/* Queries, keys and values of different sizes, projections without bias. */
static sb_tensor *sizes(sb_tensor *const x[])
{
    sb_tensor *q = heads(sb_linear(x[0], x[3], NULL)), *k = heads(sb_linear(x[1], x[4], NULL));
    sb_tensor *v = heads(sb_linear(x[2], x[5], NULL));
    return output(sb_attention(q, k, v, OPTIONS(.mask = NULL)), x[6], NULL);
}

/* A learned row, the same in each sequence, and a row of zeros follow the keys (or values). */
static sb_tensor *with_added_rows(sb_tensor *x, sb_tensor *row)
{
    row = sb_expand(row, SB_SHAPE(B, 1, C));
    return sb_concatenate((sb_tensor *[]){x, row, sb_scale(row, 0)}, 3, 1);
}

static sb_tensor *added_keys(sb_tensor *const x[])
{
    sb_tensor *k = with_added_rows(project(x[1], x[2], x[3], 1), x[4]);
    sb_tensor *v = with_added_rows(project(x[1], x[2], x[3], 2), x[5]);
    sb_tensor *q = heads(project(x[0], x[2], x[3], 0));
    return output(sb_attention(q, heads(k), heads(v), OPTIONS(.mask = NULL)), x[6], x[7]);
}

/* The mean of the heads' weights; they do not depend on the values. */
static sb_tensor *average_weights(sb_tensor *const x[])
{
    sb_tensor *q = heads(project(x[0], x[1], x[2], 0)), *k = heads(project(x[0], x[1], x[2], 1));
    return sb_mean(weights_of((sb_tensor *[]){q, k, k}, SB_LAYOUT_LENGTH_FIRST), 1, false);
}

static void compare_multi_head(void)
{
    static const struct reference_case cases[] = {CASE(masks), CASE(biases), CASE(sizes),
                                                  CASE(added_keys), CASE(average_weights)};
    COMPARE("attention", "multi_head", cases);
}

TEST(reference_attention, composed_multi_head_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_COMPOSED;
    compare_multi_head();
}

TEST(reference_attention, tiled_multi_head_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_TILED;
    compare_multi_head();
}
