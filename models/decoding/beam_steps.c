#include "models/decoding/beam.h"
#include "nn/decoder_state.h"
#include "ops/decoding.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <math.h>

int64_t beam_steps_most(const struct search_state *s, int64_t most)
{
    const bool narrow = beam_width(s) + 1 <= DECODING_SLOTS,
               plain =
                   s->search->from.never < 0 && s->search->options->beam_rule == SB_BEAM_BOUNDED;
    return narrow && plain ? device_steps_most(s->search->sequences, most) : 0;
}

void beam_steps_end(struct search_state *s)
{
    device_steps_end(&s->device);
    sb_tensor_release(s->sums);
    sb_tensor_release(s->greedies);
    sb_tensor_release(s->slots);
    s->sums = s->greedies = s->slots = NULL;
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
        !device_steps_begin(&s->device, sequences, beam_noted(s), s->ids))
        return false;
    s->device.choose = beam_steps_choose;
    s->device.chooser = s;
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

bool beam_steps_run(struct search_state *s, int64_t steps)
{
    const struct sequences *sequences = s->search->sequences;
    bool ok = (device_steps_fit(&s->device, steps) || beam_steps_begin(s)) &&
              device_steps_run(&s->device, steps, s->noted);
    const int64_t texts = sequences->count / (beam_width(s) + 1);
    for (int64_t i = 0; ok && i < steps; i++)
        ok = beam_steps_take(s, s->noted + i * sequences->count * beam_noted(s));
    int64_t most;
    if (2 * beam_unfinished(s, &most) <= texts)
        beam_steps_end(s);
    return ok;
}
