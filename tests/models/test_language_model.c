/* Language models: of texts, and of windows of running text. */
#include "models/decoding/device_steps.h"
#include "models/decoding/search.h"
#include "tests/support/tiny.h"

enum { TEXTS = 20, LONGEST = 8 };

static sb_language_model_options options_of(int variant)
{
    const sb_seq2seq_options *o = &tiny_variant(variant)->options;
    return (sb_language_model_options){.transformer = o->transformer,
                                       .tie_embeddings = o->tie_embeddings,
                                       .label_smoothing = o->label_smoothing};
}

struct writer {
    sb_vocabulary *vocabulary;
    sb_parameters *weights;
    sb_language_model *model;
};

/* A model with weights drawn as for tiny_new. */
static struct writer writer_new(sb_dtype dtype, uint64_t seed, int variant)
{
    sb_language_model_options options = options_of(variant);
    struct writer w = {tiny_vocabulary(), KEPT(sb_parameters_of(dtype, seed)), NULL};
    w.model = KEPT(sb_language_model_for(w.weights, w.vocabulary, &options));
    tiny_draw(w.weights, seed, 1);
    return w;
}

/* Texts in cyclic alphabetical order, "cdefgab": ids (n, L) with -1 behind each end. */
static sb_tensor *circles(uint64_t seed, int64_t n, int64_t L)
{
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    int32_t *id = KEPT(calloc((size_t)(n * L), sizeof *id));
    for (int64_t i = 0; i < n * L; i++)
        id[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t first = sb_random_below(&random, TINY_SYMBOLS);
        int64_t length = sb_random_below(&random, (uint32_t)L);
        for (int64_t t = 0; t < length; t++)
            id[i * L + t] = (int32_t)(SB_SPECIAL_SYMBOLS + (first + (uint32_t)t) % TINY_SYMBOLS);
        id[i * L + length] = SB_SYMBOL_END;
    }
    return KEPT(sb_tensor_from(SB_I32, SB_SHAPE(n, L), id));
}

/* The gradient of the tied table after two backward passes, by the loss or the logits. */
static sb_tensor *table_gradient(bool padded, sb_precision precision, bool by_logits)
{
    sb_language_model_options options = options_of(0);
    options.tie_embeddings = true;
    options.transformer.padded = padded;
    options.transformer.padding_id = SB_SYMBOL_PADDING;
    options.transformer.precision = precision;
    struct writer w = {tiny_vocabulary(), KEPT(sb_parameters_of(SB_F32, 3)), NULL};
    w.model = KEPT(sb_language_model_for(w.weights, w.vocabulary, &options));
    tiny_draw(w.weights, 3, 1);
    sb_tensor *ids = circles(1, 5, 9), *table = sb_parameters_get(w.weights, 0);
    cr_assert_str_eq(sb_parameters_name(w.weights, 0), "decoder.embedding.weight");
    for (int pass = 0; pass < 2; pass++) {
        TAPE(SB_RECORD);
        sb_tensor *y = by_logits ? sb_language_model_logits(w.model, ids)
                                 : sb_language_model_loss(w.model, ids);
        MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    }
    return retained(sb_tensor_grad(table));
}

TEST(language_model, the_row_of_padding_gets_no_gradient_from_tied_logits, KNOWN_KERNELS)
{
    for (int way = 0; way < 4; way++) {
        const sb_precision precision = way % 2 ? SB_PRECISION_BF16 : SB_PRECISION_F32;
        sb_tensor *got = table_gradient(true, precision, way > 1),
                  *all = table_gradient(false, precision, way > 1);
        const int64_t C = sb_tensor_dim(got, 1);
        for (int64_t i = 0; i < sb_tensor_size(got); i++) {
            const bool padding = i / C == SB_SYMBOL_PADDING;
            cr_assert(sb_tensor_get(got, i) == (padding ? 0 : sb_tensor_get(all, i)),
                      "way %d, %d: %g", way, (int)i, sb_tensor_get(got, i));
            cr_assert(!padding || sb_tensor_get(all, i) != 0);
        }
    }
}

