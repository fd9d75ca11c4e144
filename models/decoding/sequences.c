#include "models/decoding/search.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

/* The texts' symbols, padded: (n, *length). An empty text holds one symbol of padding, so that
   there is something to attend to, as in a batch of training. */
static int32_t *sequences_padded(int64_t n, const struct decoding_text texts[], int64_t *length)
{
    int64_t L = 1;
    for (int64_t i = 0; i < n; i++)
        L = texts[i].length > L ? texts[i].length : L;
    int32_t *ids = memory_new((size_t)(n * L) * sizeof *ids);
    for (int64_t i = 0; ids && i < n * L; i++) {
        const struct decoding_text *text = &texts[i / L];
        ids[i] = i % L < text->length ? text->ids[i % L] : SB_SYMBOL_PADDING;
    }
    *length = L;
    return ids ? ids : sb_fail("decode: out of memory");
}

static sb_tensor *sequences_tensor_of(int rank, const int64_t *dim, const int32_t *values)
{
    return sb_tape_own(sb_tensor_from(SB_I32, rank, dim, values));
}

/* Runs the encoder over the sources. */
static bool sequences_encode(struct sequences *s, const struct decoding_text texts[])
{
    int64_t n = s->count, L = 0;
    s->lengths = memory_new((size_t)n * sizeof *s->lengths);
    int32_t *ids = s->lengths ? sequences_padded(n, texts, &L) : sb_fail("decode: out of memory");
    if (!ids)
        return false;
    for (int64_t i = 0; i < n; i++)
        s->lengths[i] = (int32_t)(texts[i].length > 0 ? texts[i].length : 1);
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *source = sequences_tensor_of(SB_SHAPE(n, L), ids), *lengths = NULL;
    if (source)
        lengths = sequences_tensor_of(SB_SHAPE(n), s->lengths);
    if (lengths)
        s->memory = sb_tensor_retain(s->generator->encode(s->generator->model, source, lengths));
    memory_free(ids);
    return sb_tape_end(&tape) && s->memory;
}

/* "Begin" for each text, unless the generator is bare, followed by the prompt. */
static int32_t *sequences_starts(const struct generator *g, int64_t n,
                                 const struct decoding_text texts[], int64_t *length)
{
    const int64_t prompt = g->encode ? 0 : texts[0].length, begin = g->bare && prompt > 0 ? 0 : 1,
                  L = begin + prompt;
    int32_t *start = memory_new((size_t)(n * L) * sizeof *start);
    if (!start)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n; i++) {
        start[i * L] = sb_vocabulary_special(g->outputs, SB_SYMBOL_BEGIN);
        memcpy(start + i * L + begin, texts[i].ids, (size_t)prompt * sizeof *start);
    }
    *length = L;
    return start;
}

bool sequences_begin(struct sequences *s, const struct generator *generator, int64_t n,
                     const struct decoding_text texts[], bool cache, int32_t **start,
                     int64_t *start_length)
{
    *s = (struct sequences){.generator = generator, .count = n};
    *start = NULL;
    if (generator->encode && !sequences_encode(s, texts))
        return false;
    if (cache && !(s->state = sb_decoder_state_new(generator->decoder)))
        return false;
    *start = sequences_starts(generator, n, texts, start_length);
    return *start != NULL;
}

void sequences_end(struct sequences *s)
{
    sb_tensor_release(s->memory);
    sb_decoder_state_free(s->state);
    memory_free(s->lengths);
    memory_free(s->prefix);
    *s = (struct sequences){0};
}

/* Adds L symbols to each prefix. */
static bool sequences_prefix_add(struct sequences *s, int64_t L, const int32_t *ids)
{
    int64_t n = s->count, old = s->length, length = old + L;
    int32_t *prefix = memory_new((size_t)(n * length) * sizeof *prefix);
    if (!prefix)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n * length; i++) {
        int64_t row = i / length, t = i % length;
        prefix[i] = t < old ? s->prefix[row * old + t] : ids[row * L + t - old];
    }
    memory_free(s->prefix);
    s->prefix = prefix;
    s->length = length;
    return true;
}

/* Keeps only the last half window of each prefix and drops the state: positions start again at 0.
 */
static bool sequences_slide(struct sequences *s)
{
    const int64_t keep = (s->generator->window + 1) / 2, old = s->length;
    for (int64_t i = 0; i < s->count; i++)
        memmove(s->prefix + i * keep, s->prefix + (i + 1) * old - keep,
                (size_t)keep * sizeof *s->prefix);
    s->length = keep;
    s->slid = true;
    if (!s->state)
        return true;
    sb_decoder_state_free(s->state);
    s->state = sb_decoder_state_new(s->generator->decoder);
    return s->state != NULL;
}

