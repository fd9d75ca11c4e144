/* Language models on windows of running text: training, files, and going on beyond the context. */
#include "models/decoding/device_steps.h"
#include "tests/support/tiny.h"
#include <stdio.h>

enum { CONTEXT = 8 };

static const sb_language_model_options small = {
    .transformer = {.width = 16, .heads = 2, .decoder_layers = 1},
    .context = CONTEXT,
    .running_text = true};

struct writer {
    sb_vocabulary *vocabulary;
    sb_parameters *weights;
    sb_language_model *model;
};

static struct writer writer_new(sb_dtype dtype, const sb_language_model_options *options)
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

TEST(language_windows, a_model_learns_a_running_text_and_goes_on_with_it)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
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

TEST(language_windows, nothing_is_put_before_a_window)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    struct writer w = writer_new(SB_F64, &small);
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
    sb_tensor *all = sb_tensor_from(SB_I32, SB_SHAPE(1, n), ids);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    MUST(sb_tensor_read(sb_language_model_window_logits(w->model, all), y));
    sb_tape_end(&tape);
    sb_tensor_release(all);
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

TEST(language_windows, beyond_its_context_a_text_goes_on_from_the_last_symbols)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    for (int i = 0; i < 4; i++) {
        const int cached = i % 2, context = CONTEXT - i / 2, half = (context + 1) / 2;
        sb_language_model_options size = small;
        size.context = context;
        struct writer w = writer_new(SB_F64, &size);
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

TEST(language_windows, steps_that_the_device_takes_alone_go_on_beyond_the_context_too)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    enum { PROMPTS = 3 };
    const char *prompts[PROMPTS] = {"abc", "gfe", "bad"};
    device_needed();
    sb_use_device(device_cuda());
    struct writer w = writer_new(SB_F32, &small);
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
    sb_use_device(NULL);
}

TEST(language_windows, a_prompt_longer_than_the_context_is_read_from_its_end)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    struct writer w = writer_new(SB_F64, &small);
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

TEST(language_windows, a_listener_hears_each_symbol_and_may_end_it)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    struct writer w = writer_new(SB_F32, &small);
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
    cr_expect(!sb_continue_texts(w.model, prompts, 1, &o, d));
    cr_expect(strstr(sb_error(), "a beam of 2"), "%s", sb_error());
}

TEST(language_windows, a_file_keeps_context_and_running_text)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    struct writer w = writer_new(SB_F32, &small);
    char path[300];
    strcpy(path, test_temporary("lm.safetensors"));
    MUST(sb_language_model_save(w.model, path));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_language_model *again = KEPT(sb_language_model_load(weights, path));
    cr_expect(sb_language_model_options_of(again)->context == CONTEXT);
    cr_expect(sb_language_model_options_of(again)->running_text);
    cr_expect(sb_parameters_fingerprint(weights) == sb_parameters_fingerprint(w.weights));
    char *a = sb_continue(w.model, "ab", NULL), *b = sb_continue(again, "ab", NULL);
    cr_expect_str_eq(a, b);
    sb_free(a);
    sb_free(b);
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
    cr_expect(!sb_language_model_for(weights, vocabulary, &o));
    cr_expect(strstr(sb_error(), "context is 8, but only 4 positions are learned"), "%s",
              sb_error());
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
            cr_expect(!sb_sample(t, &o, &random, &id));
            EXPECT_ERROR(bad[i].message);
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