TEST(language_model, the_loss_is_the_cross_entropy_of_the_logits, KNOWN_KERNELS)
{
    struct writer w = writer_new(SB_F64, 1, 0);
    sb_tensor *ids = circles(1, 5, 9);
    TAPE(SB_RECORD);
    sb_tensor *y = sb_language_model_logits(w.model, ids);
    MUST(y && shape_equal(y->rank, y->dim, SB_SHAPE(5, 9, TINY_V)));
    double expected = sb_tensor_value(sb_cross_entropy(y, ids, NULL));
    cr_expect(fabs(sb_tensor_value(sb_language_model_loss(w.model, ids)) - expected) < 1e-12);
}

TEST(language_model, the_loss_falls_and_every_parameter_gets_a_gradient, KNOWN_KERNELS)
{
    const int steps = 2 + test_some(28);
    for (int v = tiny_first(6); tiny_variant(v); v += tiny_step()) {
        const char *name = tiny_variant(v)->name;
        sb_language_model_options options = options_of(v);
        sb_vocabulary *vocabulary = tiny_vocabulary();
        sb_parameters *weights = KEPT(sb_parameters_new(1));
        sb_language_model *model = KEPT(sb_language_model_for(weights, vocabulary, &options));
        sb_optimiser_options rate = {.learning_rate = 0.02};
        sb_optimiser *adam = KEPT(sb_adam_new(weights, &rate));
        sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
        double first = 0, last = 0;
        for (int step = 0; step < steps; step++) {
            sb_tensor *ids = circles((uint64_t)step, 8, 8);
            TAPE(SB_RECORD);
            sb_tape_random(&tape, &random);
            sb_tensor *loss = sb_language_model_loss(model, ids);
            cr_assert(sb_backward(loss), "%s: %s", name, sb_error());
            int64_t i = 0;
            cr_expect(!sb_parameters_without_gradient(weights, &i), "%s: %s", name,
                      sb_parameters_name(weights, i - 1));
            cr_assert(sb_optimiser_step(adam), "%s: %s", name, sb_error());
            last = sb_tensor_value(loss);
            first = step == 0 ? last : first;
        }
        cr_expect(last < (steps < 30 ? 1 : 0.7) * first, "%s: %.3f, then %.3f", name, first, last);
    }
}

TEST(language_model, its_gradient_is_correct, WHOLE_MODELS)
{
    struct writer w = writer_new(SB_F64, 1, 5);
    sb_tensor *ids = circles(1, 2, 4);
    for (int64_t i = 0; i < sb_parameters_count(w.weights); i++) {
        sb_tensor *p = sb_parameters_get(w.weights, i);
        double h = 1e-5, value = sb_tensor_get(p, 1), loss[2];
        sb_tape tape;
        for (int side = 0; side < 2; side++) {
            sb_tensor_set(p, 1, side ? value + h : value - h);
            sb_tape_begin(&tape, SB_NO_RECORD);
            loss[side] = sb_tensor_value(sb_language_model_loss(w.model, ids));
            sb_tape_end(&tape);
        }
        sb_tensor_set(p, 1, value);
        sb_tape_begin(&tape, SB_RECORD);
        MUST(sb_backward(sb_language_model_loss(w.model, ids)));
        sb_tape_end(&tape);
        double expected = (loss[1] - loss[0]) / (2 * h), got = sb_tensor_get(sb_tensor_grad(p), 1);
        cr_expect(fabs(got - expected) < 1e-8, "%s: %g, not %g", sb_parameters_name(w.weights, i),
                  got, expected);
        sb_parameters_clear(w.weights);
    }
}

TEST(language_model, a_symbol_does_not_change_what_comes_before_it, KNOWN_KERNELS)
{
    for (int v = 0; tiny_variant(v); v++) {
        struct writer w = writer_new(SB_F32, 1, v);
        int32_t ids[] = {4, 5, 6, 7, 8, 9};
        double y[2][6 * TINY_V];
        for (int side = 0; side < 2; side++) {
            ids[3] = side ? 10 : 7;
            sb_tensor *t = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, 6), ids));
            TAPE(SB_RECORD);
            sb_tape_random(&tape, NULL);
            MUST(sb_tensor_read(sb_language_model_logits(w.model, t), y[side]));
        }
        for (int i = 0; i < 6; i++) { /* the logits of symbol 3 depend on those before it */
            bool same = memcmp(y[0] + i * TINY_V, y[1] + i * TINY_V, sizeof(double[TINY_V])) == 0;
            cr_expect(same == (i <= 3), "%s: position %d", tiny_variant(v)->name, i);
        }
    }
}

