/* Attention against hand-worked numbers, and the composition of simple operations. */
#include "ops/kernel.h"
#include "tests/support/test.h"
#include "tests/support/variant.h"

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
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
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
    sb_tape_end(&tape);
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
TEST(attention, long_rows_equal_the_composition_of_simple_operations)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
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
    enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (uint64_t seed = 0; kernel_use_cpu_set(set) && seed < 40; seed++) {
            struct variant c = variant_draw(seed);
            variant_expect_same(&c, SB_F64, COMPOSED, OPERATIONS, 1e-12);
            variant_expect_same(&c, SB_F32, COMPOSED, OPERATIONS, 2e-5);
        }
    kernel_use_cpu_set(usual);
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

TEST(attention, padding_does_not_change_the_bits_of_a_sequence)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    sb_set_threads(1); /* a second one would slow down many small calls */
    const int64_t step = test_brief() ? 12 : test_slow() ? 7 : 1;
    enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (int64_t L = 1; test_kernel_set(set) && L < 140; L += L < 40         ? step
                                                                  : test_brief() ? 31
                                                                                 : 13)
            for (int way = 0; way < 4; way++) {
                sb_attention_algorithm algorithm =
                    way / 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
                expect_padding_has_no_effect(L, 8, way % 2, algorithm);
                expect_padding_has_no_effect(L, L == 1 ? 300 : 67, way % 2, algorithm);
            }
    kernel_use_cpu_set(usual);
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
