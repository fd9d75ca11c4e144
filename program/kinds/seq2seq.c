/* Encoder-decoders, trained and evaluated on pairs of texts. */
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/score.h"
#include "models/text/metrics.h"
#include "models/training/evaluation.h"
#include "program/kinds/pairs.h"
#include "program/run/kind.h"
#include "program/run/log.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/stream.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* What it is trained and evaluated on. */
struct seq2seq_data {
    struct pairs_data pairs;
    sb_held_pairs scored;
    bool words; /* BLEU, which counts groups of four words, says something about the targets */
};

static bool seq2seq_open_texts(struct training *t)
{
    const struct training_request *r = t->request;
    enum { HELD_OUT = 500 }; /* of a task, when evaluations decode none */
    struct seq2seq_data *x = t->data;
    const int64_t limit = t->settings.evaluate_pairs;
    if (r->task)
        x->pairs.held = task_pairs(r->task, &t->settings, SB_PART_VALID, limit ? limit : HELD_OUT);
    return pairs_open(t);
}

/* ---- vocabularies and batches ---- */

static sb_vocabulary *seq2seq_learn(const struct settings *s, sb_units units,
                                    const char *const *texts, int64_t count)
{
    sb_vocabulary_options options = {.units = units, .size = s->vocabulary};
    return sb_vocabulary_new(texts, count, &options);
}

static sb_vocabulary *seq2seq_learn_joint(const struct settings *s, const sb_pairs *pairs)
{
    const int64_t n = sb_pairs_count(pairs);
    const char **both = memory_new((size_t)(2 * n) * sizeof(char *));
    if (!both)
        return sb_fail("out of memory");
    memcpy(both, sb_pairs_sources(pairs), (size_t)n * sizeof(char *));
    memcpy(both + n, sb_pairs_targets(pairs), (size_t)n * sizeof(char *));
    sb_vocabulary *joint = seq2seq_learn(s, s->source_units, both, 2 * n);
    memory_free(both);
    return joint;
}

/* Takes the vocabularies of the model that is resumed, or learns them. */
static bool seq2seq_find_vocabularies(struct training *t)
{
    struct pairs_data *x = t->data;
    const struct settings *s = &t->settings;
    const sb_pairs *pairs = pairs_to_train(x);
    const int64_t n = sb_pairs_count(pairs);
    if (t->loaded) {
        const struct text_model *model = t->loaded->subject.self;
        x->source = sb_vocabulary_retain(model->source);
        x->target = sb_vocabulary_retain(model->target);
    } else if (s->joint_vocabulary) {
        x->source = seq2seq_learn_joint(s, pairs);
        x->target = sb_vocabulary_retain(x->source);
    } else {
        x->source = seq2seq_learn(s, s->source_units, sb_pairs_sources(pairs), n);
        x->target =
            x->source ? seq2seq_learn(s, s->target_units, sb_pairs_targets(pairs), n) : NULL;
    }
    return x->target != NULL;
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
    if (!sb_pairs_divide(all, limit, &rest, &x->pairs.sample))
        return false;
    x->scored.pairs = x->pairs.sample;
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
    if (!(t->task ? seq2seq_open_task(t) : seq2seq_find_vocabularies(t)) || !pairs_encode(t) ||
        !seq2seq_choose_scored(x, t->settings.evaluate_pairs))
        return false;
    t->scored = t->settings.evaluate_pairs > 0 ? &x->scored : NULL;
    x->words = seq2seq_has_words(t, x->pairs.target) && seq2seq_has_four_words(x->scored.pairs);
    t->best = seq2seq_usual_best(t);
    return seq2seq_check_words(t);
}