/* The log-probabilities of the symbol that follows the prompt and these ids. */
static double *next(const struct writer *w, const char *prompt, const int32_t *ids, int64_t n)
{
    int64_t length;
    int32_t *begun = KEPT(sb_vocabulary_encode(w->vocabulary, prompt, &length, NULL));
    int32_t *id = calloc((size_t)(length + n + 1), sizeof *id);
    memcpy(id, begun, (size_t)length * sizeof *id);
    memcpy(id + length, ids, (size_t)n * sizeof *id);
    sb_tensor *all = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, length + n + 1), id));
    free(id);
    TAPE(SB_NO_RECORD);
    return numbers_of(sb_log_softmax(sb_language_model_logits(w->model, all))) +
           (length + n) * TINY_V;
}

TEST(language_model, it_continues_with_the_most_probable_symbols, KNOWN_KERNELS)
{
    const int n = test_some(TEXTS);
    for (int v = tiny_first(2); tiny_variant(v); v += tiny_step()) {
        struct writer w = writer_new(SB_F64, 2, v);
        const char *prompts[TEXTS];
        for (int i = 0; i < n; i++)
            prompts[i] = KEPT(memory_text(tiny_text((uint64_t)i, 6)));
        sb_decoded outputs[TEXTS];
        sb_decoding_options o = {.longest = LONGEST, .batch_pairs = 2};
        MUST(sb_continue_texts(w.model, prompts, n, &o, outputs));
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t t = 0; t < outputs[i].length + outputs[i].ended; t++) {
                double *log_p = next(&w, prompts[i], outputs[i].ids, t);
                int32_t best = SB_SYMBOL_END;
                for (int32_t id = 0; id < TINY_V; id++)
                    best = search_allows(search_choosable(NULL), id) && log_p[id] > log_p[best]
                               ? id
                               : best;
                cr_expect(best == (t < outputs[i].length ? outputs[i].ids[t] : SB_SYMBOL_END));
                sum += log_p[best];
            }
            cr_expect(fabs(outputs[i].score - sum) < 1e-12, "%s", tiny_variant(v)->name);
        }
        sb_decoded_free(n, outputs);
    }
}

