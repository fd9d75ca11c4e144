/*
 * Beam search. Each text has a beam: the most probable hypotheses (beginnings of an output), all of
 * one length, and that of greedy decoding, which stays even when it is not among them.
 */
#include "models/decoding/device_steps.h"
#include "nn/decoder_state.h"
#include "ops/decoding.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>
#include <stdlib.h>

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
    const struct decoding_text *text;
    int64_t count, length;   /* of the hypotheses, and of each of them */
    struct hypothesis *live; /* width + 1 */
    int64_t ended;           /* how many outputs have ended */
    int64_t within;          /* how many hypotheses were among the `width` best candidates */
    double *scores;          /* of the at most `width` best outputs, the best first */
    int64_t scored;
    int64_t node; /* of the best one */
};

struct search_state {
    const struct search *search;
    struct beam *beam; /* one for each text */
    struct hypothesis *live, *next;
    double *scores;
    int64_t nodes, nodes_room;
    struct node *node;
    struct choice *best; /* (sequences, reads): the most probable symbols, not all allowed */
    int64_t reads;
    struct choice *choices;
    struct candidate *candidates;
    int32_t *ids, *rows;
    /* Steps that a device takes without the host. */
    struct device_steps device;
    double *sum;                        /* of each slot, */
    int32_t *greedy;                    /* and of each text, for the first of them */
    sb_tensor *sums, *greedies, *slots; /* sum, greedy and from of ops/decoding.h */
};

/* Whether the rule of transformers' generate holds. */
static bool beam_generates(const struct search_state *s)
{
    return s->search->options->beam_rule != SB_BEAM_BOUNDED;
}

static int64_t beam_width(const struct search_state *s)
{
    return s->search->options->beam_width;
}

/* How many numbers a step that a device takes notes of each sequence: the slot that its hypothesis
   extends, the symbol of this hypothesis, and each symbol read with its log-probability. */
static int64_t beam_noted(const struct search_state *s)
{
    return 2 + 2 * s->reads;
}

static bool beam_begin(struct search_state *s, const struct search *search)
{
    *s = (struct search_state){.search = search};
    const size_t n = (size_t)search->texts, most = (size_t)beam_width(s) + 1, rows = n * most;
    const int64_t reads =
        (int64_t)most + SB_SPECIAL_SYMBOLS - 1; /* with those that are forbidden */
    s->reads = reads < search->V ? reads : search->V;
    s->beam = memory_new(n * sizeof *s->beam);
    s->live = memory_new(rows * sizeof *s->live);
    s->next = memory_new(most * sizeof *s->next);
    s->scores = memory_new(rows * sizeof *s->scores);
    s->choices = memory_new(most * sizeof *s->choices);
    s->candidates = memory_new(most * most * sizeof *s->candidates);
    s->ids = memory_new(rows * sizeof *s->ids);
    s->rows = memory_new(rows * sizeof *s->rows);
    s->best = memory_new(rows * (size_t)s->reads * sizeof *s->best);
    s->sum = memory_new(rows * sizeof *s->sum);
    s->greedy = memory_new(rows * sizeof *s->greedy);
    if (!s->beam || !s->live || !s->next || !s->scores || !s->choices || !s->candidates ||
        !s->ids || !s->rows || !s->best || !s->sum || !s->greedy)
        return sb_fail("decode: out of memory");
    for (size_t i = 0; i < n; i++) {
        s->beam[i] = (struct beam){.text = &search->text[i],
                                   .count = 1,
                                   .live = s->live + i * most,
                                   .scores = s->scores + i * most,
                                   .node = -1};
        s->beam[i].live[0] = (struct hypothesis){0, -1, (int64_t)i, !beam_generates(s)};
    }
    return true;
}

static void beam_steps_end(struct search_state *s)
{
    device_steps_end(&s->device);
    sb_tensor_release(s->sums);
    sb_tensor_release(s->greedies);
    sb_tensor_release(s->slots);
    s->sums = s->greedies = s->slots = NULL;
}

static void beam_end(struct search_state *s)
{
    memory_free(s->beam);
    memory_free(s->live);
    memory_free(s->next);
    memory_free(s->scores);
    memory_free(s->node);
    memory_free(s->best);
    memory_free(s->choices);
    memory_free(s->candidates);
    memory_free(s->ids);
    memory_free(s->rows);
    beam_steps_end(s);
    memory_free(s->sum);
    memory_free(s->greedy);
}

