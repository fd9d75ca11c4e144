#include "models/decoding/search.h"
#include "tests/support/tiny.h"

enum { TEXTS = 40, LONGEST = 12 };

static const sb_decoding_options plain = {.longest = LONGEST};

TEST(decoding, greedy_takes_the_most_probable_symbol_each_time, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F64, 2, NULL);
    const char **texts = texts_new(1, TEXTS);
    sb_decoded outputs[TEXTS];
    decode(&tiny, texts, TEXTS, &plain, outputs);
    int ended = 0, lengths = 0;
    for (int i = 0; i < TEXTS; i++) {
        const sb_decoded *o = &outputs[i];
        double *log_p = log_probabilities(&tiny, texts[i], o), sum = 0;
        for (int64_t t = 0; t < o->length + o->ended; t++) {
            int32_t best = SB_SYMBOL_END, id = t < o->length ? o->ids[t] : SB_SYMBOL_END;
            for (int32_t v = 0; v < TINY_V; v++)
                if (search_allows(search_choosable(NULL), v) &&
                    log_p[t * TINY_V + v] > log_p[t * TINY_V + best])
                    best = v;
            cr_expect(id == best, "text %d, symbol %lld is %d, not %d", i, (long long)t, id, best);
            sum += log_p[t * TINY_V + id];
        }
        cr_expect(fabs(o->log_probability - sum) < 1e-12 && o->score == o->log_probability);
        cr_expect(o->ended || o->length == LONGEST);
        ended += o->ended;
        lengths |= 1 << o->length;
    }
    cr_expect(ended > TEXTS / 4 && ended < TEXTS, "%d end", ended); /* others reach the limit */
    cr_expect(__builtin_popcount((unsigned)lengths) > 4, "%x", lengths);
}

/* The same symbols, and scores up to rounding, with and without the cache. */
static void expect_cache_changes_nothing(sb_dtype dtype, double tolerance,
                                         const sb_decoding_options *options)
{
    const int n = test_some(TEXTS);
    for (int v = tiny_first(dtype + options->beam_width); tiny_variant(v); v += tiny_step()) {
        struct tiny tiny = tiny_new(dtype, 2, &tiny_variant(v)->options);
        const char **texts = texts_new(50, n);
        sb_decoded cached[TEXTS], computed[TEXTS];
        sb_decoding_options without = *options;
        without.no_cache = true;
        decode(&tiny, texts, n, options, cached);
        decode(&tiny, texts, n, &without, computed);
        for (int i = 0; i < n; i++) {
            cr_expect(same_symbols(&cached[i], &computed[i]), "%s", tiny_variant(v)->name);
            cr_expect(fabs(cached[i].score - computed[i].score) <= tolerance, "%s: %g",
                      tiny_variant(v)->name, cached[i].score - computed[i].score);
        }
    }
}

TEST(decoding, the_cache_does_not_change_outputs, WHOLE_MODELS)
{
    expect_cache_changes_nothing(SB_F32, 1e-5, &plain);
    expect_cache_changes_nothing(SB_F64, 1e-13, &plain);
}

TEST(decoding, the_cache_does_not_change_beams, WHOLE_MODELS)
{
    const sb_decoding_options beam = {.beam_width = 3, .longest = 8};
    expect_cache_changes_nothing(SB_F32, 1e-5, &beam);
}

TEST(decoding, steps_that_the_device_takes_alone_have_the_bits_of_single_steps, WHOLE_MODELS)
{
    expect_bits_of_single_steps(&(sb_decoding_options){.longest = 30});
}

/* Decodes texts in another order and in batches of another size; the bits must be the same. */
static void expect_same_in_any_batch(const struct tiny *tiny, const char *const *texts, int n,
                                     const sb_decoding_options *options, bool shuffle)
{
    static const int64_t batch_pairs[] = {1, 7, 64};
    sb_decoded *first = KEPT(calloc((size_t)n, sizeof *first)),
               *again = KEPT(calloc((size_t)n, sizeof *again));
    const char **shuffled = KEPT(calloc((size_t)n, sizeof *shuffled));
    int64_t *order = KEPT(calloc((size_t)n, sizeof *order));
    for (int k = 0; k < 3; k++) {
        sb_decoding_options o = *options;
        o.batch_pairs = batch_pairs[k];
        sb_random random = sb_random_new((uint64_t)k, SB_STREAM_USER);
        sb_random_shuffle(&random, n, order);
        for (int i = 0; i < n; i++) {
            order[i] = shuffle && k > 0 ? order[i] : i;
            shuffled[i] = texts[order[i]];
        }
        decode(tiny, shuffled, n, &o, again);
        for (int i = 0; i < n; i++) {
            if (k == 0)
                first[i] = again[i];
            else
                cr_assert(same_bits(&first[order[i]], &again[i]),
                          "\"%s\" in batches of %d: %.17g, not %.17g", shuffled[i],
                          (int)o.batch_pairs, again[i].score, first[order[i]].score);
        }
    }
}