TEST(language_model, equivalent_decoding_options_agree, WHOLE_MODELS)
{
    struct writer w = writer_new(SB_F32, 2, 0);
    const char *prompts[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        prompts[i] = KEPT(memory_text(tiny_text((uint64_t)i, 6)));
    sb_decoded greedy[TEXTS], other[TEXTS];
    sb_decoding_options o[] = {{.longest = LONGEST},
                               {.longest = LONGEST, .no_cache = true},
                               {.longest = LONGEST, .batch_pairs = 1},
                               {.longest = LONGEST, .sample = true, .top_k = 1},
                               {.longest = LONGEST, .beam_width = 3}};
    MUST(sb_continue_texts(w.model, prompts, TEXTS, &o[0], greedy));
    for (int k = 1; k < 5; k++) {
        MUST(sb_continue_texts(w.model, prompts, TEXTS, &o[k], other));
        for (int i = 0; i < TEXTS; i++) {
            bool same =
                greedy[i].length == other[i].length &&
                memcmp(greedy[i].ids, other[i].ids, (size_t)other[i].length * sizeof(int32_t)) == 0;
            cr_expect(same || k == 4);
            cr_expect(k == 4   ? other[i].score >= greedy[i].score
                      : k == 1 ? fabs(other[i].score - greedy[i].score) < 1e-5
                               : other[i].score == greedy[i].score);
        }
        sb_decoded_free(TEXTS, other);
    }
    sb_decoded_free(TEXTS, greedy);
}

TEST(language_model, it_learns_to_count)
{
    too_slow(EMULATED, "it trains to the end");
    sb_language_model_options options = options_of(0);
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_language_model *model = KEPT(sb_language_model_for(weights, vocabulary, &options));
    sb_optimiser_options rate = {.learning_rate = 0.02};
    sb_optimiser *adam = KEPT(sb_adam_new(weights, &rate));
    for (int step = 0; step < 120; step++) {
        sb_tensor *ids = circles((uint64_t)step, 16, 9);
        TAPE(SB_RECORD);
        MUST(sb_backward(sb_language_model_loss(model, ids)) && sb_optimiser_step(adam));
    }
    sb_decoding_options o = {.longest = 3};
    char *text = KEPT(sb_continue(model, "cd", &o));
    cr_expect(strncmp("efg", text, strlen(text)) == 0, "\"%s\"", text);
    KEPT(sb_continue(model, "", &o));
}

TEST(language_model, it_trains_on_the_targets_of_data, WHOLE_MODELS)
{
    sb_data *data = KEPT(sb_data_task("sort", 1));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_language_model_options options = options_of(0);
    sb_language_model *model = KEPT(sb_language_model_new(weights, data, &options));
    cr_expect(sb_language_model_vocabulary(model) == sb_data_target(data));
    cr_expect(sb_language_model_parameters(model) == weights);
    cr_expect(sb_language_model_options_of(model)->transformer.key_heads == 2);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    double loss = sb_tensor_value(
        sb_language_model_loss(model, sb_batch_get(sb_data_next(data), "target_out")));
    cr_expect(sb_tape_end(&tape) && loss > 1 && loss < 5, "%g, %s", loss, sb_error());
}

TEST(language_model, learned_positions_end_a_text, KNOWN_KERNELS)
{
    int learned = 0;
    while (tiny_variant(learned)->options.transformer.positions != SB_POSITIONS_LEARNED)
        learned++;
    sb_language_model_options options = options_of(learned);
    options.transformer.positions_longest = 5;
    struct writer w = {tiny_vocabulary(), KEPT(sb_parameters_new(1)), NULL};
    w.model = KEPT(sb_language_model_for(w.weights, w.vocabulary, &options));
    sb_tensor_set(sb_parameters_find(w.weights, "output.bias"), SB_SYMBOL_END, -99);
    const char *prompts[] = {"", "abc", "abcd"};
    sb_decoded outputs[3];
    MUST(sb_continue_texts(w.model, prompts, 3, NULL, outputs));
    cr_expect(outputs[0].length == 5 && outputs[1].length == 2 && outputs[2].length == 1);
    sb_decoded_free(3, outputs);
    REFUSED("position 5 is beyond the 5 learned ones", sb_continue(w.model, "abcde", NULL));
}

TEST(language_model, wrong_arguments_are_refused)
{
    struct writer w = writer_new(SB_F32, 1, 0);
    sb_language_model_options smooth = {.label_smoothing = -0.1};
    REFUSED("label_smoothing is -0.1; it must be in [0, 1)",
            sb_language_model_for(w.weights, w.vocabulary, &smooth));
    sb_language_model_options pooled = {.pooling = SB_POOLING_FIRST};
    REFUSED("language_model: the option pooling is first; this kind of models does not have it",
            sb_language_model_for(w.weights, w.vocabulary, &pooled));
    cr_expect(!sb_language_model_for(NULL, w.vocabulary, NULL));
    REFUSED("language_model: vocabulary is NULL", sb_language_model_for(w.weights, NULL, NULL));
    REFUSED("language_model: data is NULL", sb_language_model_new(w.weights, NULL, NULL));
    REFUSED("continue: model is NULL", sb_continue(NULL, "a", NULL));
    REFUSED("decode: text 0: ", sb_continue(w.model, NULL, NULL));
    sb_tensor *flat = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(3))),
              *real = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)));
    sb_tensor *wrong[] = {NULL, flat, real};
    for (int i = 0; i < 3; i++) {
        FAILED_TAPE(SB_RECORD);
        REFUSED(i ? "they must be i32 (batch, length)" : "language_model: ids is NULL",
                sb_language_model_loss(w.model, wrong[i]));
    }
}

static bool build_and_write(void *context)
{
    sb_language_model_options options = {
        .transformer = {.width = 4, .heads = 2, .feed_forward = 4, .decoder_layers = 1}};
    sb_parameters *weights = sb_parameters_new(1);
    sb_language_model *model = weights ? sb_language_model_for(weights, context, &options) : NULL;
    sb_decoding_options o = {.longest = 2};
    char *text = model ? sb_continue(model, "abc", &o) : NULL;
    sb_free(text);
    sb_language_model_free(model);
    sb_parameters_free(weights);
    return text != NULL;
}

TEST(language_model, each_allocation_may_fail, KNOWN_KERNELS)
{
    sb_vocabulary *vocabulary = tiny_vocabulary();
    cr_expect(test_each_allocation_fails(build_and_write, vocabulary) > 100);
}

/* Language models on windows of running text: training, files, and going on beyond the context. */

enum { CONTEXT = 8 };

static const sb_language_model_options small = {
    .transformer = {.width = 16, .heads = 2, .decoder_layers = 1},
    .context = CONTEXT,
    .running_text = true};

