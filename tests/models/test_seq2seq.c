#include "tests/support/tiny.h"

enum { PAIRS = 5, LONGEST = 9 };

TEST(seq2seq, results_have_the_documented_shapes)
{
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
    int64_t Ls = sb_tensor_dim(sb_batch_get(batch, "source"), 1),
            Lt = sb_tensor_dim(sb_batch_get(batch, "target_in"), 1);
    cr_assert(Ls > 1 && (Lt == Ls + 1 || sb_device_in_use()->graphs));
    sb_tensor *encoder[2], *self[2], *cross[2];
    sb_seq2seq_weights weights = {encoder, {self, cross}};
    TAPE(SB_RECORD);
    sb_tensor *y = MUST(sb_seq2seq_logits(tiny.model, batch, &weights));
    cr_expect(shape_equal(y->rank, y->dim, SB_SHAPE(PAIRS, Lt, TINY_V)));
    for (int i = 0; i < 2; i++) {
        cr_expect(shape_equal(encoder[i]->rank, encoder[i]->dim, SB_SHAPE(PAIRS, 2, Ls, Ls)));
        cr_expect(shape_equal(self[i]->rank, self[i]->dim, SB_SHAPE(PAIRS, 2, Lt, Lt)));
        cr_expect(shape_equal(cross[i]->rank, cross[i]->dim, SB_SHAPE(PAIRS, 2, Lt, Ls)));
    }
    sb_tensor *memory = sb_seq2seq_encode(tiny.model, sb_batch_get(batch, "source"),
                                          sb_batch_get(batch, "source_lengths"));
    cr_expect(shape_equal(memory->rank, memory->dim, SB_SHAPE(PAIRS, Ls, 12)));
}

/* The gradient of the decoder's table, whose row of padding is one or not. */
static sb_tensor *table_gradient(bool padded, bool share)
{
    sb_seq2seq_options options = tiny_options();
    options.tie_embeddings = true;
    options.share_embeddings = share;
    options.transformer.padded = padded;
    options.transformer.padding_id = SB_SYMBOL_PADDING;
    struct tiny tiny = tiny_new(SB_F64, 1, &options);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
    sb_tensor *table = sb_parameters_find(tiny.weights, share ? "encoder.embedding.weight"
                                                              : "decoder.embedding.weight");
    TAPE(SB_RECORD);
    MUST(sb_backward(sb_seq2seq_loss(tiny.model, batch)));
    return retained(sb_tensor_grad(table));
}

TEST(seq2seq, the_row_of_padding_gets_no_gradient_from_tied_logits)
{
    for (int share = 0; share < 2; share++) {
        sb_tensor *got = table_gradient(true, share), *all = table_gradient(false, share);
        const int64_t C = sb_tensor_dim(got, 1);
        for (int64_t i = 0; i < sb_tensor_size(got); i++) {
            const bool padding = i / C == SB_SYMBOL_PADDING;
            cr_assert(sb_tensor_get(got, i) == (padding ? 0 : sb_tensor_get(all, i)), "%d: %g",
                      (int)i, sb_tensor_get(got, i));
            cr_assert(!padding || sb_tensor_get(all, i) != 0);
        }
    }
}

/* Weights of masked pairs are exactly 0, and each row sums to 1. */
static void expect_attention(const sb_tensor *weights, const int32_t *lengths, bool causal)
{
    int64_t B = weights->dim[0], H = weights->dim[1], Lq = weights->dim[2], Lk = weights->dim[3];
    for (int64_t row = 0; row < B * H * Lq; row++) {
        int64_t i = row % Lq, b = row / Lq / H;
        double sum = 0;
        for (int64_t j = 0; j < Lk; j++) {
            double weight = sb_tensor_get(weights, row * Lk + j);
            bool seen = causal ? j <= i : j < lengths[b];
            cr_assert(seen ? weight > 0 : weight == 0, "weight (%lld, %lld) is %g", (long long)row,
                      (long long)j, weight);
            sum += weight;
        }
        cr_assert(fabs(sum - 1) < 1e-6);
    }
}

