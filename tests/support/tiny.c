#include "tests/support/tiny.h"
#include "models/decoding/device_steps.h"

#define SIZES .width = 12, .heads = 2, .feed_forward = 20, .encoder_layers = 2, .decoder_layers = 2
#define TRANSFORMER(...) .transformer = {SIZES, __VA_ARGS__}

static const struct tiny_variant variants[] = {
    {"pre-norm", {TRANSFORMER(.norm_place = SB_NORM_PRE)}},
    {"post-norm", {TRANSFORMER(.norm_place = SB_NORM_POST)}},
    {"rms", {TRANSFORMER(.norm_kind = SB_NORM_KIND_RMS)}},
    {"rms post-norm", {TRANSFORMER(.norm_kind = SB_NORM_KIND_RMS, .norm_place = SB_NORM_POST)}},
    {"gated", {TRANSFORMER(.gated = true, .activation = SB_ACTIVATION_SILU)}},
    {"gelu", {TRANSFORMER(.activation = SB_ACTIVATION_GELU)}},
    {"learned", {TRANSFORMER(.positions = SB_POSITIONS_LEARNED, .positions_longest = 40)}},
    {"rotary", {TRANSFORMER(.positions = SB_POSITIONS_ROTARY)}},
    {"alibi", {TRANSFORMER(.positions = SB_POSITIONS_ALIBI)}},
    {"relative", {TRANSFORMER(.positions = SB_POSITIONS_RELATIVE)}},
    {"no positions", {TRANSFORMER(.positions = SB_POSITIONS_NONE)}},
    {"grouped", {TRANSFORMER(.key_heads = 1)}},
    {"grouped rotary", {TRANSFORMER(.key_heads = 1, .positions = SB_POSITIONS_ROTARY)}},
    {"cosine", {TRANSFORMER(.score = SB_SCORE_COSINE)}},
    {"balanced", {TRANSFORMER(.score = SB_SCORE_BALANCED)}},
    {"tied", {TRANSFORMER(), .tie_embeddings = true}},
    {"shared", {TRANSFORMER(), .share_embeddings = true}},
    {"tied and shared", {TRANSFORMER(), .tie_embeddings = true, .share_embeddings = true}},
    {"smoothed", {TRANSFORMER(), .label_smoothing = 0.1}},
    {"dropout", {TRANSFORMER(.dropout = 0.2)}},
    {"as Llama's",
     {TRANSFORMER(.key_heads = 1, .head_size = 8, .gated = true, .activation = SB_ACTIVATION_SILU,
                  .norm_kind = SB_NORM_KIND_RMS, .norm_epsilon = 1e-4, .biases = SB_BIASES_NONE,
                  .embedding_scale = 1, .positions = SB_POSITIONS_ROTARY, .rotary_base = 500,
                  .rotary_scaling = 4, .rotary_original = 16, .qk_norm = true)}},
    {"as BART's",
     {TRANSFORMER(.norm_place = SB_NORM_POST, .positions = SB_POSITIONS_LEARNED,
                  .positions_longest = 40, .position_offset = 2, .position_scale = 1,
                  .embedding_norm = true, .segments = 2)}},
    {"as T5's",
     {TRANSFORMER(.head_size = 4, .norm_kind = SB_NORM_KIND_RMS, .biases = SB_BIASES_NONE,
                  .score_scale = 1, .positions = SB_POSITIONS_BUCKETS, .position_buckets = 8,
                  .position_distance = 6)}},
    {"halves", {TRANSFORMER(.biases = SB_BIASES_QKV, .positions = SB_POSITIONS_HALVES)}},
    {"no output bias", {TRANSFORMER(.no_output_bias = true), .tie_embeddings = true}},
    {"sandwich", {TRANSFORMER(.norm_place = SB_NORM_SANDWICH)}},
    {"QK norm", {TRANSFORMER(.qk_norm = true, .key_heads = 1)}},
    {"rotary in each other layer",
     {TRANSFORMER(.positions = SB_POSITIONS_ROTARY, .rotary_interval = 2)}},
};

const struct tiny_variant *tiny_variant(int i)
{
    return i < (int)(sizeof variants / sizeof *variants) ? &variants[i] : NULL;
}

int tiny_step(void)
{
    return test_brief() ? 7 : test_slow() ? 3 : 1;
}

int tiny_first(int64_t test)
{
    return (int)(test % tiny_step());
}

sb_seq2seq_options tiny_options(void)
{
    return variants[0].options;
}

sb_vocabulary *tiny_vocabulary(void)
{
    const char *text = "abcdefg";
    sb_vocabulary_options options = {.units = SB_UNITS_CHARACTERS};
    sb_vocabulary *vocabulary = KEPT(sb_vocabulary_new(&text, 1, &options));
    MUST(sb_vocabulary_size(vocabulary) == TINY_V);
    return vocabulary;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

void tiny_draw(sb_parameters *weights, uint64_t seed, double end)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    for (int64_t i = 0; i < sb_parameters_count(weights); i++) {
        sb_tensor *t = sb_parameters_get(weights, i);
        const char *name = sb_parameters_name(weights, i);
        double mean = ends_with(name, "norm.weight") ? 1 : 0;
        double deviation = sb_tensor_rank(t) > 1 ? 1 / sqrt((double)sb_tensor_dim(t, -1)) : 0.2;
        double *values = numbers_of(t);
        for (int64_t k = 0; k < sb_tensor_size(t); k++)
            values[k] = mean + deviation * sb_random_normal(&random);
        MUST(sb_tensor_write(t, values));
    }
    sb_tensor *bias = sb_parameters_find(weights, "output.bias");
    sb_tensor_set(bias, SB_SYMBOL_END, sb_tensor_get(bias, SB_SYMBOL_END) + end);
}