/* The more probable candidate comes first; of equal ones that of the better hypothesis, then the
   one with the lower id. */
static int beam_by_probability(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    if (a->log_p != b->log_p)
        return a->log_p > b->log_p ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* The width + 1 most probable of the symbols that may follow a hypothesis; returns how many. */
static int64_t beam_choose(struct search_state *s, const struct hypothesis *from)
{
    const int64_t k = beam_width(s) + 1;
    int64_t n = 0;
    for (int64_t i = 0; n < k && i < s->reads; i++) {
        const struct choice best = s->best[from->row * s->reads + i];
        if (search_allows(s->search->from, best.id))
            s->choices[n++] = best;
    }
    return n;
}

/* The candidates for the beam's next step, the best first: width + 1 of each hypothesis. Returns
   how many; -1 on failure. */
static int64_t beam_find_candidates(struct search_state *s, const struct beam *beam)
{
    int64_t n = 0;
    for (int64_t i = 0; i < beam->count; i++) {
        const struct hypothesis *from = &beam->live[i];
        int64_t k = beam_choose(s, from);
        if (k == 0 || !isfinite(s->choices[0].log_p)) {
            search_fail_values(beam->text);
            return -1;
        }
        for (int64_t c = 0; c < k; c++)
            s->candidates[n++] = (struct candidate){from->log_p + s->choices[c].log_p, i,
                                                    s->choices[c].id, from->greedy && c == 0};
    }
    qsort(s->candidates, (size_t)n, sizeof *s->candidates, beam_by_probability);
    return n;
}

/* Gives a finished output's score its place among the best; returns whether it is the first. */
static bool beam_rank(struct beam *beam, int64_t width, double score)
{
    if (beam->scored == width && !(score > beam->scores[width - 1]))
        return false;
    int64_t place = beam->scored < width ? beam->scored++ : width - 1;
    for (; place > 0 && score > beam->scores[place - 1]; place--)
        beam->scores[place] = beam->scores[place - 1];
    beam->scores[place] = score;
    return place == 0;
}

/* Compares a finished output of `length` symbols, and "end" or not, with the best so far. */
static void beam_finish(struct search_state *s, struct beam *beam, double log_p, int64_t node,
                        int64_t length, bool has_end)
{
    sb_decoded *output = beam->text->output;
    double score = search_score(s->search->options, log_p, length + has_end);
    if (!beam_rank(beam, beam_width(s), score))
        return;
    beam->node = node;
    output->log_probability = log_p;
    output->score = score;
    output->ended = has_end;
    output->length = length;
    output->slid = s->search->sequences->slid;
}

/* Makes a candidate a hypothesis of the next step. */
static bool beam_extend(struct search_state *s, const struct beam *beam, const struct candidate *c,
                        int64_t place)
{
    const struct hypothesis *from = &beam->live[c->from];
    if (!memory_room(&s->node, s->nodes, &s->nodes_room, sizeof *s->node))
        return sb_fail("decode: out of memory");
    s->node[s->nodes] = (struct node){c->id, from->node};
    s->next[place] = (struct hypothesis){c->log_p, s->nodes++, from->row, c->greedy};
    return true;
}

/* Candidates among the `width` best that end are outputs; the `width` best of the others are
   hypotheses of the next step, as the greedy one always is. Returns how many; -1 on failure. */
static int64_t beam_pick(struct search_state *s, struct beam *beam, int64_t n)
{
    const int32_t end = s->search->from.end;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct candidate *c = &s->candidates[i];
        beam->within = i < beam_width(s) ? kept + (c->id != end) : beam->within;
        if (c->id == end && (i < beam_width(s) || c->greedy)) {
            beam_finish(s, beam, c->log_p, beam->live[c->from].node, beam->length, true);
            beam->ended += i < beam_width(s);
        } else if (c->id != end && (kept < beam_width(s) || c->greedy)) {
            if (!beam_extend(s, beam, c, kept++))
                return -1;
        }
    }
    return kept;
}

/* Whether transformers' generate continues when log_p is that of the best hypothesis. */
static bool beam_goes_on(const struct search_state *s, const struct beam *beam, double log_p)
{
    const sb_decoding_options *o = s->search->options;
    return beam->scored < o->beam_width ||
           (o->beam_rule == SB_BEAM_GENERATE &&
            search_score(o, log_p, beam->length + 1) > beam->scores[beam->scored - 1]);
}

