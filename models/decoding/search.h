/* Searches: how symbols are chosen. */
#ifndef SOFTBACK_MODELS_DECODING_SEARCH_H
#define SOFTBACK_MODELS_DECODING_SEARCH_H

#include "autograd/tape.h"
#include "models/decoding/generator.h"

/* The symbols that may be chosen: `end` and those from `first` on, but `never`; -1: none. */
struct choosable {
    int32_t end, first, never;
};

static inline struct choosable search_choosable(const sb_vocabulary *v)
{
    return sb_vocabulary_units(v) == SB_UNITS_IDS
               ? (struct choosable){sb_vocabulary_special(v, SB_SYMBOL_END), 0,
                                    sb_vocabulary_special(v, SB_SYMBOL_PADDING)}
               : (struct choosable){SB_SYMBOL_END, SB_SPECIAL_SYMBOLS, -1};
}

static inline bool search_allows(struct choosable from, int64_t id)
{
    return (id == from.end || id >= from.first) && id != from.never;
}

struct search {
    const sb_decoding_options *options; /* complete */
    struct sequences *sequences;        /* begun, one for each text */
    int64_t texts, V;
    struct choosable from;
    const struct decoding_text *text;
};

/* The options of sampling, given or not (NULL), with their defaults; fails where they are bad. */
bool decoding_complete_sampling(const sb_decoding_options *given, sb_decoding_options *options);

/* Each fills in the outputs of the texts, which the caller frees even after a failure. */
bool search_greedy(const struct search *search); /* and sampling */
bool search_beam(const struct search *search);

/* Opens the tape of a step: one that does not record, without dropout. */
static inline void search_tape(sb_tape *tape)
{
    sb_tape_begin(tape, SB_NO_RECORD);
    sb_tape_random(tape, NULL);
}

/* Makes room for one more symbol in an output that has room for `room`. */
bool output_room(sb_decoded *output, int64_t *room);

/* The score of `chosen` symbols, "end" included. */
double search_score(const sb_decoding_options *options, double log_probability, int64_t chosen);

/* Fails because no symbol of a text has a probability above 0. */
bool search_fail_values(const struct decoding_text *text);

/* A symbol and the logarithm of its probability. */
struct choice {
    double log_p;
    int32_t id;
};

/*
 * The k most probable of the symbols that may be chosen, the most probable first and of equal ones
 * that with the lower id; `choices` has room for V. Returns how many there are, at most k.
 */
int64_t choices_best(struct choosable from, int64_t V, const double log_p[], int64_t k,
                     struct choice choices[]);

/* A symbol drawn by a number in [0, 1), as the options say; `choices` has room for V. */
struct choice choices_draw(const sb_decoding_options *options, struct choosable from, int64_t V,
                           const double log_p[], double uniform, struct choice choices[]);

#endif
