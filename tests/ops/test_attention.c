/* Attention by its formula: values, shapes and layouts, positions, and short sequences. */
#include "tests/support/compare.h"
#include "tests/support/variant.h"
#include <stdio.h>

/* Attention against hand-worked numbers, and the composition of simple operations. */

/* q = (2, 0) and the keys (0, 1), (ln 2, 5), (ln 4, -3) has the scores 0, ln 4, ln 16 over sqrt 2,
   which a scale of 1/2 makes 0, ln 2, ln 4: the weights are (1, 2, 4) / 7. */
TEST(attention, one_query_gives_the_hand_worked_average)
{
    const double ln2 = 0.6931471805599453;
    TAPE(SB_RECORD);
    sb_tensor *q = owned(SB_F64, SB_SHAPE(1, 2), (double[]){2, 0});
    sb_tensor *k = owned(SB_F64, SB_SHAPE(3, 2), (double[]){0, 1, ln2, 5, 2 * ln2, -3});
    sb_tensor *v = owned(SB_F64, SB_SHAPE(3, 1), (double[]){7, 14, 21});
    sb_tensor *weights;
    sb_attention_options o = {.scale = 0.5, .weights = &weights};
    sb_tensor *y = MUST(sb_attention(q, k, v, &o));
    cr_expect(sb_tensor_rank(y) == 2 && sb_tensor_dim(y, 0) == 1 && sb_tensor_dim(y, 1) == 1);
    cr_expect(fabs(sb_tensor_get(y, 0) - (7 + 2 * 14 + 4 * 21) / 7.0) < 1e-14);
    for (int j = 0; j < 3; j++)
        cr_expect(fabs(sb_tensor_get(weights, j) - (1 << j) / 7.0) < 1e-15);
}

/* One key takes all the weight: y = v, dv = dy, and the scores do not matter. */
TEST(attention, a_single_key_gives_its_value)
{
    sb_tensor *q = test_leaf(SB_F64, 1, SB_SHAPE(2, 4)), *k = test_leaf(SB_F64, 2, SB_SHAPE(1, 4));
    sb_tensor *v = test_leaf(SB_F64, 3, SB_SHAPE(1, 3)), *dy = test_leaf(SB_F64, 4, SB_SHAPE(2, 3));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_keep(sb_attention(q, k, v, NULL));
    MUST(sb_backward_from(y, dy));
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(y, i) == sb_tensor_get(v, i % 3));
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(v), i) - sb_tensor_get(dy, i) -
                       sb_tensor_get(dy, 3 + i)) < 1e-15);
    for (int i = 0; i < 4; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(k), i) == 0 &&
                  sb_tensor_get(sb_tensor_grad(q), i) == 0);
}

TEST(attention, many_options_equal_the_composition_of_simple_operations)
{
    for (uint64_t seed = 0; seed < (uint64_t)(test_long() ? 4000 : test_some(250)); seed++) {
        struct variant c = variant_draw(seed);
        variant_expect_same(&c, SB_F64, COMPOSED, OPERATIONS, 1e-12);
    }
}

static sb_tensor *checked(void *variant, sb_tensor *const x[])
{
    const struct variant *c = variant;
    sb_tensor *all[VARIANT_INPUTS] = {x[0], x[1], x[2]}, *weights;
    int n = 3;
    if (c->bias)
        all[3] = x[n++];
    if (c->temperature >= TEMPERATURE_ONE)
        all[4] = x[n];
    return variant_forward(c, all, COMPOSED, &weights);
}

TEST(attention, gradients_agree_with_differences)
{
    for (uint64_t seed = 0; seed < (uint64_t)(test_long() ? 500 : test_some(40)); seed++) {
        struct variant c = variant_draw(seed);
        sb_tensor *x[VARIANT_INPUTS], *given[VARIANT_INPUTS];
        variant_inputs(&c, SB_F64, x);
        int n = 0;
        for (int i = 0; i < VARIANT_INPUTS; i++)
            if (x[i])
                given[n++] = x[i];
        sb_random random = sb_random_new(seed, SB_STREAM_TRAIN);
        sb_gradcheck_options options = {.random = &random};
        cr_expect(sb_gradcheck(checked, &c, given, n, &options, NULL), "variant %d: %s", (int)seed,
                  sb_error());
    }
}

