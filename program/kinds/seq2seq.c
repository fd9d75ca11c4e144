/* Training encoder-decoders, on pairs of texts. */
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/text/buffer.h"
#include "models/text/metrics.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/pairs.h"
#include "program/run/kind.h"
#include "program/run/task_pairs.h"
#include "program/screen/progress.h"
#include "program/screen/unknown.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* What it is trained and evaluated on. */
struct seq2seq_data {
    struct pairs_data pairs;
    sb_pairs *sample; /* those of the held-out pairs that are decoded; NULL: all */
    sb_held_pairs scored;
    bool words; /* BLEU, which counts groups of four words, says something about the targets */
};

static bool seq2seq_open_texts(struct training *t, const struct training_request *r)
{
    enum { HELD_OUT = 500 }; /* of a task, when evaluations decode none */
    struct seq2seq_data *x = t->data;
    const int64_t limit = t->settings.evaluate_pairs;
    if (r->task)
        x->pairs.held = task_pairs(r->task, &t->settings, SB_PART_VALID, limit ? limit : HELD_OUT);
    return pairs_open(t, r);
}

/* ---- vocabularies and batches ---- */

static sb_data *seq2seq_encode(const struct training *t, const sb_pairs *pairs,
                               const sb_data_options *options)
{
    const struct pairs_data *x = t->data;
    return sb_data_new(pairs, x->source, x->target, options);
}

/* The endless pairs of a built-in task, with their vocabularies. */
static bool seq2seq_open_task(struct training *t)
{
    struct pairs_data *x = t->data;
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    sb_task task;
    if (sb_task_find(t->task, &task))
        x->data = sb_data_task_with(task, &t->settings.task, &options);
    x->source = sb_vocabulary_retain(sb_data_source(x->data));
    x->target = sb_vocabulary_retain(sb_data_target(x->data));
    return x->data != NULL;
}

/* A task has vocabularies of its own. */
static bool seq2seq_check_words(const struct training *t)
{
    const struct pairs_data *x = t->data;
    if (!t->loaded || !t->task)
        return true;
    const sb_seq2seq *model = t->loaded->subject.self;
    return (description_same_vocabulary(x->source, sb_seq2seq_source(model)) &&
            description_same_vocabulary(x->target, sb_seq2seq_target(model))) ||
           sb_fail("the model of --from has other vocabularies than --task %s; train it on files "
                   "with --data, which its own vocabularies encode",
                   t->task);
}

/* The digits of a built-in task are no words. */
static bool seq2seq_has_words(const struct training *t, const sb_vocabulary *vocabulary)
{
    const sb_units units = sb_vocabulary_units(vocabulary);
    return !t->task && (units == SB_UNITS_WORDS || units == SB_UNITS_BPE);
}

/* Chooses the pairs that evaluations decode by hashes of the sources: files are often sorted. */
static bool seq2seq_choose_scored(struct seq2seq_data *x, int64_t limit)
{
    const sb_pairs *all = pairs_to_decode(&x->pairs);
    sb_pairs *rest;
    x->scored.pairs = all;
    if (limit == 0 || sb_pairs_count(all) <= limit)
        return true;
    if (!sb_pairs_divide(all, limit, &rest, &x->sample))
        return false;
    x->scored.pairs = x->sample;
    sb_pairs_free(rest);
    return true;
}

/* Whether any of the texts has four words: otherwise the BLEU of all outputs is 0. */
static bool seq2seq_has_four_words(const sb_pairs *pairs)
{
    const char *const *targets = sb_pairs_targets(pairs);
    sb_bleu itself;
    return sb_bleu_corpus(targets, targets, sb_pairs_count(pairs), &itself) &&
           itself.total[SB_BLEU_ORDERS - 1] > 0;
}

/* From words to words it is a translation, hardly any of which equals its one reference. */
static best_score seq2seq_usual_best(const struct training *t)
{
    const struct seq2seq_data *x = t->data;
    return !t->scored                                          ? BEST_LOSS
           : x->words && seq2seq_has_words(t, x->pairs.source) ? BEST_BLEU
                                                               : BEST_EXACT;
}

static bool seq2seq_open_data(struct training *t)
{
    struct seq2seq_data *x = t->data;
    if (!(t->task ? seq2seq_open_task(t) : pairs_find_vocabularies(t)) || !pairs_encode(t) ||
        !seq2seq_choose_scored(x, t->settings.evaluate_pairs))
        return false;
    t->scored = t->settings.evaluate_pairs > 0 ? &x->scored : NULL;
    x->words = seq2seq_has_words(t, x->pairs.target) && seq2seq_has_four_words(x->scored.pairs);
    t->usual_best = seq2seq_usual_best(t);
    return seq2seq_check_words(t);
}

static void seq2seq_close(struct training *t)
{
    struct seq2seq_data *x = t->data;
    sb_pairs_free(x->sample);
    pairs_close(t);
}

/* ---- what it says of itself ---- */

/* How many symbols of the texts a vocabulary lacks. */
static int64_t seq2seq_count_unknown(const sb_vocabulary *vocabulary, const char *const *texts,
                                     int64_t n)
{
    int64_t unknown = 0;
    for (int64_t i = 0; i < n; i++)
        unknown += unknown_count(vocabulary, texts[i]);
    return unknown;
}

static void seq2seq_describe_unknown(const struct training *t, FILE *out)
{
    const sb_pairs *pairs = pairs_to_train(t->data);
    if (!pairs)
        return;
    const sb_seq2seq *model = t->subject.self;
    const int64_t n = sb_pairs_count(pairs),
                  source =
                      seq2seq_count_unknown(sb_seq2seq_source(model), sb_pairs_sources(pairs), n),
                  target =
                      seq2seq_count_unknown(sb_seq2seq_target(model), sb_pairs_targets(pairs), n);
    if (source + target > 0)
        fprintf(out,
                "warning    %s symbols of the data (%s of targets) are unknown to its "
                "vocabularies, and the model cannot learn them\n",
                count_text(source + target).text, count_text(target).text);
}

/* BLEU counts words; of other units it is shown where it decides. */
static void seq2seq_measure(const struct training *t, const sb_evaluation *e, int digits,
                            char *text, size_t size)
{
    const struct seq2seq_data *x = t->data;
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
    if (!isnan(e->bleu) && (t->best == BEST_BLEU || x->words))
        snprintf(text + used, size - (size_t)used, digits > 1 ? ", BLEU %.*f" : "  BLEU %.*f",
                 digits, e->bleu);
}

const struct training_kind training_seq2seq = {.title = "an encoder-decoder",
                                               .trained = "an encoder-decoder on pairs of texts",
                                               .file = "lines of source, tab, target",
                                               .items = "pairs",
                                               .model = &seq2seq_kind,
                                               .two_files = true,
                                               .data_size = sizeof(struct seq2seq_data),
                                               .open_texts = seq2seq_open_texts,
                                               .open_data = seq2seq_open_data,
                                               .add_words = pairs_add_words,
                                               .close = seq2seq_close,
                                               .describe = pairs_describe,
                                               .scores = 1 << BEST_LOSS | 1 << BEST_EXACT |
                                                         1 << BEST_ERROR | 1 << BEST_BLEU,
                                               .measure = seq2seq_measure,
                                               .add_item = pairs_add_item,
                                               .evaluate = evaluate_pairs,
                                               .encode = seq2seq_encode,
                                               .watch = pairs_watch,
                                               .describe_unknown = seq2seq_describe_unknown,
                                               .task_pairs = task_pairs,
                                               .report = &report_pairs};