TEST(decoding, a_thousand_texts_do_not_depend_on_their_batch, WHOLE_MODELS)
{
    const int many = test_slow() ? 50 : 1000;
    struct tiny tiny = tiny_new(SB_F32, 2, NULL);
    const char **texts = texts_new(1000, many);
    const sb_decoding_options greedy = {.longest = 6};
    expect_same_in_any_batch(&tiny, texts, many, &greedy, true);
}

CPU_TEST(decoding, int8_weights_depend_on_no_batch_and_change_scores_a_little)
{
    enum { SOME = 40 };
    struct tiny tiny = tiny_new(SB_F32, 2, NULL);
    const char **texts = texts_new(1000, SOME);
    const sb_decoding_options stored = {.longest = 6},
                              int8 = {.longest = 6, .weights = SB_WEIGHTS_INT8};
    expect_same_in_any_batch(&tiny, texts, SOME, &int8, true);
    sb_decoded of_stored[SOME], of_int8[SOME];
    decode(&tiny, texts, SOME, &stored, of_stored);
    decode(&tiny, texts, SOME, &int8, of_int8);
    int same = 0, other = 0;
    for (int i = 0; i < SOME; i++) {
        const double difference = fabs(of_stored[i].score - of_int8[i].score);
        if (!same_symbols(&of_stored[i], &of_int8[i]))
            continue;
        same++;
        other += difference != 0;
        cr_expect(difference < 0.2, "\"%s\": %g", texts[i], difference);
    }
    cr_expect(same > SOME / 2 && other > same / 2, "%d of %d differ", other, same);
}

TEST(decoding, no_variant_depends_on_the_batch, WHOLE_MODELS)
{
    const sb_decoding_options beam = {.beam_width = 3, .longest = 7, .length_penalty = 0.6};
    const sb_decoding_options sample = {.sample = true, .longest = 7}, greedy = {.longest = 7};
    for (int v = tiny_first(3); tiny_variant(v); v += tiny_step()) {
        const int some = test_slow() ? 4 : 16;
        struct tiny tiny = tiny_new(SB_F32, 4, &tiny_variant(v)->options);
        const char **texts = texts_new(70, some);
        expect_same_in_any_batch(&tiny, texts, some, &greedy, true);
        expect_same_in_any_batch(&tiny, texts, some, &beam, true);
        expect_same_in_any_batch(&tiny, texts, some, &sample, false);
    }
}

/* Every instruction set, with one thread and with several. */
TEST(decoding, no_kernels_depend_on_the_batch, WHOLE_MODELS)
{
    int64_t usual_work = kernel_parallel_work;
    enum { FEW = 8 };
    const sb_decoding_options shortly = {.longest = 4};
    const char **texts = texts_new(70, FEW);
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int dtype = SB_F32; dtype <= SB_F64; dtype++) {
            struct tiny tiny = tiny_new((sb_dtype)dtype, 4, NULL);
            sb_decoded one[FEW], several[FEW];
            decode(&tiny, texts, FEW, &shortly, one);
            kernel_parallel_work = 0;
            expect_same_in_any_batch(&tiny, texts, FEW, &shortly, true);
            decode(&tiny, texts, FEW, &shortly, several);
            kernel_parallel_work = usual_work;
            for (int i = 0; i < FEW; i++)
                cr_expect(same_bits(&one[i], &several[i]));
        }
}

/* The first symbols of many samples follow their distribution, within five deviations of the number
   of draws. */
