#include "tests/support/decoding.h"
#include "models/decoding/device_steps.h"

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
    sb_use_device(device_cuda());
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
    sb_use_device(NULL);
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
