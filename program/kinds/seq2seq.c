/* Training encoder-decoders, on pairs of texts. */
#include "models/description_parts.h"
#include "models/seq2seq_kind.h"
#include "models/text/buffer.h"
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
    struct divided_pairs pairs;
    sb_pairs *sample; /* those of the held-out pairs that are decoded; NULL: all */
    sb_data *train, *held;
    sb_held_pairs scored;
};

static const sb_pairs *seq2seq_to_learn(const struct training *t)
{
    const struct seq2seq_data *x = t->data;
    return pairs_to_train(&x->pairs);
}

/* Chooses the pairs that evaluations decode by hashes of the sources: files are often sorted. */
static bool seq2seq_choose_sample(struct seq2seq_data *x, int64_t limit)
{
    sb_pairs *rest;
    if (limit == 0 || sb_pairs_count(x->pairs.held) <= limit)
        return true;
    if (!sb_pairs_divide(x->pairs.held, limit, &rest, &x->sample))
        return false;
    sb_pairs_free(rest);
    return true;
}

static bool seq2seq_open_texts(struct training *t, const struct training_request *r)
{
    enum { HELD_OUT = 500 }; /* of a task, when evaluations decode none */
    struct seq2seq_data *x = t->data;
    const int64_t limit = t->settings.evaluate_pairs;
    if (r->task)
        x->pairs.held = task_pairs(r->task, &t->settings, SB_PART_VALID, limit ? limit : HELD_OUT);
    else if (!pairs_open(&x->pairs, r))
        return false;
    t->held_pairs = x->pairs.held;
    if (!x->pairs.held || !seq2seq_choose_sample(x, limit))
        return false;
    t->progress.data_hash = pairs_mark(&x->pairs);
    return true;
}

/* ---- vocabularies and batches ---- */

static sb_vocabulary *seq2seq_learn(const struct settings *s, sb_units units,
                                    const char *const *texts, int64_t count)
{
    sb_vocabulary_options options = {.units = units, .size = s->vocabulary};
    return sb_vocabulary_new(texts, count, &options);
}

static sb_vocabulary *seq2seq_learn_joint(const struct training *t)
{
    int64_t n = sb_pairs_count(seq2seq_to_learn(t));
    const char **both = memory_new((size_t)(2 * n) * sizeof(char *));
    if (!both)
        return sb_fail("out of memory");
    memcpy(both, sb_pairs_sources(seq2seq_to_learn(t)), (size_t)n * sizeof(char *));
    memcpy(both + n, sb_pairs_targets(seq2seq_to_learn(t)), (size_t)n * sizeof(char *));
    sb_vocabulary *joint = seq2seq_learn(&t->settings, t->settings.source_units, both, 2 * n);
    memory_free(both);
    return joint;
}

/* The vocabularies of files, retained: those of the model that is resumed, or new ones. */
static bool seq2seq_find_vocabularies(const struct training *t, sb_vocabulary **source,
                                      sb_vocabulary **target)
{
    const struct settings *s = &t->settings;
    int64_t n = sb_pairs_count(seq2seq_to_learn(t));
    if (t->loaded) {
        *source = sb_vocabulary_retain(sb_seq2seq_source(t->loaded->subject.self));
        *target = sb_vocabulary_retain(sb_seq2seq_target(t->loaded->subject.self));
    } else if (s->joint_vocabulary) {
        *source = seq2seq_learn_joint(t);
        *target = sb_vocabulary_retain(*source);
    } else {
        *source = seq2seq_learn(s, s->source_units, sb_pairs_sources(seq2seq_to_learn(t)), n);
        *target = *source
                      ? seq2seq_learn(s, s->target_units, sb_pairs_targets(seq2seq_to_learn(t)), n)
                      : NULL;
    }
    return *target != NULL;
}

static sb_data *seq2seq_data_from_files(const struct training *t, const sb_data_options *options)
{
    sb_vocabulary *source = NULL, *target = NULL;
    sb_data *data = seq2seq_find_vocabularies(t, &source, &target)
                        ? sb_data_new(seq2seq_to_learn(t), source, target, options)
                        : NULL;
    sb_vocabulary_release(source);
    sb_vocabulary_release(target);
    return data;
}

static int64_t seq2seq_longest(const struct training *t)
{
    sb_transformer_options o = {0};
    sb_transformer_complete(&t->settings.model.transformer, &o);
    int64_t longest = t->settings.data.longest;
    bool learned = o.positions == SB_POSITIONS_LEARNED && o.longest > 1 && o.longest <= longest;
    return learned ? o.longest - 1 : longest;
}