/* Lengths around a block of queries and a chunk of keys. */
TEST(attention, long_rows_equal_the_composition_of_simple_operations, MANY_CASES)
{
    sb_set_threads(1);
    const int64_t lengths[][2] = {{63, 64},   {64, 65}, {65, 63}, {130, 10},
                                  {130, 136}, {3, 256}, {3, 520}};
    for (int i = 0; i < 7; i++)
        for (int mask = 0; mask < MASK_KINDS; mask += test_slow() ? 3 : 1) {
            struct variant c = {.B = 1, .H = 2, .G = 1, .D = 3, .Dv = 2, .mask = mask, .seed = 9};
            c.Lq = lengths[i][0];
            c.Lk = lengths[i][1];
            c.bias = mask % 2 ? BIAS_HEADS : BIAS_NONE;
            c.dropout = c.Lk % 8 == 0 ? 0.2 : 0;
            variant_expect_same(&c, SB_F64, COMPOSED, OPERATIONS, 1e-12);
        }
}

CPU_TEST(attention, each_set_of_kernels_computes_the_same)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (uint64_t seed = 0; seed < 40; seed++) {
            struct variant c = variant_draw(seed);
            variant_expect_same(&c, SB_F64, COMPOSED, OPERATIONS, 1e-12);
            variant_expect_same(&c, SB_F32, COMPOSED, OPERATIONS, 2e-5);
        }
}

static void run_threads(const struct variant *c, enum way way, int threads,
                        sb_tensor *result[RESULTS])
{
    sb_tensor *x[VARIANT_INPUTS];
    variant_inputs(c, SB_F32, x);
    cr_assert(sb_set_threads(threads));
    variant_run(c, x, way, true, result);
}

CPU_TEST(attention, any_number_of_threads_gives_the_same_bits)
{
    int usual = sb_threads();
    for (int run = 0; run < 2 * BIAS_KINDS; run++) {
        enum way way = run % 2 ? TILED : COMPOSED;
        int bias = run / 2;
        struct variant c = {.B = 3, .H = 4, .G = 2, .Lq = 70, .Lk = 40, .D = 8, .Dv = 8};
        if (way == TILED) /* several tasks for each head */
            c = (struct variant){.B = 1, .H = 2, .G = 1, .Lq = 270, .Lk = 800, .D = 8, .Dv = 8};
        c.bias = bias;
        c.dropout = 0.1;
        c.mask = bias % MASK_KINDS;
        sb_tensor *one[RESULTS], *many[RESULTS];
        run_threads(&c, way, 1, one);
        run_threads(&c, way, bias % 2 ? 2 : 5, many);
        for (int i = 0; i < RESULTS; i++) {
            cr_expect(!one[i] == !many[i]);
            if (one[i])
                cr_expect(test_same_bits(one[i], many[i]), "way %d, bias %d, result %d", (int)way,
                          bias, i);
        }
    }
    sb_set_threads(usual);
}

/* Row 1 of a padded batch of three has the same bits as alone. */
static void expect_padding_has_no_effect(int64_t L, int64_t padding, bool causal,
                                         sb_attention_algorithm algorithm)
{
    enum { B = 3, H = 2, D = 64 };
    int64_t Lp = L + padding, size = H * D;
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F32, (uint64_t)L, SB_SHAPE(B, Lp, H, D));
    const float *values = test_data(x);
    sb_tensor *alone =
        sb_tape_own(sb_tensor_from(SB_F32, SB_SHAPE(1, L, H, D), values + Lp * size));
    sb_tensor *lengths = owned(SB_I32, SB_SHAPE(B), (double[]){1, (double)L, (double)Lp});
    sb_tensor *length = owned(SB_I32, SB_SHAPE(1), (double[]){(double)L});
    sb_attention_options o = {.mask = sb_mask_lengths(lengths), .algorithm = algorithm};
    if (causal)
        o.mask = sb_mask_and(o.mask, sb_mask_causal());
    sb_tensor *y = sb_attention(x, x, x, &o);
    o.mask = causal ? sb_mask_causal() : sb_mask_lengths(length);
    sb_tensor *z = sb_attention(alone, alone, alone, &o);
    MUST(y && z);
    const float *bits = test_data(y);
    cr_expect(memcmp(bits + Lp * size, test_data(z), tensor_bytes(z)) == 0,
              "length %lld, padding %lld", (long long)L, (long long)padding);
}