TEST(seq2seq, attention_weights_are_0_exactly_for_masked_pairs, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
    const int32_t *lengths = test_data(sb_batch_get(batch, "source_lengths"));
    sb_tensor *encoder[2], *self[2], *cross[2];
    sb_seq2seq_weights weights = {encoder, {self, cross}};
    TAPE(SB_NO_RECORD);
    MUST(sb_seq2seq_logits(tiny.model, batch, &weights));
    for (int i = 0; i < 2; i++) {
        expect_attention(encoder[i], lengths, false);
        expect_attention(cross[i], lengths, false);
        expect_attention(self[i], NULL, true);
    }
}

TEST(seq2seq, the_loss_is_the_cross_entropy_of_the_logits)
{
    sb_seq2seq_options options = tiny_options();
    options.label_smoothing = 0.1;
    struct tiny tiny = tiny_new(SB_F64, 1, &options);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
    TAPE(SB_RECORD);
    sb_tensor *y = sb_seq2seq_logits(tiny.model, batch, NULL);
    double mean[2];
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        sb_cross_entropy_options o = {.label_smoothing = smoothed * 0.1};
        mean[smoothed] =
            sb_tensor_value(sb_cross_entropy(y, sb_batch_get(batch, "target_out"), &o));
    }
    double n = (double)batch->targets;
    cr_expect(fabs(sb_tensor_value(sb_seq2seq_loss(tiny.model, batch)) - mean[1]) < 1e-12);
    cr_expect(fabs(sb_tensor_value(sb_seq2seq_loss_sum(tiny.model, batch)) - n * mean[1]) < 1e-10);
    cr_expect(fabs(sb_tensor_value(sb_seq2seq_cost(tiny.model, batch)) - n * mean[0]) < 1e-10);
    cr_expect(fabs(mean[0] - mean[1]) > 1e-3);
}

/* A softmax does not change if all scores of a row change by the same amount, so the gradient of a
   key bias is only rounding error. */
TEST(seq2seq, every_parameter_gets_a_gradient_in_every_variant, WHOLE_MODELS)
{
    for (int v = tiny_first(0); tiny_variant(v); v += tiny_step()) {
        struct tiny tiny = tiny_new(SB_F32, 1, &tiny_variant(v)->options);
        sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
        sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
        TAPE(SB_RECORD);
        sb_tape_random(&tape, &random);
        cr_assert(sb_backward(sb_seq2seq_loss(tiny.model, batch)), "%s: %s", tiny_variant(v)->name,
                  sb_error());
        int64_t i = 0;
        const char *missing = sb_parameters_without_gradient(tiny.weights, &i);
        cr_expect(!missing, "%s: %s", tiny_variant(v)->name, missing);
        for (i = 0; i < sb_parameters_count(tiny.weights); i++) {
            const sb_tensor *gradient = sb_tensor_grad(sb_parameters_get(tiny.weights, i));
            const char *name = sb_parameters_name(tiny.weights, i);
            double largest = 0;
            for (int64_t k = 0; gradient && k < sb_tensor_size(gradient); k++)
                largest = fmax(largest, fabs(sb_tensor_get(gradient, k)));
            cr_expect(largest > 0 || strstr(name, "key.bias"), "%s: %s", tiny_variant(v)->name,
                      name);
        }
    }
}

TEST(seq2seq, the_loss_falls_in_30_steps_in_every_variant, WHOLE_MODELS)
{
    const int steps = 2 + test_some(28);
    for (int v = tiny_first(1); tiny_variant(v); v += tiny_step()) {
        const char *name = tiny_variant(v)->name;
        struct tiny tiny = {tiny_vocabulary(), KEPT(sb_parameters_new(1)), NULL};
        tiny.model = KEPT(sb_seq2seq_for(tiny.weights, tiny.vocabulary, tiny.vocabulary,
                                         &tiny_variant(v)->options));
        sb_optimiser_options rate = {.learning_rate = 0.01};
        sb_optimiser *adam = KEPT(sb_adam_new(tiny.weights, &rate));
        sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
        double first = 0, last = 0;
        for (int step = 0; step < steps; step++) {
            sb_batch *batch = tiny_batch(tiny.vocabulary, (uint64_t)(100 * step), 8, 4);
            TAPE(SB_RECORD);
            sb_tape_random(&tape, &random);
            sb_tensor *loss = sb_seq2seq_loss(tiny.model, batch);
            cr_assert(sb_backward(loss) && sb_optimiser_step(adam), "%s: %s", name, sb_error());
            last = sb_tensor_value(loss);
            first = step == 0 ? last : first;
        }
        cr_expect(last < (steps < 30 ? 1 : 0.85) * first, "%s: %.3f, then %.3f", name, first, last);
    }
}

