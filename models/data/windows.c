#include "models/data/windows.h"
#include "models/data/batch_parts.h"
#include "models/data/cursor.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "tensor/storage.h"
#include <string.h>

/* A document's symbols, all of them in one array. */
struct stream {
    int64_t first, targets;
};

struct sb_windows {
    sb_windows_options options;
    sb_vocabulary *vocabulary;
    int32_t *id;
    int64_t ids, ids_room;
    struct stream *stream;
    int64_t streams, symbols, bytes, unknown;
    sb_encoded_pair *window; /* of an epoch; targets, of which the last is not counted */
    struct cursor cursor;
};

static const struct cursor_items windows_items;

static bool windows_complete(const sb_windows_options *given, sb_windows_options *o)
{
    *o = given ? *given : (sb_windows_options){0};
    if (o->length < 0 || o->length > 1 << 24 || o->batch_windows < 0 || o->batch_symbols < 0)
        return sb_fail("windows: length %lld, batch_windows %lld or batch_symbols %lld is out of "
                       "range; none is negative, and length is at most %d",
                       (long long)o->length, (long long)o->batch_windows,
                       (long long)o->batch_symbols, 1 << 24);
    o->length = o->length ? o->length : 128;
    o->batch_windows = o->batch_windows ? o->batch_windows : 64;
    o->batch_symbols = o->batch_symbols ? o->batch_symbols : 4096;
    return true;
}

void sb_windows_free(sb_windows *w)
{
    if (!w)
        return;
    cursor_close(&w->cursor);
    sb_vocabulary_release(w->vocabulary);
    memory_free(w->window);
    memory_free(w->stream);
    memory_free(w->id);
    memory_free(w);
}

/* ---- encoding ---- */

static bool windows_make_room(sb_windows *w, int64_t more)
{
    if (w->ids + more <= w->ids_room)
        return true;
    const int64_t room = 2 * w->ids_room > w->ids + more ? 2 * w->ids_room : w->ids + more;
    int32_t *id = memory_resize(w->id, (size_t)room * sizeof *id);
    if (!id)
        return sb_fail("windows: out of memory for %lld symbols", (long long)room);
    w->id = id;
    w->ids_room = room;
    return true;
}

/* Adds document i as a stream. One of a single symbol predicts nothing. */
static bool windows_encode(sb_windows *w, const sb_documents *documents, int64_t i)
{
    int64_t n;
    sb_unknown unknown = {0};
    const int32_t end = sb_vocabulary_special(w->vocabulary, SB_SYMBOL_END);
    int32_t *ids =
        sb_vocabulary_encode(w->vocabulary, sb_documents_text(documents, i), &n, &unknown);
    const bool ok = ids && windows_make_room(w, n + 2);
    if (ok) {
        struct stream *s = &w->stream[w->streams];
        *s = (struct stream){.first = w->ids};
        if (sb_documents_begins(documents, i))
            w->id[w->ids++] = sb_vocabulary_special(w->vocabulary, SB_SYMBOL_BEGIN);
        memcpy(w->id + w->ids, ids, (size_t)n * sizeof *ids);
        w->ids += n;
        if (sb_documents_ends(documents, i) && end >= 0)
            w->id[w->ids++] = end;
        s->targets = w->ids - s->first - 1;
        w->unknown += unknown.count;
        w->streams += s->targets > 0;
        w->symbols += s->targets > 0 ? s->targets : 0;
    }
    sb_free(ids);
    return ok;
}

static bool windows_encode_all(sb_windows *w, const sb_documents *documents)
{
    const int64_t n = sb_documents_count(documents);
    w->bytes = sb_documents_bytes(documents);
    w->stream = memory_new((size_t)(n + 1) * sizeof *w->stream);
    if (!w->stream)
        return sb_fail("windows: out of memory for %lld documents", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!windows_encode(w, documents, i))
            return false;
    return w->streams > 0 ||
           sb_fail("windows: none of %lld documents has a symbol to predict", (long long)n);
}

/* Makes room for the windows of any epoch. */
static bool windows_make_windows(sb_windows *w)
{
    int64_t most = 0;
    for (int64_t i = 0; i < w->streams; i++)
        most += w->stream[i].targets / w->options.length + 2; /* the first and the last are short */
    w->window = memory_new((size_t)most * sizeof *w->window);
    return w->window || sb_fail("windows: out of memory for %lld windows", (long long)most);
}

sb_windows *sb_windows_new(const sb_documents *documents, sb_vocabulary *vocabulary,
                           const sb_windows_options *options)
{
    sb_windows_options o;
    if (!documents || !vocabulary)
        return fail_null("windows", documents ? "vocabulary" : "documents");
    if (!windows_complete(options, &o))
        return NULL;
    sb_windows *w = memory_new(sizeof *w);
    if (!w)
        return sb_fail("windows: out of memory");
    *w = (sb_windows){.options = o,
                      .cursor = {.items = &windows_items,
                                 .source = w,
                                 .limits = {o.batch_windows, o.batch_symbols},
                                 .seed = o.seed}};
    w->vocabulary = sb_vocabulary_retain(vocabulary);
    if (windows_encode_all(w, documents) && windows_make_windows(w))
        return w;
    sb_windows_free(w);
    return NULL;
}

/* ---- an epoch ---- */

/* How many symbols the first window of each long stream has; 0: as many as the others. */
static int64_t windows_phase(const sb_windows *w, int64_t epoch)
{
    if (w->options.fixed)
        return 0;
    sb_random random = sb_random_new(w->options.seed, SB_STREAM_DATA);
    random.position += ((uint64_t)epoch << 28) + (1u << 27); /* behind what shuffling draws */
    return sb_random_below(&random, (uint32_t)w->options.length);
}