TEST(attention, padding_does_not_change_the_bits_of_a_sequence, MANY_CASES)
{
    sb_set_threads(1); /* a second one would slow down many small calls */
    const int64_t step = test_brief() ? 12 : test_slow() ? 7 : 1;
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int64_t L = 1; L < 140; L += L < 40 ? step : test_brief() ? 31 : 13)
            for (int way = 0; way < 4; way++) {
                sb_attention_algorithm algorithm =
                    way / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
                expect_padding_has_no_effect(L, 8, way % 2, algorithm);
                expect_padding_has_no_effect(L, L == 1 ? 300 : 67, way % 2, algorithm);
            }
}

/* The gradient of the weights is do v', dropped like the weights; nothing else uses them. */
TEST(attention, weights_that_are_returned_have_the_right_gradient)
{
    for (int mask = 0; mask < MASK_KINDS; mask++) {
        struct variant c = {.B = 2, .H = 2, .G = 1, .Lq = 3, .Lk = 8, .D = 2, .Dv = 2};
        c.mask = mask;
        c.dropout = 0.4;
        sb_tensor *x[VARIANT_INPUTS], *weights, *kept[3], *grads[3];
        variant_inputs(&c, SB_F64, x);
        for (enum way way = COMPOSED; way <= OPERATIONS; way++) {
            sb_random random = sb_random_new(4, SB_STREAM_TRAIN);
            TAPE(SB_RECORD);
            sb_tape_random(&tape, &random);
            sb_tensor *y = variant_forward(&c, x, way, &weights);
            cr_assert(sb_keep(weights) && sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
            kept[way] = retained(weights);
            grads[way] = retained(sb_tensor_grad(weights));
        }
        for (enum way way = COMPOSED; way <= TILED; way++) {
            cr_expect(test_relative(kept[way], kept[OPERATIONS]) < 1e-14);
            for (int64_t i = 0; i < sb_tensor_size(kept[0]); i++) {
                bool blocked = sb_tensor_get(kept[OPERATIONS], i) == 0;
                double expected = blocked ? 0 : sb_tensor_get(grads[OPERATIONS], i);
                cr_expect(fabs(sb_tensor_get(grads[way], i) - expected) < 1e-13,
                          "mask %d, way %d: %g, not %g", mask, (int)way,
                          sb_tensor_get(grads[way], i), expected);
            }
        }
    }
}

/* On the CPU they are rounded copies. */
TEST(attention, weights_of_bf16_have_their_whole_gradient)
{
    double kept[2], read[2];
    for (int wide = 0; wide < 2; wide++) {
        TAPE(SB_RECORD);
        sb_tensor *x = test_leaf(wide ? SB_F32 : SB_BF16, 3, SB_SHAPE(1, 2, 3, 4)), *weights,
                  *y = sb_attention(x, x, x, &(sb_attention_options){.weights = &weights}),
                  *tiled = sb_attention(x, x, x,
                                        &(sb_attention_options){.algorithm = SB_ATTENTION_TILED}),
                  *rows = sb_attention_weights(tiled, 0, 2);
        MUST(sb_keep(weights) && rows && rows->dtype == x->dtype);
        read[wide] = sb_tensor_get(rows, 5);
        MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
        kept[wide] = sb_tensor_get(sb_tensor_grad(weights), 5);
    }
    cr_expect(fabs(kept[0] - kept[1]) < 0.02 * fabs(kept[1]), "%g, %g", kept[0], kept[1]);
    cr_expect(fabs(read[0] - read[1]) < 0.02, "%g, %g", read[0], read[1]);
}

/* A scale that is 0 in f32 weighs all kept keys alike. */
TEST(attention, a_scale_below_the_range_of_f32_gives_means)
{
    TAPE(SB_NO_RECORD);
    for (sb_attention_algorithm way = SB_ATTENTION_COMPOSED; way <= SB_ATTENTION_TILED; way++) {
        sb_tensor *x = owned(SB_F32, SB_SHAPE(3, 1), (double[]){1, 3, 5}),
                  *y =
                      sb_attention(x, x, x,
                                   &(sb_attention_options){
                                       .mask = sb_mask_causal(), .scale = 1e-50, .algorithm = way});
        expect_near_numbers(y, 1e-6, 3, (const double[]){1, 2, 3});
    }
}

/* Two equal calls draw different masks, and a call without dropout does not advance the stream. */
TEST(attention, dropout_uses_one_position_of_the_stream)
{
    sb_random random = sb_random_new(4, SB_STREAM_TRAIN);
    uint64_t begin = random.position;
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(9, 4));
    sb_attention_options o = {.dropout = 0.5};
    sb_tensor *y = sb_attention(x, x, x, &o), *z = sb_attention(x, x, x, &o);
    cr_expect(random.position == begin + 2 && test_relative(y, z) > 0.1);
    cr_expect(sb_attention(x, x, x, NULL) && random.position == begin + 2);
    sb_tape_random(&tape, NULL);
    cr_expect(test_relative(sb_attention(x, x, x, &o), sb_attention(x, x, x, NULL)) == 0);
}