TEST(decoding, samples_follow_the_distribution, WHOLE_MODELS)
{
    enum { DRAWS = 4000 };
    const int draws = test_some(DRAWS);
    struct tiny tiny = tiny_new(SB_F32, 8, NULL);
    static const char *texts[DRAWS];
    static sb_decoded outputs[DRAWS];
    for (int i = 0; i < draws; i++)
        texts[i] = "fade";
    for (int hot = 0; hot < 2; hot++) {
        sb_decoding_options o = {
            .sample = true, .longest = 1, .temperature = hot ? 2 : 0.7, .seed = 5};
        decode(&tiny, texts, draws, &o, outputs);
        double *log_p = log_probabilities(&tiny, texts[0], &(sb_decoded){0});
        double share[TINY_V] = {0}, sum = 0, count[TINY_V] = {0};
        for (int v = 0; v < TINY_V; v++)
            sum += share[v] =
                search_allows(search_choosable(NULL), v) ? exp(log_p[v] / o.temperature) : 0;
        for (int i = 0; i < draws; i++) {
            int32_t id = outputs[i].length ? outputs[i].ids[0] : SB_SYMBOL_END;
            count[id]++;
            cr_expect(fabs(outputs[i].log_probability - log_p[id]) < 1e-5);
        }
        for (int v = 0; v < TINY_V; v++) {
            double expected = share[v] / sum, deviation = sqrt(expected * (1 - expected) / draws);
            cr_expect(fabs(count[v] / draws - expected) <= 5 * deviation, "%d: %g, not %g", v,
                      count[v] / draws, expected);
        }
    }
}

TEST(decoding, samples_depend_only_on_seed_and_index, WHOLE_MODELS)
{
    const int n = test_brief() ? 13 : TEXTS;
    struct tiny tiny = tiny_new(SB_F32, 8, NULL);
    const char *texts[TEXTS];
    sb_decoded x[TEXTS], y[TEXTS];
    for (int i = 0; i < n; i++)
        texts[i] = "cabbage";
    sb_decoding_options o = {.sample = true, .longest = 10, .seed = 1};
    decode(&tiny, texts, n, &o, x);
    decode(&tiny, texts, n, &o, y);
    int same = 0, neighbours = 0;
    for (int i = 0; i < n; i++) {
        cr_expect(same_bits(&x[i], &y[i]));
        neighbours += i > 0 && same_symbols(&x[i - 1], &x[i]);
    }
    o.seed = 2;
    decode(&tiny, texts, n, &o, y);
    for (int i = 0; i < n; i++)
        same += same_symbols(&x[i], &y[i]);
    cr_expect(same < n / 2 && neighbours < n / 2, "%d, %d are the same", same, neighbours);
}

TEST(decoding, special_symbols_are_never_written, WHOLE_MODELS)
{
    const int n = test_brief() ? 13 : TEXTS;
    struct tiny tiny = tiny_new(SB_F32, 9, NULL);
    sb_tensor *bias = sb_parameters_find(tiny.weights, "output.bias");
    sb_tensor_set(bias, SB_SYMBOL_PADDING, 9);
    sb_tensor_set(bias, SB_SYMBOL_BEGIN, 9);
    sb_tensor_set(bias, SB_SYMBOL_UNKNOWN, 9);
    const char **texts = texts_new(1, n);
    sb_decoding_options options[] = {
        plain, {.beam_width = 3, .longest = LONGEST}, {.sample = true, .longest = LONGEST}};
    for (int k = 0; k < 3; k++) {
        sb_decoded outputs[TEXTS];
        decode(&tiny, texts, n, &options[k], outputs);
        for (int i = 0; i < n; i++)
            for (int64_t t = 0; t < outputs[i].length; t++)
                cr_assert(outputs[i].ids[t] >= SB_SPECIAL_SYMBOLS);
    }
}

TEST(decoding, the_first_of_equally_probable_symbols_is_chosen, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 9, NULL);
    sb_tensor *weight = sb_parameters_find(tiny.weights, "output.weight");
    sb_tensor *bias = sb_parameters_find(tiny.weights, "output.bias");
    for (int64_t i = 0; i < sb_tensor_size(weight); i++)
        sb_tensor_set(weight, i, 0);
    for (int64_t i = 0; i < TINY_V; i++)
        sb_tensor_set(bias, i, i > 5);
    for (int64_t width = 1; width < 4; width += 2) {
        sb_decoding_options o = {.beam_width = width, .longest = 3};
        char *text = KEPT(sb_translate(tiny.model, "abc", &o));
        cr_expect_str_eq(text, "ccc"); /* 4 is a, 6 is c */
    }
}

TEST(decoding, outputs_end_at_the_length_limit, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F32, 9, NULL);
    sb_tensor_set(sb_parameters_find(tiny.weights, "output.bias"), SB_SYMBOL_END, -99);
    const char *text = "abc";
    for (int64_t width = 1; width < 4; width += 2)
        for (int64_t longest = 0; longest < 4; longest++) {
            sb_decoding_options o = {.beam_width = width, .longest = longest};
            sb_decoded output;
            decode(&tiny, &text, 1, &o, &output);
            cr_expect(!output.ended && output.length == (longest ? longest : 2 * 3 + 50));
        }
}

