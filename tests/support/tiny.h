/* Tiny models in all variants, and what they decode. */
#ifndef SOFTBACK_TESTS_SUPPORT_TINY_H
#define SOFTBACK_TESTS_SUPPORT_TINY_H

#include "tests/support/test.h"

enum { TINY_SYMBOLS = 7, TINY_V = TINY_SYMBOLS + SB_SPECIAL_SYMBOLS };

struct tiny_variant {
    const char *name;
    sb_seq2seq_options options;
};

/* Every variant of a transformer, each of few layers of width 12; NULL past the last. */
const struct tiny_variant *tiny_variant(int i);

/* The step between the variants that a test tries: 1, or more with emulated kernels. Each test then
   begins with a variant of its own, so that all tests together try all of them. */
int tiny_step(void);
int tiny_first(int64_t test);

/* The options of the first variant, with pre-norm and sinusoidal positions. */
sb_seq2seq_options tiny_options(void);

/* A vocabulary of the characters a to g. */
sb_vocabulary *tiny_vocabulary(void);

struct tiny {
    sb_vocabulary *vocabulary;
    sb_parameters *weights;
    sb_seq2seq *model;
};

/* An untrained model for that vocabulary, source and target, kept by the test. Its weights are
   larger than initial ones, so that its output depends on its input and has an end. */
struct tiny tiny_new(sb_dtype dtype, uint64_t seed, const sb_seq2seq_options *options);

/* Draws all weights anew, and adds `end` to the logit of the end symbol. */
void tiny_draw(sb_parameters *weights, uint64_t seed, double end);

/* A text of 0 to `longest` characters, fixed by the seed; static storage. */
const char *tiny_text(uint64_t seed, int longest);

/* A batch of n pairs, targets being sources reversed: the source of pair i is
   tiny_text(seed + i, longest). */
sb_batch *tiny_batch(const sb_vocabulary *vocabulary, uint64_t seed, int64_t n, int longest);

/* The parameters as an array for sb_gradcheck, with room for two more inputs. */
sb_tensor **tiny_parameters(const sb_parameters *weights);

/* ---- decoding: texts, and probabilities from the forward pass of training ---- */

/* n texts, fixed by the seed. */
const char **texts_new(uint64_t seed, int n);

/* Decodes them, which must succeed; the outputs belong to the test. */
void decode(const struct tiny *tiny, const char *const *texts, int64_t n,
            const sb_decoding_options *options, sb_decoded *outputs);

bool same_symbols(const sb_decoded *a, const sb_decoded *b);
/* And the same scores. */
bool same_bits(const sb_decoded *a, const sb_decoded *b);

/* With models whose positions are of all kinds: steps that the device takes without the host must
   give the bits of single steps. */
void expect_bits_of_single_steps(const sb_decoding_options *options);

/* A pair of a text and an output, as a batch. */
sb_batch *batch_of(const struct tiny *tiny, const char *text, const sb_decoded *output);

/* The log-probability of each symbol (Lt, V) that follows the output's, by the forward pass of
   training. */
double *log_probabilities(const struct tiny *tiny, const char *text, const sb_decoded *output);

#endif