/* All logits of the batch. */
static double *logits_of(const struct tiny *tiny, const sb_batch *batch, sb_mode mode,
                         int64_t *size)
{
    TAPE_WITH(mode, &(sb_context){.batch_invariant = true});
    sb_tape_random(&tape, NULL);
    sb_tensor *y = MUST(sb_seq2seq_logits(tiny->model, batch, NULL));
    *size = sb_tensor_size(y);
    return numbers_of(y);
}

TEST(seq2seq, a_symbol_does_not_change_what_comes_before_it, KNOWN_KERNELS)
{
    for (int v = tiny_first(2); tiny_variant(v); v += tiny_step()) {
        struct tiny tiny = tiny_new(SB_F32, 1, &tiny_variant(v)->options);
        sb_batch *batch = tiny_batch(tiny.vocabulary, 3, 1, 30);
        int64_t L = sb_tensor_dim(sb_batch_get(batch, "target_in"), 1), n, changed = 0;
        cr_assert(L > 5);
        double *before = logits_of(&tiny, batch, SB_RECORD, &n);
        const bool first =
            sb_tensor_get(sb_batch_get(batch, "target_in"), L / 2) == SB_SPECIAL_SYMBOLS;
        sb_tensor_set(sb_batch_get(batch, "target_in"), L / 2,
                      first ? SB_SPECIAL_SYMBOLS + 1 : SB_SPECIAL_SYMBOLS);
        double *after = logits_of(&tiny, batch, SB_RECORD, &n);
        for (int64_t i = 0; i < n; i++) {
            bool may_change = i / TINY_V >= L / 2;
            changed += before[i] != after[i];
            cr_assert(may_change || before[i] == after[i], "%s: position %lld",
                      tiny_variant(v)->name, (long long)(i / TINY_V));
        }
        cr_expect(changed > (L - L / 2) * TINY_V / 2, "%s: too few change", tiny_variant(v)->name);
    }
}

/* The same bits in decoding; on a tape that records BLAS may sum in another order. */
TEST(seq2seq, a_sequence_does_not_depend_on_the_others_of_its_batch, WHOLE_MODELS)
{
    for (int v = tiny_first(3); tiny_variant(v); v += tiny_step())
        for (int record = 0; record < 2; record++) {
            struct tiny tiny = tiny_new(SB_F32, 1, &tiny_variant(v)->options);
            sb_mode mode = record ? SB_RECORD : SB_NO_RECORD;
            sb_batch *all = tiny_batch(tiny.vocabulary, 20, 7, 30);
            int64_t Lt = sb_tensor_dim(sb_batch_get(all, "target_in"), 1), n;
            double *together = logits_of(&tiny, all, mode, &n), tolerance = record ? 1e-5 : 0;
            for (int64_t b = 0; b < 7; b++) {
                sb_batch *one = tiny_batch(tiny.vocabulary, 20 + (uint64_t)b, 1, 30);
                double *alone = logits_of(&tiny, one, mode, &n);
                double error = test_relative_arrays(n, together + b * Lt * TINY_V, alone);
                cr_expect(error <= tolerance, "%s (record %d): %g", tiny_variant(v)->name, record,
                          error);
            }
        }
}

/* In training on a device, and not in another model's tape. */
TEST(seq2seq, tf32_is_a_precision_of_training)
{
    sb_seq2seq_options options = tiny_options();
    struct tiny plain = tiny_new(SB_F32, 1, &options);
    options.transformer.precision = SB_PRECISION_TF32;
    struct tiny rounded = tiny_new(SB_F32, 1, &options);
    sb_batch *batch = tiny_batch(plain.vocabulary, 20, PAIRS, LONGEST);
    for (sb_mode mode = SB_RECORD; mode <= SB_NO_RECORD; mode++) {
        int64_t n;
        double *with = logits_of(&rounded, batch, mode, &n);
        double *without = logits_of(&plain, batch, mode, &n);
        const bool rounds = mode == SB_RECORD && sb_device_in_use() != sb_device_cpu();
        const double error = test_relative_arrays(n, with, without);
        cr_expect(rounds ? error > 1e-6 && error < 1e-2 : error == 0, "mode %d: %g", (int)mode,
                  error);
    }
}