TEST(decoding, learned_positions_end_an_output, KNOWN_KERNELS)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.positions = SB_POSITIONS_LEARNED;
    options.transformer.positions_longest = 5;
    struct tiny tiny = tiny_new(SB_F32, 9, &options);
    sb_tensor_set(sb_parameters_find(tiny.weights, "output.bias"), SB_SYMBOL_END, -99);
    const char *text = "abc";
    sb_decoded output;
    decode(&tiny, &text, 1, NULL, &output);
    cr_expect(!output.ended && output.length == 4); /* with "end", it can be scored */
    REFUSED("position 5 is beyond the 5 learned ones", sb_translate(tiny.model, "abcdef", NULL));
}

TEST(decoding, small_batches_need_little_memory, WHOLE_MODELS)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    const char **texts = texts_new(30, TEXTS);
    int64_t need[2];
    cr_assert(sb_set_threads(1)); /* each thread has a batch */
    for (int large = 0; large < 2; large++) {
        sb_decoding_options o = {.longest = 4, .batch_pairs = large ? TEXTS : 2};
        sb_decoded outputs[TEXTS];
        sb_device_reset_peak(sb_device_in_use());
        need[large] = -memory_in_use().live_bytes;
        decode(&tiny, texts, TEXTS, &o, outputs);
        need[large] += memory_in_use().peak_bytes;
    }
    cr_expect(need[0] * 4 < need[1], "%lld and %lld bytes", (long long)need[0], (long long)need[1]);
}

TEST(decoding, outputs_have_the_order_of_their_texts, WHOLE_MODELS)
{
    const int n = test_brief() ? 13 : TEXTS;
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    const char **texts = texts_new(30, n);
    char *outputs[TEXTS];
    const sb_decoding_options batches = {.longest = LONGEST, .batch_pairs = 6};
    MUST(sb_translate_texts(tiny.model, texts, n, &batches, outputs));
    for (int i = 0; i < n; i++) {
        char *alone = KEPT(sb_translate(tiny.model, texts[i], &plain));
        cr_expect_str_eq(KEPT(outputs[i]), alone);
    }
}

TEST(decoding, empty_texts_and_zero_texts_are_allowed, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    for (int64_t width = 1; width < 4; width += 2) {
        sb_decoding_options o = {.beam_width = width};
        KEPT(sb_translate(tiny.model, "", &o));
        cr_expect(sb_translate_texts(tiny.model, NULL, 0, &o, NULL), "%s", sb_error());
    }
}

/* An output whose first symbol is the end is the empty text. */
TEST(decoding, an_output_may_be_empty, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    sb_tensor_set(sb_parameters_find(tiny.weights, "output.bias"), SB_SYMBOL_END, 99);
    const char *text = "abc";
    for (int64_t width = 1; width < 4; width += 2) {
        sb_decoding_options o = {.beam_width = width};
        sb_decoded output;
        decode(&tiny, &text, 1, &o, &output);
        cr_expect(output.ids && output.length == 0 && output.ended && output.score > -1e-3);
        char *empty = KEPT(sb_translate(tiny.model, text, &o));
        cr_expect_str_eq(empty, "");
    }
}

/* Within a training step: its dropout, tape and gradients do not change. */
TEST(decoding, decoding_does_not_change_an_outer_tape, KNOWN_KERNELS)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.dropout = 0.5;
    struct tiny tiny = tiny_new(SB_F32, 3, &options);
    char *outside = KEPT(sb_translate(tiny.model, "decade", &plain));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN), before = random;
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    char *inside = KEPT(sb_translate(tiny.model, "decade", &plain));
    cr_assert(outside && inside);
    cr_expect_str_eq(inside, outside);
    cr_expect(random.position == before.position);
    cr_expect(!sb_tensor_grad(sb_parameters_get(tiny.weights, 0)));
}