/* A task has vocabularies of its own. */
static bool seq2seq_check_words(const struct training *t)
{
    const struct seq2seq_data *x = t->data;
    if (!t->loaded || !t->task)
        return true;
    const sb_seq2seq *model = t->loaded->subject.self;
    return (description_same_vocabulary(sb_data_source(x->train), sb_seq2seq_source(model)) &&
            description_same_vocabulary(sb_data_target(x->train), sb_seq2seq_target(model))) ||
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

/* From words to words it is a translation, hardly any of which equals its one reference. */
static best_score seq2seq_usual_best(const struct training *t)
{
    const struct seq2seq_data *x = t->data;
    return !t->scored ? BEST_LOSS
           : seq2seq_has_words(t, sb_data_source(x->train)) &&
                   seq2seq_has_words(t, sb_data_target(x->train))
               ? BEST_BLEU
               : BEST_EXACT;
}

static bool seq2seq_open_data(struct training *t)
{
    struct seq2seq_data *x = t->data;
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    options.longest = seq2seq_longest(t);
    sb_task task;
    if (!t->task)
        x->train = seq2seq_data_from_files(t, &options);
    else if (sb_task_find(t->task, &task))
        x->train = sb_data_task_with(task, &t->settings.task, &options);
    if (x->train)
        x->held = sb_data_new(x->pairs.held, sb_data_source(x->train), sb_data_target(x->train),
                              &options);
    if (!x->held)
        return false;
    t->source = sb_data_as_source(x->train);
    t->held_source = sb_data_as_source(x->held);
    x->scored.pairs = x->sample ? x->sample : x->pairs.held;
    t->scored = t->settings.evaluate_pairs > 0 ? &x->scored : NULL;
    t->usual_best = seq2seq_usual_best(t);
    t->epoch_items = sb_data_pairs(x->train);
    return seq2seq_check_words(t);
}

static bool seq2seq_add_words(const struct training *t, sb_description *d)
{
    const struct seq2seq_data *x = t->data;
    return sb_description_add_vocabulary(d, "source", sb_data_source(x->train)) &&
           sb_description_add_vocabulary(d, "target", sb_data_target(x->train));
}

static void seq2seq_close(struct training *t)
{
    struct seq2seq_data *x = t->data;
    sb_data_free(x->train);
    sb_data_free(x->held);
    sb_pairs_free(x->sample);
    pairs_close(&x->pairs);
}

/* ---- what it says of itself ---- */

static void seq2seq_describe_side(FILE *out, const char *side, const sb_vocabulary *vocabulary,
                                  int64_t longest)
{
    fprintf(out, "%-10s %s, %s symbols", side,
            sb_units_description(sb_vocabulary_units(vocabulary)),
            count_text(sb_vocabulary_symbols(vocabulary)).text);
    if (longest > 0)
        fprintf(out, ", longest %s", count_text(longest).text);
    fputc('\n', out);
}

static void seq2seq_describe(const struct training *t, const struct training_request *r, FILE *out)
{
    const struct seq2seq_data *x = t->data;
    if (t->task)
        fprintf(out, "task       %s; %s pairs held out\n", t->task,
                count_text(sb_pairs_count(x->pairs.held)).text);
    else
        pairs_describe(&x->pairs, r, sb_data_left_out(x->train), seq2seq_longest(t), out);
    seq2seq_describe_side(out, "source", sb_data_source(x->train),
                          sb_data_longest_source(x->train));
    seq2seq_describe_side(out, "target", sb_data_target(x->train),
                          sb_data_longest_target(x->train));
}

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
    const sb_pairs *pairs = seq2seq_to_learn(t);
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
    if (!isnan(e->bleu) && (t->best == BEST_BLEU || seq2seq_has_words(t, sb_data_target(x->train))))
        snprintf(text + used, size - (size_t)used, digits > 1 ? ", BLEU %.*f" : "  BLEU %.*f",
                 digits, e->bleu);
}

static bool seq2seq_add_item(struct buffer *buffer, const struct training *t, const sb_batch *batch,
                             int64_t item)
{
    const struct seq2seq_data *x = t->data;
    return bad_batch_add_text(buffer, sb_data_source(x->train), batch, "source", "source_lengths",
                              item) &&
           buffer_add_text(buffer, "\t") &&
           bad_batch_add_text(buffer, sb_data_target(x->train), batch, "target_out",
                              "target_lengths", item);
}

static bool seq2seq_encode(const struct training *t, int64_t index, sb_encoded_pair *pair)
{
    const struct seq2seq_data *x = t->data;
    const sb_pairs *held = x->pairs.held;
    pair->vocabulary = sb_data_target(x->train);
    pair->source = sb_vocabulary_encode(sb_data_source(x->train), sb_pairs_source(held, index),
                                        &pair->source_length, NULL);
    pair->target = sb_vocabulary_encode(sb_data_target(x->train), sb_pairs_target(held, index),
                                        &pair->target_length, NULL);
    return pair->source && pair->target;
}

static bool seq2seq_watch(struct training *t)
{
    sb_encoded_pair pairs[MOST_WATCHED] = {{0}};
    int64_t index[MOST_WATCHED];
    const struct seq2seq_data *x = t->data;
    const int64_t n = pairs_short(&x->pairs, MOST_WATCHED, index);
    bool ok = n == 0 || pairs_choose_drawn(&x->pairs, index[0], t);
    for (int64_t i = 0; ok && i < n; i++)
        ok = seq2seq_encode(t, index[i], &pairs[i]);
    t->watched = ok && n > 0 ? sb_batch_new(n, pairs) : NULL;
    for (int64_t i = 0; i < n; i++) {
        sb_free((void *)(uintptr_t)pairs[i].source);
        sb_free((void *)(uintptr_t)pairs[i].target);
    }
    return ok && (n == 0 || t->watched);
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
                                               .add_words = seq2seq_add_words,
                                               .close = seq2seq_close,
                                               .describe = seq2seq_describe,
                                               .scores = 1 << BEST_LOSS | 1 << BEST_EXACT |
                                                         1 << BEST_ERROR | 1 << BEST_BLEU,
                                               .measure = seq2seq_measure,
                                               .add_item = seq2seq_add_item,
                                               .evaluate = evaluate_pairs,
                                               .watch = seq2seq_watch,
                                               .describe_unknown = seq2seq_describe_unknown,
                                               .task_pairs = task_pairs,
                                               .report = &report_pairs};
