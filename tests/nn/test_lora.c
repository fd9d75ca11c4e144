/* Adapters of low rank for linear layers. */
#include "nn/flat.h"
#include "tests/support/small_run.h"

static const sb_lora_options two = {.rank = 2, .alpha = 3, .on = "*.query"};

/* Layers "a.query" with adapters and "a.key" without. */
struct layers {
    sb_parameters *set;
    sb_linear_layer query, key;
};

static struct layers layers_new(const sb_lora_options *options)
{
    struct layers l = {.set = KEPT(sb_parameters_of(SB_F64, 3))};
    MUST((!options || sb_parameters_lora(l.set, options)) &&
         sb_linear_layer_init(&l.query, l.set, "a.query", 4, 3, true) &&
         sb_linear_layer_init(&l.key, l.set, "a.key", 4, 3, true));
    return l;
}

static void fill(sb_tensor *t, double scale)
{
    for (int64_t i = 0; i < tensor_size(t); i++)
        sb_tensor_set(t, i, scale * sin(1 + (double)i));
}

TEST(lora, layers_whose_names_match_get_adapters_that_change_nothing_at_first)
{
    struct layers l = layers_new(&two), plain = layers_new(NULL);
    cr_expect(l.query.lora_a && l.query.lora_b && !l.key.lora_a && !plain.query.lora_a);
    cr_expect(sb_parameters_find(l.set, "a.query.lora_a") == l.query.lora_a);
    cr_expect(sb_tensor_dim(l.query.lora_a, 0) == 2 && sb_tensor_dim(l.query.lora_a, 1) == 4);
    cr_expect(sb_tensor_dim(l.query.lora_b, 0) == 3 && sb_tensor_dim(l.query.lora_b, 1) == 2);
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, 2, (int64_t[]){5, 4});
    sb_tensor *y = sb_linear_layer_forward(&l.query, x, SB_ACTIVATION_GELU);
    sb_tensor *same = sb_linear_activation(x, l.query.weight, l.query.bias, SB_ACTIVATION_GELU);
    cr_expect(test_relative(y, same) < 1e-14);
}

/* y = x W' + b + alpha / rank (x A') B', written out, with each activation. */
TEST(lora, the_adapters_add_their_product)
{
    struct layers l = layers_new(&two);
    fill(l.query.lora_b, 0.7);
    for (int a = SB_ACTIVATION_IDENTITY; a <= SB_ACTIVATION_SIGMOID; a++) {
        TAPE(SB_NO_RECORD);
        sb_tensor *x = test_leaf(SB_F64, 1, 2, (int64_t[]){5, 4});
        sb_tensor *sum =
            sb_add(l.query.weight, sb_scale(sb_matmul(l.query.lora_b, l.query.lora_a), 3.0 / 2));
        const double apart =
            test_relative(sb_linear_layer_forward(&l.query, x, (sb_activation)a),
                          sb_linear_activation(x, sum, l.query.bias, (sb_activation)a));
        cr_expect(apart < 1e-13, "activation %d: %g", a, apart);
    }
}

static sb_tensor *forward(void *layer_, sb_tensor *const x[])
{
    sb_linear_layer layer = *(const sb_linear_layer *)layer_;
    layer.lora_a = x[1];
    layer.lora_b = x[2];
    return sb_linear_layer_forward(&layer, x[0], SB_ACTIVATION_TANH);
}

TEST(lora, gradients_of_adapters_are_exact)
{
    struct layers l = layers_new(&two);
    fill(l.query.lora_b, 0.5);
    MUST(sb_lora_freeze(l.set));
    sb_tensor *x = test_leaf(SB_F64, 1, 2, (int64_t[]){5, 4});
    sb_tensor *inputs[] = {x, l.query.lora_a, l.query.lora_b};
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(forward, &l.query, inputs, 3, NULL, &result), "%s", sb_error());
}

TEST(lora, merging_gives_the_same_outputs_and_begins_again)
{
    struct layers l = layers_new(&two);
    fill(l.query.lora_b, 0.7);
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, 2, (int64_t[]){5, 4});
    sb_tensor *before = sb_linear_layer_forward(&l.query, x, SB_ACTIVATION_IDENTITY);
    sb_tensor *key = sb_linear_layer_forward(&l.key, x, SB_ACTIVATION_IDENTITY);
    MUST(sb_lora_merge(l.set));
    cr_expect(test_relative(sb_linear_layer_forward(&l.query, x, SB_ACTIVATION_IDENTITY), before) <
              1e-14);
    cr_expect(test_relative(sb_linear(x, l.query.weight, l.query.bias), before) < 1e-14);
    cr_expect(test_same_bits(sb_linear_layer_forward(&l.key, x, SB_ACTIVATION_IDENTITY), key));
}

