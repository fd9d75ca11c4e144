/* Greedy decoding and sampling: one output for each text, one symbol at a time. */
#include "models/decoding/device_steps.h"
#include "ops/decoding.h"
#include "ops/softmax.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

struct greedy {
    const struct search *search;
    int64_t count;        /* sequences */
    int64_t *text, *room; /* the text of each; the room for symbols of each text */
    struct choice *chosen;
    int32_t *ids, *rows;
    /* greedy */
    sb_tensor *forbidden;       /* (V): 0 where a symbol may be chosen, else -infinity */
    int32_t *best;              /* (count) */
    double *log_p;              /* (count); (count, V) for sampling */
    struct device_steps device; /* steps that the device takes without the host */
    /* sampling */
    struct choice *choices;
};

static bool greedy_begin(struct greedy *g, const struct search *s)
{
    int64_t n = s->texts, V = s->V;
    *g = (struct greedy){.search = s, .count = n};
    g->text = memory_new((size_t)n * sizeof *g->text);
    g->room = memory_new((size_t)n * sizeof *g->room);
    g->chosen = memory_new((size_t)n * sizeof *g->chosen);
    g->ids = memory_new((size_t)n * sizeof *g->ids);
    g->rows = memory_new((size_t)n * sizeof *g->rows);
    g->best = memory_new((size_t)n * sizeof *g->best);
    g->log_p = memory_new((size_t)(s->options->sample ? n * V : n) * sizeof *g->log_p);
    g->choices = memory_new((size_t)V * sizeof *g->choices);
    if (!g->text || !g->room || !g->chosen || !g->ids || !g->rows || !g->best || !g->log_p ||
        !g->choices)
        return sb_fail("decode: out of memory");
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        g->text[i] = i;
        ok = output_room(s->text[i].output, &g->room[i]);
    }
    return ok;
}

static void greedy_end(struct greedy *g)
{
    memory_free(g->text);
    memory_free(g->room);
    memory_free(g->chosen);
    memory_free(g->ids);
    memory_free(g->rows);
    memory_free(g->best);
    memory_free(g->log_p);
    memory_free(g->choices);
    device_steps_end(&g->device);
    sb_tensor_release(g->forbidden);
}

static bool greedy_forbid(struct greedy *g, sb_dtype dtype)
{
    g->forbidden = sb_tensor_zeros(dtype, SB_SHAPE(g->search->V));
    for (int64_t id = 0; g->forbidden && id < g->search->V; id++)
        if (!search_allows(g->search->from, id))
            sb_tensor_set(g->forbidden, id, -INFINITY);
    return g->forbidden != NULL;
}

/* The best allowed symbol of each row of log_p, and its log-probability, with operations, which
   work on every device and dtype. */
static sb_tensor *greedy_best(sb_tensor *log_p, sb_tensor *forbidden, sb_tensor **value)
{
    sb_tensor *best = sb_argmax(sb_add(log_p, forbidden), -1);
    *value = sb_gather(log_p, best);
    return *value ? best : NULL;
}

static bool greedy_find_best(struct greedy *g, sb_tensor *log_p)
{
    sb_tensor *value, *best = greedy_best(log_p, g->forbidden, &value);
    return best && sb_tensor_read(value, g->log_p) &&
           best->device->download(g->best, best->data, tensor_bytes(best));
}

static bool greedy_choose_best(struct greedy *g, sb_tensor *logits)
{
    if (!g->forbidden && !greedy_forbid(g, sb_tensor_dtype(logits)))
        return false;
    if (!log_softmax_best(logits, g->forbidden, g->best, g->log_p) &&
        !greedy_find_best(g, sb_log_softmax(logits)))
        return false;
    for (int64_t i = 0; i < g->count; i++)
        g->chosen[i] = (struct choice){g->log_p[i], g->best[i]};
    return true;
}

static bool greedy_choose_randomly(struct greedy *g, sb_tensor *logits)
{
    const struct search *s = g->search;
    sb_tensor *log_p = sb_log_softmax(logits);
    if (!log_p || !sb_tensor_read(log_p, g->log_p))
        return false;
    for (int64_t i = 0; i < g->count; i++) {
        const struct decoding_text *text = &s->text[g->text[i]];
        sb_random random = sb_random_new(s->options->seed, SB_STREAM_SAMPLE);
        random.position += (uint64_t)text->index << 24; /* a text draws at most 2^24 numbers */
        random.position += (uint64_t)text->output->length;
        g->chosen[i] = choices_draw(s->options, s->from, s->V, g->log_p + i * s->V,
                                    sb_random_uniform(&random), g->choices);
    }
    return true;
}

static bool greedy_choose(struct greedy *g, int64_t L, const int32_t *ids)
{
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *logits = sequences_next(g->search->sequences, L, ids);
    bool ok = logits &&
              (g->search->options->sample ? greedy_choose_randomly : greedy_choose_best)(g, logits);
    return sb_tape_end(&tape) && ok;
}

