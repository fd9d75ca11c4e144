/* Training encoder-decoders, on pairs of texts. */
#include "models/seq2seq_kind.h"
#include "models/text/buffer.h"
#include "program/kinds/evaluate.h"
#include "program/run/kind.h"
#include "program/screen/progress.h"
#include <math.h>

static bool seq2seq_open_data(struct training *t)
{
    if (!training_open_data(t))
        return false;
    t->source = sb_data_as_source(t->data);
    t->held_source = sb_data_as_source(t->held_data);
    t->held_pairs.pairs = t->sample ? t->sample : t->held;
    t->scored = t->settings.evaluate_pairs > 0 ? &t->held_pairs : NULL;
    return true;
}

static bool seq2seq_open_model(struct training *t)
{
    sb_seq2seq *model = sb_seq2seq_new(t->weights, t->data, &t->settings.model);
    t->subject = sb_seq2seq_as_model(model);
    return model != NULL;
}

static void seq2seq_close(struct training *t)
{
    sb_data_free(t->data);
    sb_data_free(t->held_data);
    sb_pairs_free(t->read);
    sb_pairs_free(t->rest);
    sb_pairs_free(t->held);
    sb_pairs_free(t->sample);
}

static int64_t seq2seq_batch_items(const struct training *t)
{
    return t->settings.data.batch_pairs;
}

static int64_t seq2seq_epoch_batches(const struct training *t)
{
    return sb_data_pairs(t->data) / t->settings.data.batch_pairs + 1;
}

/* The digits of a built-in task are no words. */
static bool seq2seq_has_words(const struct training *t, const sb_vocabulary *vocabulary)
{
    const sb_units units = sb_vocabulary_units(vocabulary);
    return !t->task && (units == SB_UNITS_WORDS || units == SB_UNITS_BPE);
}

/* From words to words it is a translation, hardly any of which equals its one reference. */
static best_score seq2seq_best(const struct training *t)
{
    const sb_seq2seq *model = t->subject.self;
    if (!t->scored)
        return BEST_LOSS;
    return seq2seq_has_words(t, sb_seq2seq_source(model)) &&
                   seq2seq_has_words(t, sb_seq2seq_target(model))
               ? BEST_BLEU
               : BEST_EXACT;
}

/* BLEU counts words; of other units it is shown where it decides. */
static void seq2seq_measure(const struct training *t, const sb_evaluation *e, int digits,
                            char *text, size_t size)
{
    const sb_seq2seq *model = t->subject.self;
    int used = 0;
    text[0] = '\0';
    if (isnan(e->error))
        return;
    used += snprintf(text, size, digits > 1 ? ", %.*f %% exact" : "  exact %.*f %%", digits,
                     100 * (1 - e->error));
    if (t->best == BEST_ERROR && !isnan(e->unit_error))
        used += snprintf(text + used, size - (size_t)used,
                         digits > 1 ? ", unit error rate %.*f %%" : "  unit errors %.*f %%", digits,
                         100 * e->unit_error);
    if (!isnan(e->bleu) && (t->best == BEST_BLEU || seq2seq_has_words(t, sb_seq2seq_target(model))))
        snprintf(text + used, size - (size_t)used, digits > 1 ? ", BLEU %.*f" : "  BLEU %.*f",
                 digits, e->bleu);
}

/* The text of row b of ids (B, L), of which `length` count. */
static bool seq2seq_add_row(struct buffer *buffer, const sb_vocabulary *vocabulary, sb_tensor *ids,
                            int64_t b, int64_t length)
{
    const int32_t *row = (const int32_t *)sb_tensor_data(ids) + b * sb_tensor_dim(ids, 1);
    char *text = sb_vocabulary_decode(vocabulary, row, length);
    bool ok = text && buffer_add_text(buffer, text);
    sb_free(text);
    return ok;
}

static char *seq2seq_batch_text(const struct training *t, const sb_batch *batch)
{
    const sb_seq2seq *model = t->subject.self;
    struct buffer buffer = {0};
    bool ok = true;
    for (int64_t b = 0; ok && b < batch->items; b++)
        ok = seq2seq_add_row(&buffer, sb_seq2seq_source(model), sb_batch_get(batch, "source"), b,
                             (int64_t)sb_tensor_get(sb_batch_get(batch, "source_lengths"), b)) &&
             buffer_add_text(&buffer, "\t") &&
             seq2seq_add_row(&buffer, sb_seq2seq_target(model), sb_batch_get(batch, "target_out"),
                             b, (int64_t)sb_tensor_get(sb_batch_get(batch, "target_lengths"), b)) &&
             buffer_add_text(&buffer, "\n");
    char *text = ok ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return text;
}

static bool seq2seq_encode(const struct training *t, int64_t index, sb_encoded_pair *pair)
{
    pair->source = sb_vocabulary_encode(sb_data_source(t->data), sb_pairs_source(t->held, index),
                                        &pair->source_length, NULL);
    pair->target = sb_vocabulary_encode(sb_data_target(t->data), sb_pairs_target(t->held, index),
                                        &pair->target_length, NULL);
    return pair->source && pair->target;
}

static bool seq2seq_watch(struct training *t)
{
    sb_encoded_pair pairs[MOST_WATCHED] = {{0}};
    int64_t index[MOST_WATCHED];
    const int64_t n = training_short_pairs(t, MOST_WATCHED, index);
    bool ok = n > 0 || training_fail_watch();
    for (int64_t i = 0; ok && i < n; i++)
        ok = seq2seq_encode(t, index[i], &pairs[i]);
    t->watched = ok ? sb_batch_new(n, pairs) : NULL;
    for (int64_t i = 0; i < n; i++) {
        sb_free((void *)(uintptr_t)pairs[i].source);
        sb_free((void *)(uintptr_t)pairs[i].target);
    }
    return t->watched != NULL;
}

static const sb_pairs *seq2seq_held(const struct training *t)
{
    return t->held;
}

const struct training_kind training_seq2seq = {.name = "seq2seq",
                                               .title = "an encoder-decoder",
                                               .items = "pairs",
                                               .model = &seq2seq_kind,
                                               .two_files = true,
                                               .open_texts = training_open_texts,
                                               .open_data = seq2seq_open_data,
                                               .open_model = seq2seq_open_model,
                                               .close = seq2seq_close,
                                               .batch_items = seq2seq_batch_items,
                                               .epoch_batches = seq2seq_epoch_batches,
                                               .describe = training_describe_pairs,
                                               .scores = 1 << BEST_LOSS | 1 << BEST_EXACT |
                                                         1 << BEST_ERROR | 1 << BEST_BLEU,
                                               .best = seq2seq_best,
                                               .measure = seq2seq_measure,
                                               .batch_text = seq2seq_batch_text,
                                               .evaluate = evaluate_pairs,
                                               .watch = seq2seq_watch,
                                               .task_pairs = training_task_pairs,
                                               .report_text = training_short_source,
                                               .held = seq2seq_held,
                                               .report = &report_pairs};