TEST(seq2seq, embedding_tables_are_shared_as_the_options_say)
{
    int64_t size[4];
    for (int i = 0; i < 4; i++) {
        sb_seq2seq_options options = tiny_options();
        options.tie_embeddings = i & 1;
        options.share_embeddings = i & 2;
        struct tiny tiny = tiny_new(SB_F32, 1, &options);
        size[i] = sb_parameters_size(tiny.weights);
        cr_expect((sb_parameters_find(tiny.weights, "output.weight") != NULL) == !(i & 1));
        cr_expect((sb_parameters_find(tiny.weights, "decoder.embedding.weight") != NULL) ==
                  !(i & 2));
    }
    cr_expect(size[0] - size[1] == TINY_V * 12 && size[0] - size[2] == TINY_V * 12);
    cr_expect(size[0] - size[3] == 2 * TINY_V * 12);
}

TEST(seq2seq, parameters_have_dotted_names)
{
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    static const char *const names[] = {
        "encoder.embedding.weight",
        "encoder.layers.1.self_attention.query.weight",
        "encoder.layers.0.feed_forward.up.bias",
        "encoder.norm.weight",
        "decoder.layers.1.cross_attention.value.bias",
        "decoder.layers.0.cross_norm.weight",
        "decoder.norm.bias",
        "output.weight",
        "output.bias",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect(sb_parameters_find(tiny.weights, names[i]), "%s", names[i]);
}

CPU_TEST(seq2seq, wrong_options_are_refused)
{
    sb_vocabulary *a = tiny_vocabulary(), *b = tiny_vocabulary();
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_seq2seq_options smooth = {.label_smoothing = 1}, shared = {.share_embeddings = true};
    sb_seq2seq_options lines = {.context = 4}, poolings = {.pooling = 7};
    sb_seq2seq_options heads = {.transformer = {.width = 10, .heads = 3}};
    sb_seq2seq_options rotary = {
        .transformer = {.width = 9, .heads = 3, .positions = SB_POSITIONS_ROTARY}};
    REFUSED("label_smoothing is 1; it must be in [0, 1)", sb_seq2seq_for(weights, a, b, &smooth));
    REFUSED("shared embeddings need one vocabulary", sb_seq2seq_for(weights, a, b, &shared));
    REFUSED("seq2seq: the option context is 4; this kind of models does not have it",
            sb_seq2seq_for(weights, a, b, &lines));
    REFUSED("there is no pooling 7", sb_seq2seq_for(weights, a, b, &poolings));
    REFUSED("width 10 is not a multiple of 3 heads", sb_seq2seq_for(weights, a, b, &heads));
    REFUSED("rotary positions need an even head size, not 3",
            sb_seq2seq_for(weights, a, b, &rotary));
    cr_expect(!sb_seq2seq_for(NULL, a, b, NULL) && !sb_seq2seq_for(weights, NULL, b, NULL) &&
              !sb_seq2seq_for(weights, a, NULL, NULL) && !sb_seq2seq_new(weights, NULL, NULL));
    EXPECT_ERROR("seq2seq: data is NULL");
    cr_expect(sb_parameters_count(weights) == 0);
    FAILED_TAPE(SB_RECORD);
    REFUSED("seq2seq: model is NULL", sb_seq2seq_loss(NULL, NULL));
}

TEST(seq2seq, a_sequence_beyond_the_learned_positions_is_refused)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.positions = SB_POSITIONS_LEARNED;
    options.transformer.positions_longest = 4;
    struct tiny tiny = tiny_new(SB_F32, 1, &options);
    sb_batch *batch = tiny_batch(tiny.vocabulary, 3, 1, 30);
    FAILED_TAPE(SB_RECORD);
    REFUSED("is beyond the 4 learned ones", sb_seq2seq_loss(tiny.model, batch));
}

static bool build_and_step(void *context)
{
    sb_vocabulary *vocabulary = context;
    int32_t ids[] = {4, 5, 6};
    sb_encoded_pair pair = {ids, ids, 2, 3, NULL};
    sb_seq2seq_options options = {
        .transformer = {
            .width = 4, .heads = 2, .feed_forward = 4, .encoder_layers = 1, .decoder_layers = 1}};
    sb_parameters *weights = sb_parameters_new(1);
    sb_seq2seq *model = weights ? sb_seq2seq_for(weights, vocabulary, vocabulary, &options) : NULL;
    sb_batch *batch = model ? sb_batch_new(1, &pair) : NULL;
    bool ok = batch != NULL;
    if (ok) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        ok = sb_backward(sb_seq2seq_loss(model, batch));
        ok = sb_tape_end(&tape) && ok;
    }
    sb_batch_free(batch);
    sb_seq2seq_free(model);
    sb_parameters_free(weights);
    return ok;
}