/* Appends the chosen symbol to output i. */
static bool greedy_extend(struct greedy *g, int64_t i)
{
    const struct decoding_text *text = &g->search->text[g->text[i]];
    sb_decoded *output = text->output;
    struct choice chosen = g->chosen[i];
    if (!isfinite(chosen.log_p))
        return search_fail_values(text);
    output->log_probability += chosen.log_p;
    output->ended = chosen.id == g->search->from.end;
    if (output->ended)
        return true;
    output->ids[output->length++] = chosen.id;
    output->slid = g->search->sequences->slid;
    const sb_decoding_options *o = g->search->options;
    if (o->listen && !o->listen(o->listener, text->index, chosen.id))
        return sb_fail("decode: its listener ended it");
    return output_room(output, &g->room[g->text[i]]);
}

static bool greedy_is_done(const struct decoding_text *text)
{
    return text->output->ended || text->output->length == text->longest;
}

/* Extends the outputs that are not done. */
static bool greedy_extend_all(struct greedy *g)
{
    for (int64_t i = 0; i < g->count; i++) {
        const struct decoding_text *text = &g->search->text[g->text[i]];
        sb_decoded *output = text->output;
        g->ids[i] = g->chosen[i].id;
        if (greedy_is_done(text))
            continue;
        if (!greedy_extend(g, i))
            return false;
        output->ended = output->ended || (greedy_is_done(text) && g->search->options->force_end);
        if (greedy_is_done(text))
            output->score = search_score(g->search->options, output->log_probability,
                                         output->length + output->ended);
    }
    return true;
}

/* The sequences whose output is not done, and how many symbols the longest of these may get. */
static int64_t greedy_unfinished(const struct greedy *g, int64_t *most)
{
    int64_t n = 0;
    *most = 0;
    for (int64_t i = 0; i < g->count; i++) {
        const struct decoding_text *text = &g->search->text[g->text[i]];
        const int64_t left = greedy_is_done(text) ? 0 : text->longest - text->output->length;
        n += left > 0;
        *most = left > *most ? left : *most;
    }
    return n;
}

/* Removes the sequences whose output is done. */
static bool greedy_compact(struct greedy *g)
{
    int64_t left = 0;
    device_steps_end(&g->device);
    for (int64_t i = 0; i < g->count; i++) {
        if (greedy_is_done(&g->search->text[g->text[i]]))
            continue;
        g->rows[left] = (int32_t)i;
        g->ids[left] = g->ids[i];
        g->text[left++] = g->text[i];
    }
    g->count = left;
    return left == 0 || sequences_reorder(g->search->sequences, left, g->rows);
}

/* One step, chosen by the host. */
static bool greedy_step(struct greedy *g, int64_t L, const int32_t *ids)
{
    return greedy_choose(g, L, ids) && greedy_extend_all(g) && greedy_compact(g);
}

/* Leaves the symbols of a step of the device to the next one and to the host. */
static bool greedy_choose_there(void *g_, const struct device_steps *d, sb_tensor *logits)
{
    const struct greedy *g = g_;
    sb_tensor *value, *best = greedy_best(sb_log_softmax(logits), g->forbidden, &value);
    const struct decoding_kernels *k = best ? kernel_row(&decoding_rows, value) : NULL;
    const struct decoding_note note = {.B = d->sequences->count,
                                       .steps = DEVICE_STEPS_AHEAD,
                                       .best = best ? best->data : NULL,
                                       .log_p = best ? value->data : NULL,
                                       .ids = d->ids->data,
                                       .position = d->position.at->data,
                                       .lengths = d->position.lengths->data,
                                       .noted = d->noted->data};
    return k && k->note(&note);
}

/* Takes over a step of the device. */
static bool greedy_take(struct greedy *g, const double *noted)
{
    if (!sequences_note(g->search->sequences, g->ids, NULL))
        return false;
    for (int64_t i = 0; i < g->count; i++)
        g->chosen[i] = (struct choice){noted[2 * i + 1], (int32_t)noted[2 * i]};
    return greedy_extend_all(g);
}

/* Several steps that the device takes without the host; sequences whose output is done stay until
   they are the half. */
static bool greedy_steps(struct greedy *g, int64_t steps)
{
    int64_t most;
    bool ok =
        (device_steps_fit(&g->device, steps) ||
         device_steps_begin(&g->device, g->search->sequences, 2, g->ids, greedy_choose_there, g)) &&
        device_steps_run(&g->device, steps);
    for (int64_t i = 0; ok && i < steps; i++)
        ok = greedy_take(g, device_steps_noted(&g->device, i));
    return ok && (2 * greedy_unfinished(g, &most) > g->count || greedy_compact(g));
}

static bool greedy_advance(struct greedy *g)
{
    const sb_decoding_options *o = g->search->options;
    int64_t most;
    greedy_unfinished(g, &most);
    const int64_t steps =
        o->sample ? 0 : device_steps_most(g->search->sequences, o->listen ? 1 : most);
    if (steps > 0)
        return greedy_steps(g, steps);
    return (g->device.sequences ? greedy_compact(g) : true) && greedy_step(g, 1, g->ids);
}

bool search_greedy(const struct search *search)
{
    struct greedy g;
    bool ok = greedy_begin(&g, search) &&
              greedy_step(&g, search->sequences->start_length, search->sequences->start);
    while (ok && g.count > 0)
        ok = greedy_advance(&g);
    greedy_end(&g);
    return ok;
}