TEST(attention, empty_queries_and_keys_are_allowed)
{
    TAPE(SB_RECORD);
    sb_tensor *none = test_leaf(SB_F32, 1, SB_SHAPE(2, 0, 3));
    sb_tensor *some = test_leaf(SB_F32, 1, SB_SHAPE(2, 4, 3));
    sb_tensor *y = MUST(sb_keep(sb_attention(some, none, none, NULL)));
    for (int i = 0; i < 24; i++)
        cr_expect(sb_tensor_get(y, i) == 0);
    sb_tensor *z = sb_attention(none, some, some, NULL);
    cr_expect(z && sb_tensor_size(z) == 0);
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    cr_expect(sb_tensor_get(sb_tensor_grad(some), 0) == 0);
}

static bool everything_composed(void *x_)
{
    sb_tensor *const *x = x_, *weights;
    sb_random random = sb_random_new(4, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.dropout = 0.5, .weights = &weights, .score = SB_SCORE_COSINE};
    o.bias = x[3];
    o.mask = sb_mask_and(sb_mask_causal(), sb_mask_window(1, 1));
    o.log_temperature = x[4];
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    if (y)
        sb_keep(weights);
    sb_backward(sb_sum(y, SB_ALL, false));
    bool ok = sb_tape_end(&tape);
    for (int i = 0; i < 5; i++)
        sb_tensor_clear_grad(x[i]);
    return ok;
}

static bool everything_tiled(void *x_)
{
    sb_tensor *const *x = x_;
    sb_random random = sb_random_new(4, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.dropout = 0.5, .algorithm = SB_ATTENTION_TILED, .bias = x[3]};
    o.mask = sb_mask_and(sb_mask_causal(), sb_mask_window(1, 1));
    o.log_temperature = x[4];
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o), *rows = sb_attention_weights(y, 1, 2);
    if (rows)
        sb_keep(rows);
    sb_backward(sb_sum(y, SB_ALL, false));
    bool ok = sb_tape_end(&tape);
    for (int i = 0; i < 5; i++)
        sb_tensor_clear_grad(x[i]);
    return ok;
}

TEST(attention, each_allocation_may_fail)
{
    sb_tensor *x[5];
    for (int i = 0; i < 3; i++)
        x[i] = test_leaf(SB_F64, 1, SB_SHAPE(1, 3, 2, 2));
    x[3] = test_leaf(SB_F64, 2, SB_SHAPE(2, 3, 1));
    x[4] = test_leaf(SB_F64, 3, SB_SHAPE(2));
    test_each_allocation_fails(everything_composed, x);
    test_each_allocation_fails(everything_tiled, x);
}

/* The shapes, layouts and options that attention accepts, and its messages for all others. */

#define LEAF(...) test_leaf(SB_F64, 1, SB_SHAPE(__VA_ARGS__))

TEST(attention_call, inputs_with_fewer_axes_have_one_head)
{
    TAPE(SB_RECORD);
    sb_tensor *q = LEAF(2, 3, 1, 4), *k = LEAF(2, 5, 1, 4), *v = LEAF(2, 5, 1, 2);
    sb_tensor *y = sb_attention(q, k, v, NULL);
    for (int heads_first = 0; heads_first < 2; heads_first++) {
        sb_attention_options o = {.layout =
                                      heads_first ? SB_LAYOUT_HEADS_FIRST : SB_LAYOUT_LENGTH_FIRST};
        sb_tensor *z = sb_attention(LEAF(2, 3, 4), LEAF(2, 5, 4), LEAF(2, 5, 2), &o);
        MUST(y && z);
        cr_expect(sb_tensor_rank(z) == 3);
        cr_expect(test_relative(sb_reshape(z, SB_SHAPE(2, 3, 1, 2)), y) == 0);
    }
    sb_tensor *z = sb_attention(LEAF(3, 4), LEAF(5, 4), LEAF(5, 2), NULL);
    cr_expect(sb_tensor_rank(z) == 2);
    cr_expect(test_relative(z, sb_reshape(sb_slice(y, 0, 0, 1), SB_SHAPE(3, 2))) == 0);
}