static sb_model seq2seq_make(const struct training *t)
{
    const struct pairs_data *x = t->data;
    return sb_seq2seq_as_model(
        sb_seq2seq_for(t->weights, x->source, x->target, &t->settings.model));
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

static void seq2seq_describe(const struct training *t, FILE *out)
{
    const struct training_request *r = t->request;
    const struct pairs_data *x = t->data;
    if (t->task)
        fprintf(out, "task       %s; %s pairs held out\n", t->task,
                count_text(sb_pairs_count(x->held)).text);
    else
        pairs_describe_files(x, r, sb_data_left_out(x->data), pairs_longest(t), out);
    seq2seq_describe_side(out, "source", x->source, sb_data_longest_source(x->data));
    seq2seq_describe_side(out, "target", x->target, sb_data_longest_target(x->data));
}

static void seq2seq_describe_unknown(const struct training *t, FILE *out)
{
    const sb_pairs *pairs = pairs_to_train(t->data);
    if (!pairs)
        return;
    const sb_seq2seq *model = t->subject.self;
    const int64_t n = sb_pairs_count(pairs),
                  source = pairs_unknown(sb_seq2seq_source(model), sb_pairs_sources(pairs), n),
                  target = pairs_unknown(sb_seq2seq_target(model), sb_pairs_targets(pairs), n);
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

static bool seq2seq_add_item(struct buffer *buffer, const struct training *t, const sb_batch *batch,
                             int64_t item)
{
    const struct pairs_data *x = t->data;
    return bad_batch_add_text(buffer, x->source, batch, "source", "source_lengths", item) &&
           buffer_add_text(buffer, "\t") &&
           bad_batch_add_text(buffer, x->target, batch, "target_out", "target_lengths", item);
}

/* ---- evaluation: the loss, and the texts that it decodes ---- */

struct measured_pairs {
    sb_pairs *pairs;
    int64_t count, unknown; /* pairs; those whose source has symbols unknown to the model */
    char **output;
    double loss;
    char no_loss[512]; /* why there is no loss, where it is NaN */
    sb_text_score score;
    sb_bleu bleu;
};

static bool evaluate_measure_loss(const struct checkpoint *c, struct measured_pairs *e)
{
    sb_data_options options = {.longest = 1 << 20};
    sb_data *data = sb_data_new(e->pairs, sb_seq2seq_source(c->subject.self),
                                sb_seq2seq_target(c->subject.self), &options);
    e->loss = data ? sb_evaluate_loss(c->subject.self, data) : NAN;
    if (isnan(e->loss))
        snprintf(e->no_loss, sizeof e->no_loss, "%s", sb_error());
    sb_data_free(data);
    return data != NULL;
}

static bool evaluate_open_pairs(const struct evaluate_request *r, const struct checkpoint *c,
                                struct measured_pairs *e)
{
    e->pairs = r->task ? task_pairs(r->task, &c->settings, SB_PART_TEST, r->count)
                       : sb_pairs_read(r->data, NULL);
    if (!e->pairs)
        return false;
    e->count = sb_pairs_count(e->pairs);
    for (int64_t i = 0; i < e->count; i++)
        e->unknown +=
            unknown_count(sb_seq2seq_source(c->subject.self), sb_pairs_source(e->pairs, i)) > 0;
    const char *problem;
    for (int64_t i = 0; (problem = sb_pairs_problem(e->pairs, i)); i++)
        fprintf(stderr, "softback evaluate: skipped %s\n", foreign(problem));
    if (sb_pairs_skipped(e->pairs) > SB_PAIRS_PROBLEMS)
        fprintf(stderr, "softback evaluate: skipped %s lines in all\n",
                count_text(sb_pairs_skipped(e->pairs)).text);
    e->output = memory_new((size_t)e->count * sizeof *e->output);
    return e->output || sb_fail("out of memory");
}

static bool evaluate_measure(const struct evaluate_request *r, const struct checkpoint *c,
                             struct measured_pairs *e)
{
    return evaluate_open_pairs(r, c, e) && evaluate_measure_loss(c, e) &&
           translation_score(NULL, c->subject.self, e->pairs, &r->decoding, &e->score, e->output) &&
           sb_bleu_corpus((const char *const *)e->output, sb_pairs_targets(e->pairs), e->count,
                          &e->bleu);
}

static json_t *evaluate_pairs_json(const struct measured_pairs *e)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "pairs",
                     (json_int_t)e->count, "sources", (json_int_t)e->score.sources, "unknown",
                     (json_int_t)e->unknown, "loss", log_number(e->loss), "perplexity",
                     log_number(exp(e->loss)), "exact_match", log_number(e->score.exact_match),
                     "token_accuracy", log_number(e->score.token_accuracy), "word_error_rate",
                     log_number(e->score.error), "unit_error_rate", log_number(e->score.unit_error),
                     "bleu", log_number(e->bleu.score), "bleu_signature", sb_bleu_signature());
}