TEST(decoding, wrong_options_are_refused)
{
    static const struct {
        sb_decoding_options options;
        const char *message;
    } wrong[] = {
        {{.beam_width = -1}, "beam_width is -1; it must be in 0..1024"},
        {{.beam_width = 1025}, "beam_width is 1025"},
        {{.beam_rule = (sb_beam_rule)3}, "3 is no rule of a beam"},
        {{.longest = -1}, "longest is -1"},
        {{.batch_pairs = -2}, "batch_pairs is -2; it must be positive"},
        {{.length_penalty = -0.5}, "length_penalty is -0.5; it must be at least 0"},
        {{.length_penalty = NAN}, "length_penalty is"},
        {{.length_penalty = INFINITY}, "length_penalty is inf"},
        {{.sample = true, .beam_width = 2}, "beam_width is 2; with sampling it must be 0 or 1"},
        {{.sample = true, .temperature = -1}, "temperature is -1"},
        {{.sample = true, .temperature = INFINITY}, "temperature is inf"},
        {{.sample = true, .top_k = -1}, "top_k is -1"},
        {{.sample = true, .top_p = 1.5},
         "top_p is 1.5; it must be in (0, 1], or 0 for the default, 1"},
        {{.sample = true, .top_p = NAN}, "top_p is"},
        {{.temperature = 0.7},
         "temperature is 0.7, top_k 0, top_p 0; without sampling they must be 0"},
    };
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(wrong[i].message, sb_translate(tiny.model, "abc", &wrong[i].options));
}

TEST(decoding, wrong_arguments_are_refused)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    const char *texts[] = {"abc", "ab\xff", NULL};
    char *outputs[3];
    REFUSED("translate: model is NULL", sb_translate(NULL, "abc", NULL));
    REFUSED("decode: text 0: ", sb_translate(tiny.model, NULL, NULL));
    REFUSED("decode: text 1: ", sb_translate_texts(tiny.model, texts, 2, NULL, outputs));
    cr_expect(!outputs[0] && !outputs[1]);
    REFUSED("translate: outputs is NULL", sb_translate_texts(tiny.model, texts, 1, NULL, NULL));
    REFUSED("decode: texts is NULL", sb_translate_texts(tiny.model, NULL, 1, NULL, outputs));
    REFUSED("decode: n is -1; it must be in 0..16777216",
            sb_translate_texts(tiny.model, texts, -1, NULL, outputs));
}

TEST(decoding, weights_that_are_not_finite_are_reported, KNOWN_KERNELS)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    sb_tensor_set(sb_parameters_find(tiny.weights, "output.bias"), 5, NAN);
    sb_decoding_options options[] = {{0}, {.beam_width = 3}, {.sample = true}};
    for (int i = 0; i < 3; i++)
        REFUSED("decode: text 0: no symbol has a probability above 0",
                sb_translate(tiny.model, "abc", &options[i]));
}

struct attempt {
    const sb_seq2seq *model;
    sb_decoding_options options;
};

static bool translate(void *context)
{
    const struct attempt *attempt = context;
    const char *texts[] = {"abc", "", "gfedc"};
    char *outputs[3];
    if (!sb_translate_texts(attempt->model, texts, 3, &attempt->options, outputs))
        return false;
    for (int i = 0; i < 3; i++)
        sb_free(outputs[i]);
    return true;
}

TEST(decoding, each_allocation_may_fail, WHOLE_MODELS)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.encoder_layers = options.transformer.decoder_layers = 1;
    struct tiny tiny = tiny_new(SB_F32, 3, &options);
    struct attempt greedy = {tiny.model, {.longest = 2}};
    struct attempt beam = {tiny.model, {.longest = 2, .beam_width = 2}};
    struct attempt sample = {tiny.model, {.longest = 2, .sample = true}};
    struct attempt computed = {tiny.model, {.longest = 2, .no_cache = true}};
    cr_expect(test_each_allocation_fails(translate, &greedy) > 100);
    cr_expect(test_each_allocation_fails(translate, &beam) > 100);
    cr_expect(test_each_allocation_fails(translate, &sample) > 100);
    cr_expect(test_each_allocation_fails(translate, &computed) > 100);
}

CPU_TEST(decoding, each_allocation_of_int8_weights_may_fail)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    struct attempt int8 = {tiny.model, {.longest = 2, .weights = SB_WEIGHTS_INT8}};
    cr_expect(test_each_allocation_fails(translate, &int8) > 100);
}

TEST(decoding, a_device_without_int8_kernels_says_so)
{
    struct tiny tiny = tiny_new(SB_F32, 3, NULL);
    const char *const text = "a";
    sb_decoded output;
    const bool ok = sb_decode_texts(tiny.model, &text, 1,
                                    &(sb_decoding_options){.weights = SB_WEIGHTS_INT8}, &output);
    if (ok)
        KEPT(output.ids);
    else
        EXPECT_ERROR("decode: int8 weights are for f32 and f64 on the CPU");
    cr_expect(ok == (sb_tensor_device(sb_decoder_table(sb_seq2seq_decoder(tiny.model))) ==
                     sb_device_cpu()));
}
