#include "models/decoding/greedy_graph.h"
#include "nn/decoder_state.h"
#include "nn/device_position.h"
#include "ops/decoding.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <string.h>

enum {
    FIRST_RESERVE = 64,      /* positions, so that short outputs need one graph */
    LARGEST_TABLE = 1 << 22, /* elements of biases by position */
};

int64_t greedy_steps_ahead = GREEDY_STEPS_AHEAD;

struct greedy_graph {
    const struct search *search;
    struct device_position position;
    sb_tensor *ids;     /* (B, 1): the symbols that the next step reads */
    sb_tensor *lengths; /* (B): of the memory; NULL in a language model */
    sb_tensor *noted;   /* (GREEDY_STEPS_AHEAD, B, 2) of f64 */
    sb_tensor *forbidden;
    bool warm, tried; /* a step has run eagerly; it was captured, or could not be */
    struct plugin_graph *graph;
};

static const sb_device *greedy_device(void)
{
    return sb_device_in_use();
}

int64_t greedy_graph_steps(const struct sequences *s, int64_t most)
{
    if (greedy_device() == sb_device_cpu() || !s->state || sb_decoder_state_length(s->state) == 0)
        return 0;
    const int64_t window = s->generator->window, length = sb_decoder_state_length(s->state);
    const int64_t left = window > 0 ? window - s->length : most;
    const int64_t room = 2 * (length + FIRST_RESERVE); /* an upper bound of the capacity */
    if (decoder_table_size(s->generator->decoder, room) > LARGEST_TABLE)
        return 0;
    const int64_t steps = most < left ? most : left;
    return steps < greedy_steps_ahead ? steps : greedy_steps_ahead;
}

void greedy_graph_free(struct greedy_graph **graph)
{
    struct greedy_graph *g = *graph;
    if (!g)
        return;
    if (g->graph)
        greedy_device()->graphs->free(g->graph);
    device_position_end(&g->position);
    sb_tensor_release(g->ids);
    sb_tensor_release(g->lengths);
    sb_tensor_release(g->noted);
    memory_free(g);
    *graph = NULL;
}

static struct greedy_graph *greedy_graph_new(const struct search *search, sb_tensor *forbidden,
                                             const int32_t *ids)
{
    const struct sequences *s = search->sequences;
    const int64_t B = s->count, length = sb_decoder_state_length(s->state);
    struct greedy_graph *g = memory_new(sizeof *g);
    if (!g)
        return sb_fail("decode: out of memory");
    *g = (struct greedy_graph){.search = search, .forbidden = forbidden};
    g->ids = sb_tensor_from(SB_I32, SB_SHAPE(B, 1), ids);
    g->lengths = s->lengths ? sb_tensor_from(SB_I32, SB_SHAPE(B), s->lengths) : NULL;
    g->noted = sb_tensor_zeros(SB_F64, SB_SHAPE(GREEDY_STEPS_AHEAD, B, 2));
    if (g->ids && (g->lengths || !s->lengths) && g->noted &&
        device_position_begin(&g->position, B, length, decoder_state_room(s->state)))
        return g;
    greedy_graph_free(&g);
    return NULL;
}

sb_tensor *greedy_best(sb_tensor *log_p, sb_tensor *forbidden, sb_tensor **value)
{
    sb_tensor *best = sb_argmax(sb_add(log_p, forbidden), -1);
    *value = sb_gather(log_p, best);
    return *value ? best : NULL;
}

/* Leaves the step's symbols to the next one and to the host. */
static bool greedy_graph_note(struct greedy_graph *g, sb_tensor *logits)
{
    sb_tensor *value, *best = greedy_best(sb_log_softmax(logits), g->forbidden, &value);
    const struct decoding_kernels *k = best ? kernel_row(&decoding_rows, value) : NULL;
    const struct decoding_note note = {.B = g->search->sequences->count,
                                       .steps = GREEDY_STEPS_AHEAD,
                                       .best = best ? best->data : NULL,
                                       .log_p = best ? value->data : NULL,
                                       .ids = g->ids->data,
                                       .position = g->position.at->data,
                                       .lengths = g->position.lengths->data,
                                       .noted = g->noted->data};
    return k && k->note(&note);
}

/* Queues a step. */
static bool greedy_graph_step(struct greedy_graph *g)
{
    const struct sequences *s = g->search->sequences;
    const struct generator *generator = s->generator;
    sb_context context = *context_open();
    context.position = &g->position;
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &context);
    sb_tape_random(&tape, NULL);
    sb_tensor *y = sb_decoder_step(generator->decoder, s->state, g->ids, NULL, g->lengths, NULL);
    if (y)
        y = sb_reshape(y, SB_SHAPE(s->count, sb_tensor_dim(y, 2)));
    sb_tensor *logits = y ? generator->output(generator->model, y) : NULL;
    const bool ok = logits && greedy_graph_note(g, logits);
    return sb_tape_end(&tape) && ok;
}

/* Captures a step; on failure the steps go on eagerly. */
static void greedy_graph_capture(struct greedy_graph *g)
{
    const sb_device *device = greedy_device();
    g->tried = true;
    if (!device->graphs)
        return;
    device->private_memory(true);
    if (device->graphs->begin()) {
        const bool ok = greedy_graph_step(g);
        g->graph = device->graphs->end();
        if (!ok && g->graph) {
            device->graphs->free(g->graph);
            g->graph = NULL;
        }
    }
    device->private_memory(false);
    if (!g->graph)
        failure_settled();
}

static bool greedy_graph_next(struct greedy_graph *g)
{
    if (g->warm && !g->tried)
        greedy_graph_capture(g);
    g->warm = true;
    return g->graph ? greedy_device()->graphs->launch(g->graph, 0) : greedy_graph_step(g);
}

/* Reads the last `steps` rows that were noted, of which the first belongs to position `first`. */
static bool greedy_graph_read(const struct greedy_graph *g, int64_t first, int64_t steps,
                              double *noted)
{
    const size_t row = (size_t)(2 * g->search->sequences->count);
    double *all = memory_new(GREEDY_STEPS_AHEAD * row * sizeof *all);
    if (!all)
        return sb_fail("decode: out of memory");
    const bool ok = greedy_device()->download(all, g->noted->data, tensor_bytes(g->noted));
    for (int64_t i = 0; ok && i < steps; i++)
        memcpy(noted + (size_t)i * row, all + (size_t)((first + i) % GREEDY_STEPS_AHEAD) * row,
               row * sizeof *noted);
    memory_free(all);
    return ok;
}

bool greedy_graph_run(struct greedy_graph **graph, const struct search *search,
                      sb_tensor *forbidden, const int32_t *ids, int64_t steps, double *noted)
{
    sb_decoder_state *state = search->sequences->state;
    const int64_t first = sb_decoder_state_length(state);
    if (*graph && first + steps > decoder_state_room(state))
        greedy_graph_free(graph);
    if (!*graph && (!decoder_state_reserve(state, FIRST_RESERVE) ||
                    !(*graph = greedy_graph_new(search, forbidden, ids))))
        return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < steps; i++)
        ok = greedy_graph_next(*graph);
    if (!ok || !greedy_graph_read(*graph, first, steps, noted))
        return false;
    decoder_state_advance(state, steps);
    return true;
}
