#include "models/evaluation.h"
#include "autograd/tape.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>

static bool add_cost(const sb_seq2seq *model, const sb_batch *batch, double *sum)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *cost = batch ? sb_seq2seq_cost(model, batch) : NULL;
    if (cost)
        *sum += sb_value(cost);
    return sb_tape_end(&tape) && cost;
}

/* Goes to the beginning of an epoch. */
static bool begin(const sb_seq2seq *model, sb_data *data)
{
    if (!model || !data)
        return fail_null("evaluate", model ? "data" : "model");
    if (sb_data_pairs(data) == 0)
        return sb_fail("evaluate: the pairs of a task never end; there is no epoch to measure");
    return sb_data_seek(data, (sb_data_position){0, 0});
}

double sb_evaluate_loss(const sb_seq2seq *model, sb_data *data)
{
    double sum = 0;
    int64_t targets = 0;
    if (!begin(model, data))
        return NAN;
    for (int64_t b = 0, batches = sb_data_batches(data); b < batches; b++) {
        const sb_batch *batch = sb_data_next(data);
        if (!add_cost(model, batch, &sum))
            return NAN;
        targets += batch->targets;
    }
    if (isfinite(sum))
        return sum / (double)targets;
    sb_fail("evaluate: the loss is not finite");
    return NAN;
}

static sb_units score_units(const sb_seq2seq *model)
{
    sb_units units = sb_vocabulary_units(sb_seq2seq_target(model));
    return units == SB_UNITS_BPE ? SB_UNITS_WORDS : units;
}

bool sb_evaluate_texts(const sb_seq2seq *model, const sb_pairs *pairs, int64_t first, int64_t count,
                       const sb_decoding_options *options, sb_text_score *score, char *outputs[])
{
    if (!model || !pairs || !score)
        return fail_null("evaluate", !model ? "model" : !pairs ? "pairs" : "score");
    if (first < 0 || count < 1 || first + count > sb_pairs_count(pairs))
        return sb_fail("evaluate: pairs %lld to %lld are not in 0..%lld", (long long)first,
                       (long long)(first + count - 1), (long long)sb_pairs_count(pairs) - 1);
    char **text = outputs ? outputs : memory_new((size_t)count * sizeof(char *));
    if (!text)
        return sb_fail("evaluate: out of memory");
    const char *const *sources = sb_pairs_sources(pairs) + first;
    const char *const *targets = sb_pairs_targets(pairs) + first;
    bool decoded = sb_translate_texts(model, sources, count, options, text);
    bool ok = decoded && sb_score_texts(sources, targets, (const char *const *)text, count,
                                        score_units(model), score);
    for (int64_t i = 0; decoded && i < count && (!ok || !outputs); i++)
        sb_free(text[i]);
    if (!outputs)
        memory_free(text);
    return ok;
}