/* Prunes hypotheses: all but the greedy one when enough outputs have ended, and those that cannot
   become better than the best output. */
static int64_t beam_prune(const struct search_state *s, struct beam *beam, int64_t kept)
{
    int64_t left = 0;
    if (beam_generates(s))
        return kept > 0 && beam_goes_on(s, beam, s->next[0].log_p) ? kept : 0;
    for (int64_t i = 0; i < kept; i++) {
        const struct hypothesis *b = &s->next[i];
        /* The best that its output can reach: it loses no more probability at the full length,
           after which "end" may be one symbol more. */
        const sb_decoding_options *o = s->search->options;
        const double bound = search_score(o, b->log_p, beam->text->longest + o->force_end);
        const bool hopeless = beam->scored > 0 && bound <= beam->scores[0];
        if (!hopeless && (beam->ended < beam_width(s) || b->greedy))
            s->next[left++] = *b;
    }
    return left;
}

/* Makes hypotheses of full length outputs; leaves none. */
static int64_t beam_cut(struct search_state *s, struct beam *beam, int64_t kept)
{
    const bool ends = s->search->options->force_end;
    const int64_t n = ends                ? beam_prune(s, beam, kept) /* "end" is one more step */
                      : beam_generates(s) ? beam->within
                                          : kept;
    for (int64_t i = 0; i < n; i++)
        beam_finish(s, beam, s->next[i].log_p, s->next[i].node, beam->length + 1, ends);
    return 0;
}

static bool beam_advance(struct search_state *s, struct beam *beam)
{
    int64_t n = beam_find_candidates(s, beam), kept = n < 0 ? -1 : beam_pick(s, beam, n);
    if (kept < 0)
        return false;
    if (beam->length + 1 == beam->text->longest)
        kept = beam_cut(s, beam, kept);
    beam->count = beam_prune(s, beam, kept);
    beam->length++;
    for (int64_t i = 0; i < beam->count; i++)
        beam->live[i] = s->next[i];
    return true;
}

/* Moves the sequences of all live hypotheses together for the next step. */
static bool beam_arrange(struct search_state *s)
{
    int64_t n = 0;
    beam_steps_end(s);
    for (int64_t b = 0; b < s->search->texts; b++)
        for (int64_t i = 0; i < s->beam[b].count; i++) {
            struct hypothesis *h = &s->beam[b].live[i];
            s->ids[n] = s->node[h->node].id;
            s->rows[n] = (int32_t)h->row;
            h->row = n++;
        }
    return sequences_reorder(s->search->sequences, n, s->rows);
}

/* Reads the best symbols of each row: their log-probabilities and then their ids, as one download.
 */
static bool beam_read_best(struct search_state *s, sb_tensor *log_p)
{
    sb_tensor *ids, *best = sb_cast(sb_topk(log_p, s->reads, &ids), SB_F64);
    if (!best)
        return false;
    const int64_t n = tensor_size(best);
    const size_t values = tensor_bytes(best), all = values + tensor_bytes(ids);
    const int64_t size = n + (n + 1) / 2;
    sb_tensor *both = sb_tape_own(tensor_new("decode", best->device, SB_F64, 1, &size));
    double *read = memory_new(all);
    const bool ok = both && read && best->device->copy(both->data, best->data, values) &&
                    best->device->copy((char *)both->data + values, ids->data, all - values) &&
                    best->device->download(read, both->data, all);
    for (int64_t i = 0; ok && i < n; i++)
        s->best[i] = (struct choice){read[i], ((const int32_t *)(read + n))[i]};
    if (!read)
        sb_fail("decode: out of memory");
    memory_free(read);
    return ok;
}

/* Extends the hypotheses of all texts by what was read. */
static bool beam_advance_all(struct search_state *s)
{
    bool ok = true;
    for (int64_t b = 0; ok && b < s->search->texts; b++)
        ok = s->beam[b].count == 0 || beam_advance(s, &s->beam[b]);
    return ok;
}