static struct writer windows_writer_new(sb_dtype dtype, const sb_language_model_options *options)
{
    struct writer w = {tiny_vocabulary(), KEPT(sb_parameters_of(dtype, 3)), NULL};
    w.model = KEPT(sb_language_model_for(w.weights, w.vocabulary, options));
    tiny_draw(w.weights, 3, -8); /* texts do not end */
    return w;
}

/* "abcdefgabc...": each letter follows from the one before it. */
static sb_documents *alphabet(int length)
{
    char text[2000];
    sb_documents *d = sb_documents_new();
    for (int i = 0; i < length; i++)
        text[i] = (char)('a' + i % TINY_SYMBOLS);
    cr_assert(sb_documents_add(d, "text", text, (size_t)length, SB_DOCUMENTS_FILES));
    return KEPT(d);
}

TEST(language_windows, a_model_learns_a_running_text_and_goes_on_with_it, WHOLE_MODELS)
{
    struct writer w = {tiny_vocabulary(), KEPT(sb_parameters_new(1)), NULL};
    w.model = KEPT(sb_language_model_for(w.weights, w.vocabulary, &small));
    sb_documents *text = alphabet(1500);
    const sb_windows_options options = {.seed = 1, .length = CONTEXT, .batch_windows = 16};
    sb_windows *windows = KEPT(sb_windows_new(text, w.vocabulary, &options));
    const sb_model model = sb_language_model_as_model(w.model);
    const sb_source source = sb_windows_as_source(windows);
    const sb_trainer_options how = {.optimiser = {.learning_rate = test_brief() ? 0.03 : 0.01}};
    sb_trainer *trainer = KEPT(sb_trainer_for(&model, &source, &how));
    sb_trained trained = {0};
    for (int step = 0; step < (test_brief() ? 60 : 120); step++)
        MUST(sb_trainer_step(trainer, &trained));
    cr_expect(trained.loss < 0.1, "the loss is %g", trained.loss);
    char *more = KEPT(sb_continue(w.model, "cde", &(sb_decoding_options){.longest = 20}));
    cr_expect_str_eq(more, "fgabcdefgabcdefgabcd");
}

TEST(language_windows, nothing_is_put_before_a_window, KNOWN_KERNELS)
{
    struct writer w = windows_writer_new(SB_F64, &small);
    const int32_t in[] = {SB_SYMBOL_BEGIN, 4, 5, 6, 7}, out[] = {4, 5, 6, 7, SB_SYMBOL_END};
    sb_tensor *input = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, 5), in)),
              *targets = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, 5), out)),
              *without = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, 4), in + 1));
    TAPE(SB_RECORD);
    const double windows = sb_tensor_value(sb_language_model_window_loss(w.model, input, targets)),
                 texts = sb_tensor_value(sb_language_model_loss(w.model, targets));
    cr_expect(fabs(windows - texts) < 1e-12, "with begin in front both are the same");
    sb_tensor *y = sb_language_model_window_logits(w.model, without);
    MUST(y && sb_tensor_dim(y, 1) == 4);
}

/* The most probable symbol behind ids that are all that the model sees; adds its log probability.
 */
static int32_t best_after(const struct writer *w, int64_t n, const int32_t *ids, double *sum)
{
    double y[TINY_V * (CONTEXT + 2)];
    sb_tensor *all = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(1, n), ids));
    TAPE(SB_NO_RECORD);
    MUST(sb_tensor_read(sb_language_model_window_logits(w->model, all), y));
    const double *last = y + (n - 1) * TINY_V;
    int32_t best = SB_SYMBOL_END;
    for (int32_t id = 0; id < TINY_V; id++)
        best = search_allows(search_choosable(NULL), id) && last[id] > last[best] ? id : best;
    double all_of_them = 0;
    for (int id = 0; id < TINY_V; id++)
        all_of_them += exp(last[id] - last[best]);
    *sum -= log(all_of_them);
    return best;
}

