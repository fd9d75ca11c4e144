#include "models/decoding/device_steps.h"
#include "nn/decoder_state.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

enum {
    FIRST_RESERVE = 64,      /* positions, so that short outputs need one graph */
    LARGEST_TABLE = 1 << 22, /* elements of biases by position */
};

int64_t device_steps_ahead = DEVICE_STEPS_AHEAD;

int64_t device_steps_most(const struct sequences *s, int64_t most)
{
    if (sb_device_in_use() == sb_device_cpu() || !s->state ||
        sb_decoder_state_length(s->state) == 0)
        return 0;
    const int64_t window = s->generator->window, length = sb_decoder_state_length(s->state);
    const int64_t left = window > 0 ? window - s->length : most;
    const int64_t room = 2 * (length + FIRST_RESERVE); /* an upper bound of the capacity */
    if (decoder_table_size(s->generator->decoder, room) > LARGEST_TABLE)
        return 0;
    const int64_t steps = most < left ? most : left;
    return steps < device_steps_ahead ? steps : device_steps_ahead;
}

void device_steps_end(struct device_steps *d)
{
    if (d->graph)
        sb_device_in_use()->graphs->free(d->graph);
    device_position_end(&d->position);
    sb_tensor_release(d->ids);
    sb_tensor_release(d->lengths);
    sb_tensor_release(d->noted);
    memory_free(d->read);
    *d = (struct device_steps){0};
}

bool device_steps_begin(struct device_steps *d, const struct sequences *s, int64_t size,
                        const int32_t *ids, device_steps_choose *choose, void *chooser)
{
    const int64_t B = s->count, length = sb_decoder_state_length(s->state);
    device_steps_end(d);
    *d = (struct device_steps){.sequences = s, .choose = choose, .chooser = chooser};
    if (!decoder_state_reserve(s->state, FIRST_RESERVE))
        return false;
    d->ids = sb_tensor_from(SB_I32, SB_SHAPE(B, 1), ids);
    d->lengths = s->lengths ? sb_tensor_from(SB_I32, SB_SHAPE(B), s->lengths) : NULL;
    d->noted = sb_tensor_zeros(SB_F64, SB_SHAPE(DEVICE_STEPS_AHEAD, B, size));
    d->read = d->noted ? memory_new(tensor_bytes(d->noted)) : NULL;
    if (d->noted && !d->read)
        return sb_fail("decode: out of memory");
    return d->ids && (d->lengths || !s->lengths) && d->noted &&
           device_position_begin(&d->position, B, length, decoder_state_room(s->state));
}

bool device_steps_fit(const struct device_steps *d, int64_t steps)
{
    const sb_decoder_state *state = d->sequences ? d->sequences->state : NULL;
    return state && sb_decoder_state_length(state) + steps <= decoder_state_room(state);
}

/* Queues a step. */
static bool device_steps_queue(struct device_steps *d)
{
    const struct sequences *s = d->sequences;
    const struct generator *generator = s->generator;
    sb_context context = *context_open();
    context.position = &d->position;
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &context);
    sb_tape_random(&tape, NULL);
    sb_tensor *y = sb_decoder_step(generator->decoder, s->state, d->ids, NULL, d->lengths, NULL);
    if (y)
        y = sb_reshape(y, SB_SHAPE(s->count, sb_tensor_dim(y, 2)));
    sb_tensor *logits = y ? generator->output(generator->model, y) : NULL;
    const bool ok = logits && d->choose(d->chooser, d, logits);
    return sb_tape_end(&tape) && ok;
}

/* Captures a step; on failure the steps go on eagerly. */
static void device_steps_capture(struct device_steps *d)
{
    const sb_device *device = sb_device_in_use();
    d->tried = true;
    if (!device->graphs)
        return;
    device->private_memory(true);
    if (device->graphs->begin()) {
        const bool ok = device_steps_queue(d);
        d->graph = device->graphs->end();
        if (!ok && d->graph) {
            device->graphs->free(d->graph);
            d->graph = NULL;
        }
    }
    device->private_memory(false);
    if (!d->graph)
        failure_settled();
}

static bool device_steps_next(struct device_steps *d)
{
    if (d->warm && !d->tried)
        device_steps_capture(d);
    d->warm = true;
    return d->graph ? sb_device_in_use()->graphs->launch(d->graph, 0) : device_steps_queue(d);
}

bool device_steps_run(struct device_steps *d, int64_t steps)
{
    sb_decoder_state *state = d->sequences->state;
    bool ok = true;
    d->first = sb_decoder_state_length(state);
    for (int64_t i = 0; ok && i < steps; i++)
        ok = device_steps_next(d);
    if (!ok || !sb_device_in_use()->download(d->read, d->noted->data, tensor_bytes(d->noted)))
        return false;
    decoder_state_advance(state, steps);
    return true;
}

const double *device_steps_noted(const struct device_steps *d, int64_t i)
{
    const int64_t row = tensor_size(d->noted) / DEVICE_STEPS_AHEAD;
    return d->read + (d->first + i) % DEVICE_STEPS_AHEAD * row;
}
