/* Metrics of a model's outputs, compared with references. */
#ifndef SOFTBACK_MODELS_TEXT_METRICS_H
#define SOFTBACK_MODELS_TEXT_METRICS_H

#include "units.h"

/*
 * The edit distance of Levenshtein (1966): the least number of insertions, deletions and
 * substitutions that turn a into b. -1, with a message, without memory.
 */
SB_API int64_t sb_edit_distance(const int32_t *a, int64_t a_count, const int32_t *b,
                                int64_t b_count);

/* exp(-log_likelihood / count): of `count` units whose natural log-probabilities add up to
   log_likelihood. NaN, with a message, when the count is below 1. */
SB_API double sb_perplexity(double log_likelihood, int64_t count);

/*
 * Scores of texts. The shares are computed from the counts.
 *
 * exact_match     lines whose output equals its reference, of all lines
 * token_accuracy  positions at which output and reference have the same unit, of all positions of
 *                 the longer one
 * error           sources whose output equals none of the source's references, of all different
 *                 sources. In grapheme-to-phoneme conversion, where the source is a word, this is
 *                 the word error rate (WER).
 * unit_error      the phoneme error rate (PER) there: over all different sources, the edit distance
 *                 from the output to the closest reference, of the units of that reference (of
 *                 equally close ones the first). Both are summed before they are divided.
 */
typedef struct {
    int64_t lines, exact;
    int64_t positions, right;
    int64_t sources, wrong;
    int64_t units, edits;
    double exact_match, token_accuracy, error, unit_error;
} sb_text_score;

/*
 * Scores `count` outputs; lines with the same source give it several references. Its output is that
 * of its first line. Distances and accuracy count units: characters, bytes or words (bpe is taken
 * as words). Fails on other units, on a count below 1, when a text is NULL or not UTF-8, and
 * without memory.
 */
SB_API bool sb_score_texts(const char *const *sources, const char *const *references,
                           const char *const *outputs, int64_t count, sb_units units,
                           sb_text_score *score);

enum { SB_BLEU_ORDERS = 4 };

/* BLEU (Papineni, Roukos, Ward and Zhu 2002) of a corpus, in percent. */
typedef struct {
    double score;
    double precision[SB_BLEU_ORDERS]; /* of n-grams of 1 to 4 tokens, in percent, smoothed */
    double brevity_penalty;
    int64_t correct[SB_BLEU_ORDERS], total[SB_BLEU_ORDERS];
    int64_t output_tokens, reference_tokens;
} sb_bleu;

/*
 * Computes what sacreBLEU (Post 2018) computes by default, with one reference for each output:
 * tokens as mteval-v13a cuts them, n-grams of up to four tokens, case-sensitive, exponential
 * smoothing of orders without any match (Chen and Cherry 2014, method 3). Fails on a count below 1,
 * when a text is NULL or not UTF-8, and without memory.
 */
SB_API bool sb_bleu_corpus(const char *const *outputs, const char *const *references, int64_t count,
                           sb_bleu *bleu);

/* How the score is computed: a signature in sacreBLEU's form, to be printed with it. */
SB_API const char *sb_bleu_signature(void);

#endif