static void evaluate_print_table(const struct measured_pairs *e, sb_units units)
{
    units = units == SB_UNITS_BPE ? SB_UNITS_WORDS : units; /* bpe is scored as words */
    printf("pairs           %s, of %s different sources\n", count_text(e->count).text,
           count_text(e->score.sources).text);
    if (e->unknown > 0)
        printf("unknown         %s pairs have source symbols outside the vocabulary\n",
               count_text(e->unknown).text);
    printf("loss            %.4f nats a symbol, perplexity %.4f\n", e->loss, exp(e->loss));
    printf("exact match     %.2f %% of the lines\n", 100 * e->score.exact_match);
    printf("error rate      %.2f %% of the outputs equal none of their references (WER)\n",
           100 * e->score.error);
    printf("unit error rate %.2f %% by edit distance to the closest reference (PER; units: %s)\n",
           100 * e->score.unit_error, sb_units_name(units));
    printf("unit accuracy   %.2f %% of the positions\n", 100 * e->score.token_accuracy);
    if (e->bleu.total[SB_BLEU_ORDERS - 1] > 0)
        printf("BLEU            %.2f  %s\n", e->bleu.score, sb_bleu_signature());
    else
        puts("BLEU            undefined, as no output has four words");
}

/* The worst errors first, with the expected text and the output. */
static bool evaluate_show_errors(const struct measured_pairs *e, const sb_vocabulary *vocabulary,
                                 int64_t show)
{
    int64_t n;
    struct translation_error *wrong =
        translation_errors(vocabulary, e->pairs, e->output, e->count, &n);
    if (!wrong)
        return false;
    if (n > 0)
        printf("\nThe worst of %s errors:\n", count_text(n).text);
    else
        printf("\nThere are no errors.\n");
    for (int64_t i = 0; i < n && i < show; i++)
        printf("  %s\n    expected  %s\n    got       %s\n",
               foreign(sb_pairs_source(e->pairs, wrong[i].pair)),
               foreign(sb_pairs_target(e->pairs, wrong[i].pair)),
               foreign(foreign_line(e->output[wrong[i].pair])));
    memory_free(wrong);
    return true;
}

static bool evaluate_pairs(const struct evaluate_request *r, const struct checkpoint *c,
                           json_t **json)
{
    struct measured_pairs e = {0};
    bool ok = evaluate_measure(r, c, &e);
    if (ok && r->json)
        *json = evaluate_pairs_json(&e);
    if (ok && !r->json)
        evaluate_print_table(&e, sb_vocabulary_units(sb_seq2seq_target(c->subject.self)));
    if (ok && !r->json && r->show > 0)
        ok = evaluate_show_errors(&e, sb_seq2seq_target(c->subject.self), r->show);
    for (int64_t i = 0; e.output && i < e.count; i++)
        sb_free(e.output[i]);
    memory_free(e.output);
    sb_pairs_free(e.pairs);
    return ok && (!isnan(e.loss) || sb_fail("the loss could not be computed: %s", e.no_loss));
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
                                               .make = seq2seq_make,
                                               .close = pairs_close,
                                               .describe = seq2seq_describe,
                                               .scores = 1 << BEST_LOSS | 1 << BEST_EXACT |
                                                         1 << BEST_ERROR | 1 << BEST_BLEU,
                                               .measure = seq2seq_measure,
                                               .add_item = seq2seq_add_item,
                                               .evaluate = evaluate_pairs,
                                               .watch = pairs_watch,
                                               .describe_unknown = seq2seq_describe_unknown,
                                               .task_pairs = task_pairs,
                                               .report = &report_pairs};