/* A set with "a.weight" (W, W), "a.lora_a" (1, W) and "a.lora_b" (W, 1) that no layer made. */
static sb_parameters *by_name(int64_t rows, int64_t W)
{
    const sb_initial one = {SB_INITIAL_CONSTANT, 1};
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    cr_assert(sb_parameters_add(set, "a.weight", SB_SHAPE(rows, W), one));
    cr_assert(sb_parameters_add(set, "a.lora_a", SB_SHAPE(1, W), one));
    cr_assert(sb_parameters_add(set, "a.lora_b", SB_SHAPE(W, 1), one));
    return KEPT(set);
}

static void save_scale(const sb_parameters *set, const char *scale, const char *path)
{
    const sb_named_tensor a = {"a.lora_a", sb_parameters_find(set, "a.lora_a")};
    const char *const metadata[][2] = {{"a.lora_a", scale}};
    MUST(sb_safetensors_save(path, 1, &a, 1, metadata));
}

TEST(lora, a_set_that_names_adapters_merges_them_with_the_scale_of_the_file)
{
    static const char *const bad[] = {"-1", "inf", "nan", "", "1x", "0"};
    sb_parameters *set = by_name(2, 2), *flat = by_name(1, 2);
    const char *path = test_temporary("scale");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        save_scale(set, bad[i], path);
        cr_expect(!sb_parameters_load(set, "*.lora_a", path, NULL), "%s", bad[i]);
        EXPECT_ERROR("parameters_load: the file's scale of \"a.lora_a\" is no positive number");
    }
    REFUSED("lora_merge: there are no adapters", sb_lora_merge(set));
    save_scale(set, "0.5", path);
    MUST(sb_parameters_load(set, "*.lora_a", path, NULL));
    MUST(sb_lora_merge(set));
    for (int i = 0; i < 4; i++)
        cr_expect(sb_tensor_get(sb_parameters_get(set, 0), i) == 1.5);
    MUST(sb_parameters_load(flat, "*.lora_a", path, NULL));
    REFUSED("lora_merge: the adapters' product is (2, 2), their weight (1, 2): shapes differ",
            sb_lora_merge(flat));
}

/* A set with adapters of two scales, "a1" and "a2" of 8 / 4 and "b" of 2 / 2. */
struct several {
    sb_parameters *set;
    sb_linear_layer layer[3];
};

static struct several several_new(double alpha)
{
    static const char *const name[] = {"a1", "a2", "b"};
    struct several s = {.set = KEPT(sb_parameters_of(SB_F64, 3))};
    cr_assert(sb_parameters_lora(s.set, &(sb_lora_options){4, 8, "a*"}));
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            cr_assert(sb_parameters_lora(s.set, &(sb_lora_options){2, alpha, "b*"}));
        MUST(sb_linear_layer_init(&s.layer[i], s.set, name[i], 4, 4, true));
        fill(s.layer[i].lora_b, 0.7 - 0.2 * i);
    }
    return s;
}

static double several_output(const struct several *s)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, 2, (int64_t[]){5, 4});
    for (int i = 0; i < 3; i++)
        x = sb_linear_layer_forward(&s->layer[i], x, SB_ACTIVATION_TANH);
    return sb_tensor_value(sb_sum(x, SB_ALL, false));
}

TEST(lora, each_adapter_is_merged_with_the_scale_of_its_layer)
{
    struct several s = several_new(2), again = several_new(2), other = several_new(4);
    const char *path = test_temporary("adapters");
    const double before = several_output(&s);
    MUST(sb_parameters_save(s.set, "*lora*", path));
    for (int i = 0; i < 3; i++) {
        fill(again.layer[i].lora_a, 0);
        fill(again.layer[i].lora_b, 0);
    }
    cr_expect(fabs(several_output(&again) - before) > 0.1);
    MUST(sb_parameters_load(again.set, "*lora*", path, NULL));
    struct several *const merged[] = {&s, &again};
    for (int i = 0; i < 2; i++) {
        cr_expect(fabs(several_output(merged[i]) - before) < 1e-12);
        MUST(sb_lora_merge(merged[i]->set));
        cr_expect(fabs(several_output(merged[i]) - before) < 1e-12, "%g, not %g",
                  several_output(merged[i]), before);
    }
    cr_expect(!sb_parameters_load(other.set, "*lora*", path, NULL));
    EXPECT_ERROR("parameters_load: \"b.lora_a\" has the scale 1 in the file and 2 in the set; give "
                 "sb_parameters_lora the alpha and the rank of the file");
}