struct tiny tiny_new(sb_dtype dtype, uint64_t seed, const sb_seq2seq_options *options)
{
    sb_seq2seq_options first = tiny_options();
    struct tiny tiny = {tiny_vocabulary(), KEPT(sb_parameters_of(dtype, seed)), NULL};
    tiny.model = KEPT(
        sb_seq2seq_for(tiny.weights, tiny.vocabulary, tiny.vocabulary, options ? options : &first));
    tiny_draw(tiny.weights, seed, 1);
    return tiny;
}

const char *tiny_text(uint64_t seed, int longest)
{
    static char text[1024];
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    uint32_t length = sb_random_below(&random, (uint32_t)longest + 1);
    for (uint32_t i = 0; i < length; i++)
        text[i] = (char)('a' + sb_random_below(&random, TINY_SYMBOLS));
    text[length] = '\0';
    return text;
}

sb_batch *tiny_batch(const sb_vocabulary *vocabulary, uint64_t seed, int64_t n, int longest)
{
    sb_encoded_pair *pairs = KEPT(calloc((size_t)n, sizeof *pairs));
    for (int64_t i = 0; i < n; i++) {
        int64_t length;
        int32_t *source = KEPT(sb_vocabulary_encode(
            vocabulary, tiny_text(seed + (uint64_t)i, longest), &length, NULL));
        int32_t *target = KEPT((void *)calloc((size_t)length + 1, sizeof *target));
        for (int64_t k = 0; k < length; k++)
            target[k] = source[length - 1 - k];
        pairs[i] = (sb_encoded_pair){source, target, length, length, NULL};
    }
    return KEPT(sb_batch_new(n, pairs));
}

sb_tensor **tiny_parameters(const sb_parameters *weights)
{
    sb_tensor **array = KEPT(calloc((size_t)sb_parameters_count(weights) + 2, sizeof *array));
    for (int64_t i = 0; i < sb_parameters_count(weights); i++)
        array[i] = sb_parameters_get(weights, i);
    return array;
}

/* ---- decoding ---- */

const char **texts_new(uint64_t seed, int n)
{
    const char **texts = KEPT(calloc((size_t)n, sizeof *texts));
    for (int i = 0; i < n; i++)
        texts[i] = KEPT(memory_text(tiny_text(seed + (uint64_t)i, 15)));
    return texts;
}

void decode(const struct tiny *tiny, const char *const *texts, int64_t n,
            const sb_decoding_options *options, sb_decoded *outputs)
{
    MUST(sb_decode_texts(tiny->model, texts, n, options, outputs));
    for (int64_t i = 0; i < n; i++)
        KEPT(outputs[i].ids);
}

bool same_symbols(const sb_decoded *a, const sb_decoded *b)
{
    return a->length == b->length && a->ended == b->ended &&
           memcmp(a->ids, b->ids, (size_t)a->length * sizeof *a->ids) == 0;
}

bool same_bits(const sb_decoded *a, const sb_decoded *b)
{
    return same_symbols(a, b) && memcmp(&a->score, &b->score, sizeof a->score) == 0 &&
           memcmp(&a->log_probability, &b->log_probability, sizeof a->score) == 0;
}

/* Outputs end at different steps, and the caches grow on the way. */
void expect_bits_of_single_steps(const sb_decoding_options *options)
{
    enum { SOME = 5 };
    device_needed();
    const char **texts = texts_new(90, SOME);
    for (int v = tiny_first(options->longest); tiny_variant(v); v += tiny_step()) {
        struct tiny tiny = tiny_new(v % 2 ? SB_F64 : SB_F32, 4, &tiny_variant(v)->options);
        sb_decoded single[SOME], ahead[SOME];
        device_steps_ahead = 0;
        decode(&tiny, texts, SOME, options, single);
        device_steps_ahead = DEVICE_STEPS_AHEAD;
        decode(&tiny, texts, SOME, options, ahead);
        for (int i = 0; i < SOME; i++)
            cr_expect(same_bits(&single[i], &ahead[i]), "%s, text %d: %.17g, not %.17g",
                      tiny_variant(v)->name, i, ahead[i].score, single[i].score);
    }
}

sb_batch *batch_of(const struct tiny *tiny, const char *text, const sb_decoded *output)
{
    int64_t length;
    int32_t *source = KEPT(sb_vocabulary_encode(tiny->vocabulary, text, &length, NULL));
    sb_encoded_pair pair = {source, output->ids, length, output->length, NULL};
    return KEPT(sb_batch_new(1, &pair));
}

double *log_probabilities(const struct tiny *tiny, const char *text, const sb_decoded *output)
{
    sb_batch *batch = batch_of(tiny, text, output);
    TAPE(SB_RECORD);
    sb_tensor *y = MUST(sb_log_softmax(sb_seq2seq_logits(tiny->model, batch, NULL)));
    return numbers_of(y);
}