TEST(seq2seq, each_allocation_may_fail, WHOLE_MODELS)
{
    sb_vocabulary *vocabulary = tiny_vocabulary();
    cr_expect(test_each_allocation_fails(build_and_step, vocabulary) > 200);
}

/* The gradients of all parameters, one after the other; to be freed. */
static double *gradients(const sb_seq2seq_options *options, sb_dtype dtype, int64_t *n)
{
    struct tiny t = tiny_new(dtype, 3, options);
    sb_batch *batch = tiny_batch(t.vocabulary, 5, 3, 9);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    MUST(sb_backward(sb_seq2seq_loss(t.model, batch)));
    cr_assert(sb_tape_end(&tape));
    double *all = KEPT(calloc((size_t)sb_parameters_size(t.weights), sizeof *all));
    *n = 0;
    for (int64_t i = 0; i < sb_parameters_count(t.weights); i++) {
        sb_tensor *w = sb_parameters_get(t.weights, i);
        if (sb_tensor_grad(w))
            cr_assert(sb_tensor_read(sb_tensor_grad(w), all + *n));
        *n += sb_tensor_size(w);
    }
    return all;
}

TEST(seq2seq, recomputation_does_not_change_a_bit_of_gradients_in_any_variant, WHOLE_MODELS)
{
    for (int i = tiny_first(4); tiny_variant(i); i += tiny_step()) {
        sb_seq2seq_options o = tiny_variant(i)->options;
        int64_t n;
        o.transformer.dropout = 0.2;
        double *plain = gradients(&o, SB_F32, &n);
        o.transformer.recompute = true;
        double *again = gradients(&o, SB_F32, &n);
        cr_expect(memcmp(plain, again, (size_t)n * sizeof *plain) == 0, "%s",
                  tiny_variant(i)->name);
    }
}

TEST(seq2seq, tiles_give_the_same_gradients_in_every_variant, WHOLE_MODELS)
{
    for (int i = tiny_first(5); tiny_variant(i); i += tiny_step()) {
        sb_seq2seq_options o = tiny_variant(i)->options;
        int64_t n;
        o.transformer.dropout = 0.2;
        o.transformer.attention = SB_ATTENTION_COMPOSED;
        double *composed = gradients(&o, SB_F64, &n);
        o.transformer.attention = SB_ATTENTION_TILED;
        double *tiled = gradients(&o, SB_F64, &n);
        cr_expect(test_relative_arrays(n, tiled, composed) < 1e-12, "%s", tiny_variant(i)->name);
    }
}

static int64_t encoder_peak(bool recompute, int layers)
{
    const sb_transformer_options o = {
        .width = 32, .encoder_layers = layers, .recompute = recompute};
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_encoder *encoder = KEPT(sb_encoder_new(set, "encoder", 10, &o));
    int64_t before = memory_in_use().live_bytes;
    sb_device_reset_peak(sb_device_in_use());
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(8, 32), 5));
    sb_tensor *lengths = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(8), 32));
    sb_tensor *y = sb_encoder_forward(encoder, ids, lengths, NULL);
    MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    int64_t peak = memory_in_use().peak_bytes - before;
    cr_assert(sb_tape_end(&tape));
    peak -= 2 * sb_parameters_size(set) * (int64_t)sizeof(float); /* their gradients */
    return peak;
}

/* A further layer costs its boundary, (B, L, C), and handles, not all its intermediate results. */
TEST(seq2seq, recomputation_keeps_one_layer_and_the_boundaries, WHOLE_MODELS)
{
    const int64_t boundary = 8 * 32 * 32 * (int64_t)sizeof(float);
    int64_t plain = (encoder_peak(false, 12) - encoder_peak(false, 2)) / 10;
    int64_t held = (encoder_peak(true, 12) - encoder_peak(true, 2)) / 10;
    cr_expect(plain > 10 * boundary, "%g boundaries a layer", (double)plain / (double)boundary);
    cr_expect(held < 2 * boundary, "%g boundaries a layer", (double)held / (double)boundary);
}
