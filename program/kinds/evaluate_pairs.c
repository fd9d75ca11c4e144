/* How an encoder-decoder is measured: the loss, and the texts that it decodes. */
#include "models/training/evaluation.h"
#include "models/translation_score.h"
#include "program/kinds/evaluate.h"
#include "program/run/task_pairs.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/unknown.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measured_pairs {
    sb_pairs *pairs;
    int64_t count, unknown; /* pairs; those whose source has symbols unknown to the model */
    char **output;
    double loss;
    char no_loss[512]; /* why there is no loss, where it is NaN */
    sb_text_score score;
    sb_bleu bleu;
};

static void evaluate_free(struct measured_pairs *e)
{
    for (int64_t i = 0; e->output && i < e->count; i++)
        sb_free(e->output[i]);
    memory_free(e->output);
    sb_pairs_free(e->pairs);
}

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

json_t *evaluate_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

void evaluate_print(json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    putchar('\n');
    json_decref(json);
}

static void evaluate_print_json(const struct measured_pairs *e)
{
    evaluate_print(json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "pairs", (json_int_t)e->count,
        "sources", (json_int_t)e->score.sources, "unknown", (json_int_t)e->unknown, "loss",
        evaluate_number(e->loss), "perplexity", evaluate_number(exp(e->loss)), "exact_match",
        evaluate_number(e->score.exact_match), "token_accuracy",
        evaluate_number(e->score.token_accuracy), "word_error_rate",
        evaluate_number(e->score.error), "unit_error_rate", evaluate_number(e->score.unit_error),
        "bleu", evaluate_number(e->bleu.score), "bleu_signature", sb_bleu_signature()));
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
    printf("error rate      %.2f %% of the sources equal none of their references (WER)\n",
           100 * e->score.error);
    printf("unit error rate %.2f %% by edit distance to the closest reference (PER; units: %s)\n",
           100 * e->score.unit_error, sb_units_name(units));
    printf("unit accuracy   %.2f %% of the positions\n", 100 * e->score.token_accuracy);
    printf("BLEU            %.2f%s  %s\n", e->bleu.score,
           e->bleu.total[SB_BLEU_ORDERS - 1] > 0 ? "" : ", as no output has four words",
           sb_bleu_signature());
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

bool evaluate_pairs(const struct evaluate_request *r, const struct checkpoint *c)
{
    struct measured_pairs e = {0};
    bool ok = evaluate_measure(r, c, &e);
    if (ok && r->json)
        evaluate_print_json(&e);
    if (ok && !r->json)
        evaluate_print_table(&e, sb_vocabulary_units(sb_seq2seq_target(c->subject.self)));
    if (ok && !r->json && r->show > 0)
        ok = evaluate_show_errors(&e, sb_seq2seq_target(c->subject.self), r->show);
    evaluate_free(&e);
    return ok && (!isnan(e.loss) || sb_fail("the loss could not be computed: %s", e.no_loss));
}
