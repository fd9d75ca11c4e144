#include "models/translation.h"
#include "models/decoding/generator.h"
#include "models/score.h"
#include "models/text/metrics.h"
#include "tensor/buffer.h"
#include "tensor/device.h"
#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/ranks.h"
#include <stdlib.h>
#include <string.h>

bool sb_decode_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                     const sb_decoding_options *options, sb_decoded outputs[])
{
    if (!model)
        return fail_null("decode", "model");
    const sb_model subject = sb_seq2seq_as_model((sb_seq2seq *)(uintptr_t)model);
    return sb_model_decode(&subject, texts, n, options, outputs);
}

bool sb_translate_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                        const sb_decoding_options *options, char *outputs[])
{
    if (!model || (n > 0 && !outputs))
        return fail_null("translate", model ? "outputs" : "model");
    for (int64_t i = 0; i < n; i++)
        outputs[i] = NULL;
    sb_decoded *decoded = memory_new((size_t)(n > 0 ? n : 1) * sizeof *decoded);
    if (!decoded)
        return sb_fail("translate: out of memory for %lld texts", (long long)n);
    bool ok = sb_decode_texts(model, texts, n, options, decoded) &&
              generator_texts(sb_seq2seq_target(model), n, decoded, outputs);
    sb_decoded_free(n, decoded);
    memory_free(decoded);
    return ok;
}

char *sb_translate(const sb_seq2seq *model, const char *text, const sb_decoding_options *options)
{
    char *translation = NULL;
    return sb_translate_texts(model, &text, 1, options, &translation) ? translation : NULL;
}

/* ---- scores ---- */

/* Copies `count` texts that lie one after the other. */
static bool translation_score_copy_texts(const char *run, int64_t count, char *text[])
{
    for (int64_t i = 0; i < count; i++, run += strlen(run) + 1) {
        text[i] = memory_text(run);
        if (!text[i])
            return sb_fail("evaluate: out of memory");
    }
    return true;
}

/* Sends the texts of one rank to all, one after the other. */
static bool translation_score_broadcast_texts(sb_communicator *c, int root, int64_t count,
                                              char *text[])
{
    const bool own = sb_communicator_rank(c) == root;
    struct buffer run = {0};
    bool ok = true;
    for (int64_t i = 0; ok && own && i < count; i++)
        ok = buffer_add(&run, text[i], strlen(text[i]) + 1);
    uint64_t bytes = run.size;
    ok = (ok || sb_fail("evaluate: out of memory")) &&
         sb_communicator_broadcast(c, root, &bytes, sizeof bytes);
    char *come = ok && !own ? memory_new((size_t)bytes + 1) : NULL;
    ok =
        ok && (own || come || sb_fail("evaluate: out of memory")) &&
        (bytes == 0 || sb_communicator_broadcast(c, root, own ? run.bytes : come, (size_t)bytes)) &&
        (own || translation_score_copy_texts(come, count, text));
    memory_free(come);
    buffer_free(&run);
    return ok;
}

/* Each rank decodes its share of the sources, and gets the outputs of all. */
static bool translation_score_translate(sb_communicator *c, const sb_seq2seq *model,
                                        const char *const *sources, int64_t count,
                                        const sb_decoding_options *options, char *text[])
{
    const int rank = sb_communicator_rank(c);
    const int64_t from = communicator_share(c, rank, count),
                  to = communicator_share(c, rank + 1, count);
    bool ok =
        from == to || sb_translate_texts(model, sources + from, to - from, options, text + from);
    for (int k = 0; ok && sb_communicator_size(c) > 1 && k < sb_communicator_size(c); k++) {
        const int64_t first = communicator_share(c, k, count);
        ok = translation_score_broadcast_texts(c, k, communicator_share(c, k + 1, count) - first,
                                               text + first);
    }
    return ok;
}

bool translation_score(sb_communicator *c, const sb_seq2seq *model, const sb_pairs *pairs,
                       const sb_decoding_options *options, sb_text_score *score, char *text[])
{
    if (!model || !pairs)
        return fail_null("evaluate", model ? "pairs" : "model");
    const int64_t n = sb_pairs_count(pairs);
    const char *const *sources = sb_pairs_sources(pairs);
    if (translation_score_translate(c, model, sources, n, options, text) &&
        sb_score_texts(sources, sb_pairs_targets(pairs), (const char *const *)text, n,
                       sb_vocabulary_units(sb_seq2seq_target(model)), score))
        return true;
    for (int64_t i = 0; i < n; i++) {
        sb_free(text[i]);
        text[i] = NULL;
    }
    return false;
}

bool translation_evaluate(sb_communicator *c, const sb_seq2seq *model, const sb_held_pairs *held,
                          sb_evaluation *evaluation)
{
    const int64_t n = sb_pairs_count(held->pairs);
    char **text = memory_new((size_t)n * sizeof *text);
    sb_text_score score;
    sb_bleu bleu;
    const bool decoded = (text || sb_fail("evaluate: out of memory")) &&
                         translation_score(c, model, held->pairs, held->options, &score, text);
    const bool ok = decoded && sb_bleu_corpus((const char *const *)text,
                                              sb_pairs_targets(held->pairs), n, &bleu);
    for (int64_t i = 0; decoded && i < n; i++)
        sb_free(text[i]);
    memory_free(text);
    if (!ok)
        return false;
    evaluation->items = score.sources;
    evaluation->error = score.error;
    evaluation->unit_error = score.unit_error;
    evaluation->bleu = bleu.score;
    return true;
}

/* ---- errors ---- */

static int worst_first(const void *a_, const void *b_)
{
    const struct translation_error *a = a_, *b = b_;
    if (a->distance != b->distance)
        return a->distance > b->distance ? -1 : 1;
    return a->pair < b->pair ? -1 : a->pair > b->pair;
}

/* In symbols; -1 after a failure. */
static int64_t distance_of(const sb_vocabulary *vocabulary, const char *a, const char *b)
{
    int64_t n, m, distance = -1;
    int32_t *x = sb_vocabulary_encode(vocabulary, a, &n, NULL);
    int32_t *y = x ? sb_vocabulary_encode(vocabulary, b, &m, NULL) : NULL;
    if (y)
        distance = sb_edit_distance(x, n, y, m);
    sb_free(x);
    sb_free(y);
    return distance;
}

struct translation_error *translation_errors(const sb_vocabulary *vocabulary, const sb_pairs *pairs,
                                             char *const outputs[], int64_t n, int64_t *wrong)
{
    struct translation_error *found = memory_new((size_t)(n + 1) * sizeof *found);
    bool ok = found || sb_fail("out of memory for %lld outputs", (long long)n);
    *wrong = 0;
    for (int64_t i = 0; ok && i < n; i++) {
        const char *expected = sb_pairs_target(pairs, i);
        if (strcmp(outputs[i], expected) == 0)
            continue;
        found[*wrong] =
            (struct translation_error){i, distance_of(vocabulary, outputs[i], expected)};
        ok = found[(*wrong)++].distance >= 0;
    }
    if (ok) {
        qsort(found, (size_t)*wrong, sizeof *found, worst_first);
        return found;
    }
    memory_free(found);
    return NULL;
}
