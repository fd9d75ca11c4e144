/* What tests of decoding share: texts, and probabilities from the forward pass of training. */
#ifndef SOFTBACK_TESTS_SUPPORT_DECODING_H
#define SOFTBACK_TESTS_SUPPORT_DECODING_H

#include "tests/support/tiny.h"

enum { TEXTS = 40, LONGEST = 12 };

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