/* The logits with that of the symbol that is never chosen as -infinity, if this is asked for. */
static sb_tensor *beam_logits(const struct search_state *s, sb_tensor *logits)
{
    const int32_t never = s->search->from.never;
    if (!logits || never < 0 || !s->search->options->renormalise)
        return logits;
    sb_tensor *mask = sb_tensor_zeros(sb_tensor_dtype(logits), SB_SHAPE(s->search->V));
    if (mask)
        sb_tensor_set(mask, never, -INFINITY);
    return mask ? sb_add(logits, sb_tape_own(mask)) : NULL;
}

/* One step, chosen by the host. */
static bool beam_step(struct search_state *s, int64_t L, const int32_t *ids)
{
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *log_p = sb_log_softmax(beam_logits(s, sequences_next(s->search->sequences, L, ids)));
    const bool ok = log_p && beam_read_best(s, log_p);
    return sb_tape_end(&tape) && ok && beam_advance_all(s);
}

/* The texts that are not done, and how many symbols the longest of their outputs may get. */
static int64_t beam_unfinished(const struct search_state *s, int64_t *most)
{
    int64_t n = 0;
    *most = 0;
    for (int64_t b = 0; b < s->search->texts; b++) {
        const struct beam *beam = &s->beam[b];
        const int64_t left = beam->count > 0 ? beam->text->longest - beam->length : 0;
        n += left > 0;
        *most = left > *most ? left : *most;
    }
    return n;
}

/*
 * ---- steps that a device takes without the host ----
 *
 * It keeps the most probable hypotheses of each text and moves the keys and values of their
 * sequences; the host reads what several steps have read and chosen, and ends and prunes
 * hypotheses.
 */

static int64_t beam_steps_most(const struct search_state *s, int64_t most)
{
    const bool narrow = beam_width(s) + 1 <= DECODING_SLOTS,
               plain =
                   s->search->from.never < 0 && s->search->options->beam_rule == SB_BEAM_BOUNDED;
    return narrow && plain ? device_steps_most(s->search->sequences, most) : 0;
}

/* Extends the hypotheses, and moves the keys and values of their sequences. */
static bool beam_steps_choose(void *s_, const struct device_steps *d, sb_tensor *logits)
{
    const struct search_state *s = s_;
    sb_tensor *ids, *log_p = sb_topk(sb_log_softmax(logits), s->reads, &ids);
    const struct decoding_kernels *k = log_p ? kernel_row(&decoding_rows, log_p) : NULL;
    if (!k)
        return false;
    const struct decoding_beam beam = {.texts = sb_tensor_dim(s->greedies, 0),
                                       .width = beam_width(s),
                                       .reads = s->reads,
                                       .steps = DEVICE_STEPS_AHEAD,
                                       .end = s->search->from.end,
                                       .first = s->search->from.first,
                                       .best = ids->data,
                                       .log_p = log_p->data,
                                       .sum = s->sums->data,
                                       .greedy = s->greedies->data,
                                       .from = s->slots->data,
                                       .ids = d->ids->data,
                                       .position = d->position.at->data,
                                       .lengths = d->position.lengths->data,
                                       .noted = d->noted->data};
    return k->extend(&beam) &&
           decoder_state_rearrange(d->sequences->state, beam.width + 1, s->slots, d->position.at);
}

/* Gives each text that is not done a slot for each hypothesis that it can have. A slot without a
   hypothesis copies the first. Returns the number of these texts. */
static int64_t beam_steps_spread(struct search_state *s)
{
    const int64_t slots = beam_width(s) + 1;
    int64_t texts = 0;
    for (int64_t b = 0; b < s->search->texts; b++) {
        struct beam *beam = &s->beam[b];
        const int64_t first = texts * slots;
        s->greedy[texts] = -1;
        for (int64_t i = 0; beam->count > 0 && i < slots; i++) {
            const struct hypothesis *h = &beam->live[i < beam->count ? i : 0];
            s->ids[first + i] = s->node[h->node].id;
            s->rows[first + i] = (int32_t)h->row;
            s->sum[first + i] = i < beam->count ? h->log_p : -INFINITY;
            s->greedy[texts] = i < beam->count && h->greedy ? (int32_t)i : s->greedy[texts];
        }
        for (int64_t i = 0; i < beam->count; i++)
            beam->live[i].row = first + i;
        texts += beam->count > 0;
    }
    return texts;
}