TEST(language_windows, beyond_its_context_a_text_goes_on_from_the_last_symbols, KNOWN_KERNELS)
{
    for (int i = 0; i < 4; i++) {
        const int cached = i % 2, context = CONTEXT - i / 2, half = (context + 1) / 2;
        sb_language_model_options size = small;
        size.context = context;
        struct writer w = windows_writer_new(SB_F64, &size);
        const char *prompt = "abc";
        const sb_decoding_options o = {.longest = 40, .no_cache = !cached};
        sb_decoded d;
        MUST(sb_continue_texts(w.model, &prompt, 1, &o, &d));
        cr_expect(d.length == 40 && d.slid && !d.ended);
        int32_t seen[CONTEXT + 1] = {4, 5, 6};
        int64_t n = 3;
        double sum = 0;
        for (int64_t t = 0; t < d.length; t++) {
            cr_expect(d.ids[t] == best_after(&w, n, seen, &sum), "context %d: symbol %d", context,
                      (int)t);
            seen[n++] = d.ids[t];
            if (n > context) { /* half of the context stays, the longer one of an odd context */
                memmove(seen, seen + n - half, (size_t)half * sizeof *seen);
                n = half;
            }
        }
        cr_expect(fabs(d.log_probability - sum) < 1e-9, "%.12g is not %.12g", d.log_probability,
                  sum);
        sb_decoded_free(1, &d);
    }
}

TEST(language_windows, steps_that_the_device_takes_alone_go_on_beyond_the_context_too, WHOLE_MODELS)
{
    enum { PROMPTS = 3 };
    const char *prompts[PROMPTS] = {"abc", "gfe", "bad"};
    device_needed();
    struct writer w = windows_writer_new(SB_F32, &small);
    for (int64_t width = 0; width < 4; width += 3) {
        const sb_decoding_options o = {.longest = 3 * CONTEXT, .beam_width = width};
        sb_decoded single[PROMPTS], ahead[PROMPTS];
        device_steps_ahead = 0;
        MUST(sb_continue_texts(w.model, prompts, PROMPTS, &o, single));
        device_steps_ahead = DEVICE_STEPS_AHEAD;
        MUST(sb_continue_texts(w.model, prompts, PROMPTS, &o, ahead));
        for (int i = 0; i < PROMPTS; i++)
            cr_expect(ahead[i].slid && single[i].length == ahead[i].length &&
                          single[i].score == ahead[i].score &&
                          memcmp(single[i].ids, ahead[i].ids,
                                 (size_t)single[i].length * sizeof *single[i].ids) == 0,
                      "\"%s\": %.17g, not %.17g", prompts[i], ahead[i].score, single[i].score);
        sb_decoded_free(PROMPTS, single);
        sb_decoded_free(PROMPTS, ahead);
    }
}

TEST(language_windows, a_prompt_longer_than_the_context_is_read_from_its_end, KNOWN_KERNELS)
{
    struct writer w = windows_writer_new(SB_F64, &small);
    const char *prompts[] = {"gfedcbaabcdefgfedcba", "dcba"}; /* the same last half of a context */
    const sb_decoding_options o = {.longest = 4};
    sb_decoded d[2];
    MUST(sb_continue_texts(w.model, prompts, 2, &o, d));
    cr_expect(d[0].slid && !d[1].slid);
    cr_expect(d[0].length == 4 && memcmp(d[0].ids, d[1].ids, 4 * sizeof(int32_t)) == 0);
    sb_decoded_free(2, d);
}

struct heard {
    int64_t count;
    int32_t id[64];
};

static bool hear(void *heard_, int64_t i, int32_t id)
{
    struct heard *heard = (struct heard *)heard_ + i;
    heard->id[heard->count++] = id;
    return heard->count < 60;
}

TEST(language_windows, a_listener_hears_each_symbol_and_may_end_it, KNOWN_KERNELS)
{
    struct writer w = windows_writer_new(SB_F32, &small);
    const char *prompts[] = {"abc", "dab"};
    struct heard heard[2] = {{0}};
    sb_decoding_options o = {.longest = 30, .sample = true, .seed = 4};
    sb_decoded quiet[2], d[2];
    MUST(sb_continue_texts(w.model, prompts, 2, &o, quiet));
    o.listen = hear;
    o.listener = heard;
    o.batch_pairs = 1;
    MUST(sb_continue_texts(w.model, prompts, 2, &o, d));
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)d[i].length * sizeof(int32_t);
        cr_expect(heard[i].count == d[i].length && quiet[i].length == d[i].length);
        cr_expect(memcmp(heard[i].id, d[i].ids, bytes) == 0 &&
                      memcmp(quiet[i].ids, d[i].ids, bytes) == 0,
                  "text %d", i);
    }
    sb_decoded_free(2, d);
    sb_decoded_free(2, quiet);
    heard[0].count = 55;
    cr_expect(!sb_continue_texts(w.model, prompts, 1, &o, d), "the listener ends it");
    o.sample = false;
    o.beam_width = 2;
    REFUSED("a beam of 2", sb_continue_texts(w.model, prompts, 1, &o, d));
}