/* Cuts a stream into windows, and counts them. */
static int64_t windows_cut_stream(const sb_windows *w, const struct stream *s, int64_t phase,
                                  sb_encoded_pair *window)
{
    int64_t count = 0;
    for (int64_t at = 0, n; at < s->targets; at += n, count++) {
        n = at == 0 && phase > 0 && s->targets > w->options.length ? phase : w->options.length;
        n = n < s->targets - at ? n : s->targets - at;
        window[count] = (sb_encoded_pair){.target = w->id + s->first + at, .target_length = n - 1};
    }
    return count;
}

static const sb_encoded_pair *windows_list(void *windows, int64_t epoch, int64_t *count)
{
    const sb_windows *w = windows;
    const int64_t phase = windows_phase(w, epoch);
    *count = 0;
    for (int64_t i = 0; i < w->streams; i++)
        *count += windows_cut_stream(w, &w->stream[i], phase, w->window + *count);
    return w->window;
}

static sb_batch *windows_batch(const void *windows, int64_t n, const int64_t item[])
{
    const sb_windows *w = windows;
    const int32_t **ids = memory_new((size_t)n * sizeof *ids);
    int64_t *length = memory_new((size_t)n * sizeof *length);
    for (int64_t i = 0; ids && length && i < n; i++) {
        ids[i] = w->window[item[i]].target;
        length[i] = w->window[item[i]].target_length + 1;
    }
    sb_batch *batch = ids && length ? sb_window_batch_new(n, ids, length)
                                    : sb_fail("windows: out of memory for a batch");
    memory_free(ids);
    memory_free(length);
    return batch;
}

static uint64_t windows_hash(const void *windows)
{
    const sb_windows *w = windows;
    const sb_windows_options *o = &w->options;
    const int64_t way[] = {(int64_t)o->seed, o->length, o->batch_windows, o->batch_symbols,
                           o->fixed};
    uint64_t hash = hash_add(HASH_START, way, sizeof way);
    hash = hash_add(hash, w->stream, (size_t)w->streams * sizeof *w->stream);
    return hash_add(hash, w->id, (size_t)w->ids * sizeof *w->id);
}

static const struct cursor_items windows_items = {
    .name = "windows", .list = windows_list, .batch = windows_batch, .hash = windows_hash};

const sb_batch *sb_windows_next(sb_windows *w)
{
    return w ? cursor_next(&w->cursor) : fail_null("windows_next", "windows");
}

sb_data_position sb_windows_tell(const sb_windows *w)
{
    return w ? cursor_tell(&w->cursor) : (sb_data_position){0};
}

bool sb_windows_seek(sb_windows *w, sb_data_position position)
{
    return w ? cursor_seek(&w->cursor, position) : fail_null("windows_seek", "windows") != NULL;
}

uint64_t sb_windows_hash(const sb_windows *w)
{
    return w ? windows_hash(w) : HASH_START;
}

sb_source sb_windows_as_source(sb_windows *windows)
{
    return windows ? cursor_as_source(&windows->cursor) : (sb_source){0};
}

const sb_windows *windows_of_source(const sb_source *source)
{
    return cursor_object(source, &windows_items);
}

/* ---- what there is ---- */

sb_vocabulary *sb_windows_vocabulary(const sb_windows *w)
{
    return w ? w->vocabulary : NULL;
}

int64_t sb_windows_symbols(const sb_windows *w)
{
    return w ? w->symbols : 0;
}

int64_t sb_windows_bytes(const sb_windows *w)
{
    return w ? w->bytes : 0;
}

int64_t sb_windows_unknown(const sb_windows *w)
{
    return w ? w->unknown : 0;
}

int64_t sb_windows_batches(const sb_windows *w)
{
    return w ? cursor_batches(&w->cursor) : 0;
}

/* ---- batches ---- */

enum { WINDOW_IN, WINDOW_OUT, WINDOW_LENGTHS };

static bool window_batch_longest(int64_t n, const int32_t *const ids[], const int64_t length[],
                                 int64_t *longest)
{
    *longest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!ids[i] || length[i] < 1)
            return sb_fail("window_batch: window %lld has %lld symbols to predict, expected at "
                           "least 1",
                           (long long)i, (long long)(ids[i] ? length[i] : 0));
        *longest = length[i] > *longest ? length[i] : *longest;
    }
    return true;
}

sb_batch *sb_window_batch_new(int64_t n, const int32_t *const ids[], const int64_t length[])
{
    int64_t L;
    if (!ids || !length)
        return fail_null("window_batch", ids ? "length" : "ids");
    if (n < 1)
        return sb_fail("window_batch: %lld windows make no batch", (long long)n);
    if (!window_batch_longest(n, ids, length, &L))
        return NULL;
    static const struct batch_form form[] = {
        [WINDOW_IN] = {"target_in", SB_I32, SB_SEQUENCE_TARGET},
        [WINDOW_OUT] = {"target_out", SB_I32, SB_SEQUENCE_TARGET},
        [WINDOW_LENGTHS] = {"target_lengths", SB_I32, SB_SEQUENCE_NONE},
        {0}};
    sb_batch *batch = batch_begin("window_batch", n, form, 0, L);
    if (!batch)
        return NULL;
    batch->target_lengths = "target_lengths";
    for (int64_t b = 0; b < n; b++) {
        batch_write(batch, WINDOW_IN, b, 0, ids[b], length[b], SB_SYMBOL_PADDING);
        batch_write(batch, WINDOW_OUT, b, 0, ids[b] + 1, length[b], -1);
        *(int32_t *)batch_row(batch, WINDOW_LENGTHS, b) = (int32_t)length[b];
        batch->targets += length[b];
    }
    return batch_end(batch);
}