TEST(lora, what_is_out_of_range_or_matches_nothing_is_refused)
{
    struct layers plain = layers_new(NULL);
    REFUSED("parameters_lora: rank is 0, not in 1..65536",
            sb_parameters_lora(plain.set, &(sb_lora_options){.rank = 0}));
    REFUSED("parameters_lora: alpha is -1; it must be a number >= 0",
            sb_parameters_lora(plain.set, &(sb_lora_options){.rank = 1, .alpha = -1}));
    cr_expect(!sb_parameters_lora(NULL, &two) && !sb_parameters_lora(plain.set, NULL));
    cr_expect(!sb_lora_freeze(plain.set) && !sb_lora_freeze(NULL) && !sb_lora_merge(NULL));
    cr_assert(sb_parameters_lora(plain.set, &(sb_lora_options){.rank = 1, .on = "head"}));
    REFUSED("lora_freeze: there are no adapters: no linear layer matches \"head\"",
            sb_lora_freeze(plain.set));
    REFUSED("lora_merge: there are no adapters", sb_lora_merge(plain.set));
    sb_output_head head;
    REFUSED("output_head: \"head\" cannot have LoRA adapters; name other layers",
            sb_output_head_init(&head, plain.set, "head", 4, 5, true, NULL));
    cr_expect(!sb_parameters_find(plain.set, "head.weight"));
}

/* A trained model keeps its bits, and the optimiser's memory is that of the adapters. */
TEST(lora, training_moves_the_adapters_alone, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    sb_data *data = KEPT(small_data(&s, NULL));
    sb_parameters *set = KEPT(sb_parameters_new(1));
    MUST(sb_parameters_lora(set, &(sb_lora_options){.rank = 2}));
    sb_seq2seq *model = KEPT(sb_seq2seq_new(set, data, &s.model));
    MUST(model && sb_lora_freeze(set));
    s.trainer.optimiser_kind = SB_OPTIMISER_ADAMW;
    s.trainer.optimiser.weight_decay = 0.1;
    sb_trainer *trainer = KEPT(sb_trainer_new(model, data, &s.trainer));
    const char *name = "encoder.layers.0.self_attention.query.weight";
    double *before = numbers_of(sb_parameters_find(set, name));
    sb_trained trained;
    for (int i = 0; i < 10; i++)
        MUST(sb_trainer_step(trainer, &trained));
    double *after = numbers_of(sb_parameters_find(set, name));
    cr_expect(memcmp(before, after, 8 * 8 * sizeof *after) == 0);
    /* Three attentions (one crosses), query and value each: A (2, 8) and B (8, 2). */
    cr_expect(sb_parameters_trainable(set) == 3 * 2 * 2 * 16);
    cr_expect(sb_tensor_dim(sb_optimiser_moment(sb_trainer_optimiser(trainer), 0), 0) ==
              sb_parameters_trainable(set));
    cr_expect(
        sb_tensor_get(sb_parameters_find(set, "decoder.layers.0.cross_attention.value.lora_b"),
                      3) != 0);
}

CPU_TEST(lora, adapters_are_drawn_in_a_set_that_draws_nothing)
{
    sb_parameters *set[2];
    for (int drawn = 0; drawn < 2; drawn++) {
        sb_linear_layer layer;
        set[drawn] = sb_parameters_of(SB_F64, 3);
        sb_parameters_draw(set[drawn], drawn);
        cr_assert(sb_parameters_lora(set[drawn], &two) &&
                  sb_linear_layer_init(&layer, set[drawn], "a.query", 4, 3, true));
        cr_expect(sb_tensor_get(layer.lora_a, 0) != 0 && sb_tensor_get(layer.lora_b, 0) == 0);
        cr_expect(isnan(sb_tensor_get(layer.weight, 0)) == !drawn, "new memory is NaN in tests");
    }
    sb_parameters_free(set[0]);
    sb_parameters_free(set[1]);
}

static bool adapt_and_merge(void *context)
{
    (void)context;
    sb_parameters *set = sb_parameters_of(SB_F64, 3);
    sb_linear_layer layer;
    const bool ok = set && sb_parameters_lora(set, &two) &&
                    sb_linear_layer_init(&layer, set, "a.query", 4, 3, true) &&
                    sb_lora_freeze(set) && parameters_flatten(set) && sb_lora_merge(set);
    sb_parameters_free(set);
    return ok;
}

CPU_TEST(lora, each_allocation_may_fail)
{
    cr_expect(test_each_allocation_fails(adapt_and_merge, NULL) > 10);
}