/* The layout only changes where rows are read and written. */
TEST(attention_call, heads_first_gives_the_same_bits)
{
    const int order[] = {0, 2, 1, 3};
    TAPE(SB_NO_RECORD);
    sb_tensor *q = LEAF(2, 3, 4, 5), *k = LEAF(2, 6, 2, 5), *v = LEAF(2, 6, 2, 3), *weights[2];
    sb_attention_options o = {.mask = sb_mask_causal_last(), .weights = &weights[0]};
    sb_tensor *y = sb_attention(q, k, v, &o);
    o.layout = SB_LAYOUT_HEADS_FIRST;
    o.weights = &weights[1];
    sb_tensor *z =
        sb_attention(sb_permute(q, 4, order), sb_permute(k, 4, order), sb_permute(v, 4, order), &o);
    MUST(y && z);
    cr_expect(test_relative(sb_permute(z, 4, order), y) == 0);
    cr_expect(test_relative(weights[0], weights[1]) == 0);
    cr_expect(sb_tensor_dim(weights[0], 1) == 4 && sb_tensor_dim(weights[0], 2) == 3);
}

/* Grouped heads are heads repeated. */
TEST(attention_call, a_group_of_query_heads_reads_the_same_keys)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *q = LEAF(1, 2, 4, 3), *k = LEAF(1, 5, 2, 3);
    sb_tensor *first = sb_slice(k, 2, 0, 1), *second = sb_slice(k, 2, 1, 1);
    sb_tensor *repeated = sb_concatenate((sb_tensor *[]){first, first, second, second}, 4, 2);
    sb_tensor *y = MUST(sb_attention(q, k, k, NULL));
    cr_expect(test_relative(y, sb_attention(q, repeated, repeated, NULL)) == 0);
}

/* ---- Attention against PyTorch ---- */

static sb_tensor *golden(const sb_safetensors *file, const char *name, const char *key)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, key);
    return sb_safetensors_find(file, full) < 0 ? NULL : sb_safetensors_tensor(file, full);
}

static void expect_golden(const sb_safetensors *file, const char *name, sb_tensor *t,
                          const char *key)
{
    sb_tensor *expected = KEPT(golden(file, name, key));
    cr_expect(test_relative(t, expected) < 1e-13, "%s.%s differs by %g", name, key,
              test_relative(t, expected));
}

/* Values and gradients as in tests/golden/make_attention.py. */
TEST(attention, values_and_gradients_agree_with_pytorch)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/attention.safetensors")));
    const char *const names[] = {"plain", "causal", "groups", "bias", "allowed"};
    const char *const leaves[] = {"q", "k", "v", "bias"}, *const grads[] = {"dq", "dk", "dv",
                                                                            "dbias"};
    for (int n = 0; n < 5; n++) {
        TAPE(SB_RECORD);
        sb_tensor *x[4];
        for (int i = 0; i < 4; i++)
            if ((x[i] = golden(file, names[n], leaves[i])))
                sb_tape_own(sb_tensor_requires_grad(x[i]));
        sb_tensor *allowed = golden(file, names[n], "allowed"), *dy = golden(file, names[n], "dy");
        sb_attention_options o = {.layout = SB_LAYOUT_HEADS_FIRST, .bias = x[3]};
        o.scale = n == 2 ? 0.3 : 0;
        o.mask = n == 1 ? sb_mask_causal() : n == 4 ? sb_mask_allow(sb_tape_own(allowed)) : NULL;
        sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &o));
        MUST(sb_backward_from(y, sb_tape_own(dy)));
        expect_golden(file, names[n], y, "y");
        for (int i = 0; i < 4 && x[i]; i++)
            expect_golden(file, names[n], sb_tensor_grad(x[i]), grads[i]);
    }
}

/* Other methods that attention contains: messages on a graph, an associative memory, kernel
   regression, and attention with sinks. */

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
    return sqrt(sb_tensor_value(error) / N);
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

/* Short rows are processed in vectors, several together: the same bits as row by row, which is how
   rows with a dense mask are processed. */

