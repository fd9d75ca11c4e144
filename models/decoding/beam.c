#include "models/decoding/beam.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>
#include <stdlib.h>

/* Memory for what a step reads of `rows` rows: on the CPU all log-probabilities, on a device those
   of the best symbols, which include the allowed ones that a beam needs. */
static bool beam_begin_reading(struct search_state *s, size_t rows)
{
    const int64_t V = s->search->V, forbidden = SB_SPECIAL_SYMBOLS - 1,
                  reads = beam_width(s) + 1 + forbidden;
    s->reads = reads < V ? reads : V;
    if (sb_device_in_use() == sb_device_cpu()) {
        s->log_p = memory_new(rows * (size_t)V * sizeof *s->log_p);
        return s->log_p != NULL;
    }
    s->best = memory_new(rows * (size_t)s->reads * sizeof *s->best);
    s->sum = memory_new(rows * sizeof *s->sum);
    s->greedy = memory_new(rows * sizeof *s->greedy);
    s->noted = memory_new(DEVICE_STEPS_AHEAD * rows * (size_t)beam_noted(s) * sizeof *s->noted);
    return s->best && s->sum && s->greedy && s->noted;
}

static bool beam_begin(struct search_state *s, const struct search *search)
{
    *s = (struct search_state){.search = search};
    size_t n = (size_t)search->texts, V = (size_t)search->V, most = (size_t)beam_width(s) + 1;
    s->beam = memory_new(n * sizeof *s->beam);
    s->live = memory_new(n * most * sizeof *s->live);
    s->next = memory_new(most * sizeof *s->next);
    s->scores = memory_new(n * most * sizeof *s->scores);
    s->choices = memory_new(V * sizeof *s->choices);
    s->candidates = memory_new(most * most * sizeof *s->candidates);
    s->ids = memory_new(n * most * sizeof *s->ids);
    s->rows = memory_new(n * most * sizeof *s->rows);
    if (!s->beam || !s->live || !s->next || !s->scores || !s->choices || !s->candidates ||
        !s->ids || !s->rows || !beam_begin_reading(s, n * most))
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

static void beam_end(struct search_state *s)
{
    memory_free(s->beam);
    memory_free(s->live);
    memory_free(s->next);
    memory_free(s->scores);
    memory_free(s->node);
    memory_free(s->log_p);
    memory_free(s->best);
    memory_free(s->choices);
    memory_free(s->candidates);
    memory_free(s->ids);
    memory_free(s->rows);
    beam_steps_end(s);
    memory_free(s->sum);
    memory_free(s->greedy);
    memory_free(s->noted);
}

/* Of equally probable candidates the one of the better hypothesis is first, then the lower id. */
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
    if (s->log_p)
        return choices_best(s->search->from, s->search->V, s->log_p + from->row * s->search->V, k,
                            s->choices);
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

/* Gives a finished output's score its place among the best. */
static void beam_rank(struct beam *beam, int64_t width, double score)
{
    if (beam->scored == width && !(score > beam->scores[width - 1]))
        return;
    int64_t place = beam->scored < width ? beam->scored++ : width - 1;
    for (; place > 0 && score > beam->scores[place - 1]; place--)
        beam->scores[place] = beam->scores[place - 1];
    beam->scores[place] = score;
}

/* Compares a finished output of `length` symbols, and "end" or not, with the best so far. */
static void beam_finish(struct search_state *s, struct beam *beam, double log_p, int64_t node,
                        int64_t length, bool has_end)
{
    sb_decoded *output = beam->text->output;
    double score = search_score(s->search->options, log_p, length + has_end);
    beam_rank(beam, beam_width(s), score);
    if (beam->found && !(score > output->score))
        return;
    beam->found = true;
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

/* The best score that an output of this hypothesis can reach: it loses no more probability and
   grows to the full length. */
static double beam_bound(const struct search_state *s, const struct beam *beam, double log_p)
{
    return search_score(s->search->options, log_p, beam->text->longest);
}

/* Whether transformers' generate goes on with hypotheses of which this is the best. */
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
        bool hopeless = beam->found && beam_bound(s, beam, b->log_p) <= beam->text->output->score;
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

bool beam_advance_all(struct search_state *s)
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
    bool ok = log_p && (s->log_p ? sb_tensor_read(log_p, s->log_p) : beam_read_best(s, log_p));
    return sb_tape_end(&tape) && ok && beam_advance_all(s);
}

int64_t beam_unfinished(const struct search_state *s, int64_t *most)
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
    bool ok = beam_begin(&s, search) && beam_step(&s, search->start_length, search->start);
    while (ok && beam_unfinished(&s, &most) > 0) {
        const int64_t steps = beam_steps_most(&s, most);
        ok = steps > 0 ? beam_steps_run(&s, steps) : beam_arrange(&s) && beam_step(&s, 1, s.ids);
    }
    for (int64_t b = 0; ok && b < search->texts; b++)
        ok = beam_read_output(&s, &s.beam[b]);
    beam_end(&s);
    return ok;
}
