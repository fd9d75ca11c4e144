/*
 * Beam search. Each text has a beam: the most probable hypotheses (beginnings of an output), all of
 * one length, and that of greedy decoding, which stays even when it is not among them.
 */
#ifndef SOFTBACK_MODELS_DECODING_BEAM_H
#define SOFTBACK_MODELS_DECODING_BEAM_H

#include "models/decoding/device_steps.h"

/* A symbol, and the node of the one before it; -1: there is none. */
struct node {
    int32_t id;
    int64_t previous;
};

struct hypothesis {
    double log_p;
    int64_t node; /* of its last symbol */
    int64_t row;  /* its sequence */
    bool greedy;
};

/* A hypothesis and its next symbol. */
struct candidate {
    double log_p;
    int64_t from; /* the hypothesis's index in the beam */
    int32_t id;
    bool greedy;
};

struct beam {
    const struct search_text *text;
    int64_t count, length;   /* of the hypotheses, and of each of them */
    struct hypothesis *live; /* width + 1 */
    int64_t ended;           /* how many outputs have ended */
    int64_t within;          /* how many hypotheses were among the `width` best candidates */
    double *scores;          /* of the at most `width` best outputs, the best first */
    int64_t scored;
    bool found; /* an output, the best so far: */
    int64_t node;
};

struct search_state {
    const struct search *search;
    struct beam *beam; /* one for each text */
    struct hypothesis *live, *next;
    double *scores;
    int64_t nodes, nodes_room;
    struct node *node;
    double *log_p;       /* (sequences, V); on a device NULL: */
    struct choice *best; /* (sequences, reads): the most probable symbols, not all allowed */
    int64_t reads;
    struct choice *choices;
    struct candidate *candidates;
    int32_t *ids, *rows;
    /* Steps that a device takes without the host (beam_steps.c); all NULL on the CPU. */
    struct device_steps device;
    double *noted;                      /* what several steps note of each sequence */
    double *sum;                        /* of each slot, */
    int32_t *greedy;                    /* and of each text, for the first of them */
    sb_tensor *sums, *greedies, *slots; /* sum, greedy and from of ops/decoding.h */
};

/* Whether the rule of transformers' generate holds. */
static inline bool beam_generates(const struct search_state *s)
{
    return s->search->options->beam_rule != SB_BEAM_BOUNDED;
}

static inline int64_t beam_width(const struct search_state *s)
{
    return s->search->options->beam_width;
}

/* Extends the hypotheses of all texts by what was read. */
bool beam_advance_all(struct search_state *s);

/* The texts that are not done, and how many symbols the longest of their outputs may get. */
int64_t beam_unfinished(const struct search_state *s, int64_t *most);

/*
 * Steps that a device takes without the host: it keeps the most probable hypotheses of each text
 * and moves the keys and values of their sequences; the host reads what several steps have read and
 * chosen, and ends and prunes hypotheses.
 */

/* How many numbers such a step notes of each sequence: the slot that its hypothesis extends, the
   symbol of this hypothesis, and each symbol read with its log-probability. */
static inline int64_t beam_noted(const struct search_state *s)
{
    return 2 + 2 * s->reads;
}

/* How many steps the device can take next, at most `most`. */
int64_t beam_steps_most(const struct search_state *s, int64_t most);

/* Takes steps; texts that are done keep their sequences until they are the half. */
bool beam_steps_run(struct search_state *s, int64_t steps);
void beam_steps_end(struct search_state *s);

#endif