/* The decoder's output for the L new positions, or, without a state, for all. */
static sb_tensor *sequences_decode(struct sequences *s, int64_t L, const int32_t *ids)
{
    const sb_decoder *decoder = s->generator->decoder;
    sb_tensor *lengths = s->lengths ? sequences_tensor_of(SB_SHAPE(s->count), s->lengths) : NULL;
    if (s->lengths && !lengths)
        return NULL;
    const int64_t window = s->generator->window;
    if ((!s->state || window > 0) && !sequences_prefix_add(s, L, ids))
        return NULL;
    if (window > 0 && s->length > window) {
        if (!sequences_slide(s))
            return NULL;
        L = s->length;
        ids = s->prefix;
    }
    if (!s->state) {
        sb_tensor *all = sequences_tensor_of(SB_SHAPE(s->count, s->length), s->prefix);
        return all ? sb_decoder_forward(decoder, all, s->memory, lengths, NULL) : NULL;
    }
    sb_tensor *new_ids = sequences_tensor_of(SB_SHAPE(s->count, L), ids);
    sb_tensor *y =
        new_ids ? sb_decoder_step(decoder, s->state, new_ids, s->memory, lengths, NULL) : NULL;
    sb_tensor_release(s->memory); /* the state has its keys and values */
    s->memory = NULL;
    return y;
}

sb_tensor *sequences_next(struct sequences *s, int64_t L, const int32_t *ids)
{
    sb_tensor *y = sequences_decode(s, L, ids); /* (count, 1 or more, C) */
    if (!y)
        return NULL;
    int64_t last = sb_tensor_dim(y, 1) - 1, C = sb_tensor_dim(y, 2);
    if (last > 0)
        y = sb_slice(y, 1, last, 1);
    y = sb_reshape(y, 2, (const int64_t[]){s->count, C});
    return s->generator->output(s->generator->model, y);
}

/* Selects rows of the memory (B, L, C) with an embedding lookup. */
static bool sequences_reorder_memory(struct sequences *s, int64_t n, const int32_t *rows)
{
    int64_t B = sb_tensor_dim(s->memory, 0), L = sb_tensor_dim(s->memory, 1);
    int64_t C = sb_tensor_dim(s->memory, 2);
    sb_tape tape;
    search_tape(&tape);
    sb_tensor *flat = sb_reshape(s->memory, 2, (const int64_t[]){B, L * C});
    sb_tensor *picked = sequences_tensor_of(SB_SHAPE(n), rows);
    if (picked)
        picked = sb_embedding(flat, picked);
    picked = sb_tensor_retain(sb_reshape(picked, 3, (const int64_t[]){n, L, C}));
    bool ok = sb_tape_end(&tape) && picked;
    sb_tensor_release(ok ? s->memory : picked);
    s->memory = ok ? picked : s->memory;
    return ok;
}

static bool sequences_reorder_ids(int64_t L, int64_t n, const int32_t *rows, int32_t **ids)
{
    int32_t *picked = memory_new((size_t)(n * L) * sizeof *picked + 1);
    if (!picked)
        return sb_fail("decode: out of memory");
    for (int64_t i = 0; i < n; i++)
        memcpy(picked + i * L, *ids + rows[i] * L, (size_t)L * sizeof *picked);
    memory_free(*ids);
    *ids = picked;
    return true;
}

bool sequences_note(struct sequences *s, const int32_t *ids, const int32_t *rows)
{
    return s->generator->window == 0 ||
           (sequences_prefix_add(s, 1, ids) &&
            (!rows || sequences_reorder_ids(s->length, s->count, rows, &s->prefix)));
}

bool sequences_reorder(struct sequences *s, int64_t n, const int32_t *rows)
{
    bool same = n == s->count;
    for (int64_t i = 0; same && i < n; i++)
        same = rows[i] == i;
    if (same)
        return true;
    s->count = n;
    return (!s->lengths || sequences_reorder_ids(1, n, rows, &s->lengths)) &&
           (!s->prefix || sequences_reorder_ids(s->length, n, rows, &s->prefix)) &&
           (!s->memory || sequences_reorder_memory(s, n, rows)) &&
           (!s->state || sb_decoder_state_reorder(s->state, n, rows));
}