enum { B = 2, H = 2, D = 5 };

/* Sizes around those of vectors and blocks, up to the longest short row. */
static const int64_t sizes[][2] = {{1, 3},   {4, 1},   {5, 8},   {7, 15},  {16, 16}, {17, 33},
                                   {33, 17}, {20, 48}, {64, 63}, {70, 64}, {12, 65}};

enum kind { CAUSAL, LENGTHS, KINDS };

struct call {
    enum kind kind;
    bool dense, biased;
    double dropout;
    sb_tensor *x[4]; /* q, k, v, bias */
    sb_tensor *dy, *y, *weights, *dx[4];
};

/* The keys that sentence b keeps for query i; none for the last query of causal ones. */
static int64_t kept_keys(const struct call *c, int64_t b, int64_t i)
{
    const int64_t Lk = c->x[1]->dim[1];
    const int64_t kept = c->kind == CAUSAL ? i + 1 : Lk - (Lk > 2 ? 2 * b : b);
    return kept < Lk ? kept : Lk;
}

static sb_mask *mask_of(const struct call *c)
{
    const int64_t Lq = c->x[0]->dim[1], Lk = c->x[1]->dim[1];
    if (!c->dense && c->kind == CAUSAL)
        return sb_mask_causal();
    sb_tensor *x = c->dense ? sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, 1, Lq, Lk))
                            : sb_tensor_zeros(SB_I32, SB_SHAPE(B));
    for (int64_t n = 0; !c->dense && n < B; n++)
        sb_tensor_set(x, n, (double)kept_keys(c, n, 0));
    for (int64_t n = 0; c->dense && n < B * Lq * Lk; n++)
        sb_tensor_set(x, n, n % Lk < kept_keys(c, n / Lk / Lq, n / Lk % Lq));
    return c->dense ? sb_mask_allow(sb_tape_own(x)) : sb_mask_lengths(sb_tape_own(x));
}

static void run(struct call *c)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.mask = mask_of(c),
                              .bias = c->biased ? c->x[3] : NULL,
                              .dropout = c->dropout,
                              .algorithm = SB_ATTENTION_COMPOSED,
                              .weights = &c->weights};
    c->y = retained(sb_keep(sb_attention(c->x[0], c->x[1], c->x[2], &o)));
    retained(sb_keep(c->weights));
    MUST(sb_backward_from(c->y, c->dy));
    for (int i = 0; i < 4; i++) {
        c->dx[i] = retained(sb_tensor_grad(c->x[i]));
        sb_tensor_clear_grad(c->x[i]);
    }
}

static void same(const struct call *a, const struct call *b, const char *what)
{
    cr_assert(test_same_bits(a->y, b->y), "y, %s", what);
    cr_assert(test_same_bits(a->weights, b->weights), "the weights, %s", what);
    for (int i = 0; i < (a->biased ? 4 : 3); i++)
        cr_assert(test_same_bits(a->dx[i], b->dx[i]), "the gradient of input %d, %s", i, what);
}

/* Every kind of mask, with and without a bias and dropout. */
static void in_all_ways(sb_dtype dtype, int64_t Lq, int64_t Lk)
{
    struct call c = {.x = {test_leaf(dtype, 1, SB_SHAPE(B, Lq, H, D)),
                           test_leaf(dtype, 2, SB_SHAPE(B, Lk, H, D)),
                           test_leaf(dtype, 3, SB_SHAPE(B, Lk, H, D)),
                           test_leaf(dtype, 4, SB_SHAPE(H, Lq, Lk))},
                     .dy = test_leaf(dtype, 5, SB_SHAPE(B, Lq, H, D))};
    for (int way = 0; way < 4 * KINDS; way++) {
        struct call dense, range = c;
        char what[100];
        range.kind = way / 4;
        range.biased = way & 1;
        range.dropout = way & 2 ? 0.3 : 0;
        dense = range;
        dense.dense = true;
        snprintf(what, sizeof what, "%d x %d, kind %d, bias %d, dropout %g", (int)Lq, (int)Lk,
                 range.kind, range.biased, range.dropout);
        run(&range);
        run(&dense);
        same(&range, &dense, what);
    }
}

CPU_TEST(attention_short, has_the_bits_of_row_by_row)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            in_all_ways(SB_F32, sizes[n][0], sizes[n][1]);
            in_all_ways(SB_F64, sizes[n][0], sizes[n][1]);
        }
}