TEST(language_windows, a_file_keeps_context_and_running_text, WHOLE_MODELS)
{
    struct writer w = windows_writer_new(SB_F32, &small);
    const char *path = test_temporary("lm.safetensors");
    MUST(sb_language_model_save(w.model, path));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_language_model *again = KEPT(sb_language_model_load(weights, path));
    cr_expect(sb_language_model_options_of(again)->context == CONTEXT);
    cr_expect(sb_language_model_options_of(again)->running_text);
    cr_expect(sb_parameters_fingerprint(weights) == sb_parameters_fingerprint(w.weights));
    char *a = KEPT(sb_continue(w.model, "ab", NULL)), *b = KEPT(sb_continue(again, "ab", NULL));
    cr_expect_str_eq(a, b);
    cr_expect(!sb_language_model_load(weights, path), "the set is not empty");
    cr_expect(!sb_seq2seq_load(weights, path));
}

CPU_TEST(language_windows, more_context_than_learned_positions_is_refused)
{
    sb_language_model_options o = small;
    o.transformer.positions = SB_POSITIONS_LEARNED;
    o.transformer.positions_longest = 4;
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    REFUSED("context is 8, but only 4 positions are learned",
            sb_language_model_for(weights, vocabulary, &o));
    o.context = -1;
    cr_expect(!sb_language_model_for(weights, vocabulary, &o));
}

TEST(language_windows, sampling_draws_each_symbol_by_its_probability)
{
    enum { DRAWS = 20000, V = 5 };
    const double p[V] = {0.1, 0.4, 0.05, 0.25, 0.2};
    double logits[V], share[V] = {0};
    for (int i = 0; i < V; i++)
        logits[i] = log(p[i]) + 3;
    sb_tensor *t = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(V), logits));
    sb_random random = sb_random_new(5, SB_STREAM_SAMPLE);
    int32_t id;
    for (int i = 0; i < DRAWS; i++) {
        MUST(sb_sample(t, NULL, &random, &id));
        share[id] += 1.0 / DRAWS;
    }
    for (int i = 0; i < V; i++)
        cr_expect(fabs(share[i] - p[i]) < 0.015, "symbol %d: %g", i, share[i]);
    const sb_decoding_options best = {.top_k = 1};
    cr_expect(sb_sample(t, &best, &random, &id) && id == 1);
    cr_expect(!sb_sample(t, &(sb_decoding_options){.top_p = 2}, &random, &id));
    cr_expect(!sb_sample(NULL, NULL, &random, &id));
}

TEST(language_windows, logits_from_which_nothing_can_be_drawn_are_refused)
{
    static const struct {
        double logits[2];
        const char *message;
    } bad[] = {
        {{INFINITY, 0}, "sample: symbol 0 of row 0 has the logit +inf; it must be a number, or"},
        {{NAN, 0}, "sample: symbol 0 of row 0 has the logit NaN; it must be a number, or"},
        {{0, NAN}, "sample: symbol 1 of row 0 has the logit NaN"},
        {{-INFINITY, -INFINITY}, "sample: row 0 of the logits has no finite number"},
    };
    sb_random random = sb_random_new(5, SB_STREAM_SAMPLE);
    int32_t id;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int top = 0; top < 3; top++) {
            const sb_decoding_options o = {.top_k = top, .top_p = top ? 0 : 0.5};
            sb_tensor *t = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 2), bad[i].logits));
            REFUSED(bad[i].message, sb_sample(t, &o, &random, &id));
        }
    for (int side = 0; side < 2; side++) {
        sb_tensor *empty =
            KEPT(sb_tensor_zeros(SB_F32, 2, (int64_t[]){side ? 3 : 0, side ? 0 : 3}));
        cr_expect(!sb_sample(empty, NULL, &random, &id));
        EXPECT_ERROR(side ? "sample: logits are (3, 0): there is no symbol to draw"
                          : "sample: logits are (0, 3): there is no symbol to draw");
    }
    sb_tensor *left = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){-INFINITY, 5}));
    cr_expect(sb_sample(left, NULL, &random, &id) && id == 1);
}