/* Gets the device ready for steps from the present symbols on. */
static bool beam_steps_begin(struct search_state *s)
{
    beam_steps_end(s);
    struct sequences *sequences = s->search->sequences;
    const int64_t slots = beam_width(s) + 1, texts = beam_steps_spread(s);
    if (!sequences_reorder(sequences, texts * slots, s->rows) ||
        !device_steps_begin(&s->device, sequences, beam_noted(s), s->ids, beam_steps_choose, s))
        return false;
    s->sums = sb_tensor_from(SB_F64, SB_SHAPE(texts, slots), s->sum);
    s->greedies = s->sums ? sb_tensor_from(SB_I32, SB_SHAPE(texts), s->greedy) : NULL;
    s->slots = s->greedies ? sb_tensor_zeros(SB_I32, SB_SHAPE(texts, slots)) : NULL;
    return s->slots != NULL;
}

/* The sequence that now holds a hypothesis, which extends that of its row. */
static bool beam_steps_follow(const struct search_state *s, const double *noted,
                              struct hypothesis *h)
{
    const int64_t slots = beam_width(s) + 1, size = beam_noted(s), old = h->row % slots;
    for (int64_t row = h->row - old, end = row + slots; row < end; row++)
        if (noted[row * size] == (double)old && noted[row * size + 1] == s->node[h->node].id) {
            h->row = row;
            return true;
        }
    return sb_fail("decode: the device and the host chose different hypotheses");
}

/* Takes over a step of the device, which knows no end of a text and no best output so far, and so
   keeps hypotheses that the host prunes; none of them can displace one that the host keeps. */
static bool beam_steps_take(struct search_state *s, const double *noted)
{
    struct sequences *sequences = s->search->sequences;
    const int64_t n = sequences->count, size = beam_noted(s), slots = beam_width(s) + 1;
    for (int64_t row = 0; row < n; row++)
        s->rows[row] = (int32_t)(row - row % slots) + (int32_t)noted[row * size];
    if (!sequences_note(sequences, s->ids, s->rows))
        return false;
    for (int64_t row = 0; row < n; row++) {
        const double *of_row = noted + row * size;
        s->ids[row] = (int32_t)of_row[1];
        for (int64_t i = 0; i < s->reads; i++)
            s->best[row * s->reads + i] =
                (struct choice){of_row[3 + 2 * i], (int32_t)of_row[2 + 2 * i]};
    }
    bool ok = beam_advance_all(s);
    for (int64_t b = 0; ok && b < s->search->texts; b++)
        for (int64_t i = 0; ok && i < s->beam[b].count; i++)
            ok = beam_steps_follow(s, noted, &s->beam[b].live[i]);
    return ok;
}

/* Takes steps; texts that are done keep their sequences until they are the half. */
static bool beam_steps_run(struct search_state *s, int64_t steps)
{
    const struct sequences *sequences = s->search->sequences;
    bool ok = (device_steps_fit(&s->device, steps) || beam_steps_begin(s)) &&
              device_steps_run(&s->device, steps);
    const int64_t texts = sequences->count / (beam_width(s) + 1);
    for (int64_t i = 0; ok && i < steps; i++)
        ok = beam_steps_take(s, device_steps_noted(&s->device, i));
    int64_t most;
    if (2 * beam_unfinished(s, &most) <= texts)
        beam_steps_end(s);
    return ok;
}

/* ---- the search ---- */

/* Reads the best output's symbols from its last to its first. */
static bool beam_read_output(const struct search_state *s, const struct beam *beam)
{
    sb_decoded *output = beam->text->output;
    int64_t length = output->length;
    output->ids = memory_new((size_t)length * sizeof *output->ids + 1);
    if (!output->ids)
        return sb_fail("decode: out of memory");
    for (int64_t node = beam->node; node >= 0; node = s->node[node].previous)
        output->ids[--length] = s->node[node].id;
    return true;
}

bool search_beam(const struct search *search)
{
    struct search_state s;
    int64_t most;
    bool ok = beam_begin(&s, search) &&
              beam_step(&s, search->sequences->start_length, search->sequences->start);
    while (ok && beam_unfinished(&s, &most) > 0) {
        const int64_t steps = beam_steps_most(&s, most);
        ok = steps > 0 ? beam_steps_run(&s, steps) : beam_arrange(&s) && beam_step(&s, 1, s.ids);
    }
    for (int64_t b = 0; ok && b < search->texts; b++)
        ok = beam_read_output(&s, &s.beam[b]);
    beam_end(&s);
    return ok;
}

/* How many steps the device can take next, at most `most`. */
