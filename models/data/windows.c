#include "models/data/windows.h"
#include "models/data/epoch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/random.h"
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
    sb_batch *batch;
    sb_data_position next;
    sb_encoded_pair *window; /* of the planned epoch; targets, of which the last is not counted */
    int64_t count;
    struct epoch epoch;
    int64_t planned; /* the epoch that is planned; -1: none */
};

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
    sb_batch_free(w->batch);
    epoch_free(&w->epoch);
    sb_vocabulary_release(w->vocabulary);
    memory_free(w->window);
    memory_free(w->stream);
    memory_free(w->id);
    memory_free(w);
}

/* ---- encoding ---- */

static bool windows_room(sb_windows *w, int64_t more)
{
    if (w->ids + more <= w->ids_room)
        return true;
    const int64_t room = 2 * w->ids_room > w->ids + more ? 2 * w->ids_room : w->ids + more;
    int32_t *id = memory_new((size_t)room * sizeof *id);
    if (!id)
        return sb_fail("windows: out of memory for %lld symbols", (long long)room);
    if (w->ids > 0)
        memcpy(id, w->id, (size_t)w->ids * sizeof *id);
    memory_free(w->id);
    w->id = id;
    w->ids_room = room;
    return true;
}

/* Adds document i as a stream. One of a single symbol predicts nothing. */
static bool windows_encode(sb_windows *w, const sb_documents *documents, int64_t i)
{
    int64_t n;
    sb_unknown unknown = {0};
    int32_t *ids =
        sb_vocabulary_encode(w->vocabulary, sb_documents_text(documents, i), &n, &unknown);
    const bool ok = ids && windows_room(w, n + 2);
    if (ok) {
        struct stream *s = &w->stream[w->streams];
        *s = (struct stream){.first = w->ids};
        if (sb_documents_begins(documents, i))
            w->id[w->ids++] = SB_SYMBOL_BEGIN;
        memcpy(w->id + w->ids, ids, (size_t)n * sizeof *ids);
        w->ids += n;
        if (sb_documents_ends(documents, i))
            w->id[w->ids++] = SB_SYMBOL_END;
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
    *w = (sb_windows){.options = o, .planned = -1};
    w->vocabulary = sb_vocabulary_retain(vocabulary);
    if (windows_encode_all(w, documents))
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

/* Cuts a stream into windows; with `window` NULL it only counts them. */
static int64_t windows_cut_stream(const sb_windows *w, const struct stream *s, int64_t phase,
                                  sb_encoded_pair *window)
{
    int64_t count = 0;
    for (int64_t at = 0, n; at < s->targets; at += n, count++) {
        n = at == 0 && phase > 0 && s->targets > w->options.length ? phase : w->options.length;
        n = n < s->targets - at ? n : s->targets - at;
        if (window)
            window[count] =
                (sb_encoded_pair){.target = w->id + s->first + at, .target_length = n - 1};
    }
    return count;
}

static bool windows_plan(sb_windows *w)
{
    if (w->planned == w->next.epoch)
        return true;
    const int64_t phase = windows_phase(w, w->next.epoch);
    const struct epoch_limits limits = {w->options.batch_windows, w->options.batch_symbols};
    struct epoch epoch;
    int64_t count = 0, made = 0;
    for (int64_t i = 0; i < w->streams; i++)
        count += windows_cut_stream(w, &w->stream[i], phase, NULL);
    sb_encoded_pair *window = memory_new((size_t)count * sizeof *window);
    if (!window)
        return sb_fail("windows: out of memory for %lld windows", (long long)count);
    for (int64_t i = 0; i < w->streams; i++)
        made += windows_cut_stream(w, &w->stream[i], phase, window + made);
    if (!epoch_plan(&epoch, count, window, limits, w->options.seed, w->next.epoch)) {
        memory_free(window);
        return false;
    }
    epoch_free(&w->epoch);
    memory_free(w->window);
    w->epoch = epoch;
    w->window = window;
    w->count = count;
    w->planned = w->next.epoch;
    return true;
}

static sb_batch *windows_pick(const sb_windows *w)
{
    const int64_t b = w->epoch.batch[w->next.batch], begin = w->epoch.begin[b],
                  n = w->epoch.begin[b + 1] - begin;
    const int32_t **ids = memory_new((size_t)n * sizeof *ids);
    int64_t *length = memory_new((size_t)n * sizeof *length);
    for (int64_t i = 0; ids && length && i < n; i++) {
        const sb_encoded_pair *window = &w->window[w->epoch.order[begin + i]];
        ids[i] = window->target;
        length[i] = window->target_length + 1;
    }
    sb_batch *batch = ids && length ? sb_window_batch_new(n, ids, length)
                                    : sb_fail("windows: out of memory for a batch");
    memory_free(ids);
    memory_free(length);
    return batch;
}

const sb_batch *sb_windows_next(sb_windows *w)
{
    if (!w)
        return fail_null("windows_next", "windows");
    sb_batch *batch = windows_plan(w) ? windows_pick(w) : NULL;
    if (!batch)
        return NULL;
    sb_batch_free(w->batch);
    w->batch = batch;
    w->next.batch++;
    if (w->next.batch == w->epoch.batches)
        w->next = (sb_data_position){w->next.epoch + 1, 0};
    return batch;
}

sb_data_position sb_windows_tell(const sb_windows *w)
{
    return w ? w->next : (sb_data_position){0};
}

bool sb_windows_seek(sb_windows *w, sb_data_position position)
{
    if (!w)
        return fail_null("windows_seek", "windows");
    const int64_t most = (int64_t)1 << 19;
    const sb_data_position before = w->next;
    bool ok = position.batch >= 0 && position.epoch >= 0 && position.epoch < most;
    if (ok) {
        w->next = position;
        if (!windows_plan(w)) {
            w->next = before;
            return false;
        }
        ok = position.batch < w->epoch.batches;
    }
    w->next = ok ? position : before;
    return ok || sb_fail("windows_seek: there is no batch %lld in epoch %lld",
                         (long long)position.batch, (long long)position.epoch);
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
    return w && w->planned == w->next.epoch ? w->epoch.batches : 0;
}

/* ---- as a source ---- */

/* FNV-1a. */
static uint64_t windows_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (const unsigned char *at = bytes; count > 0; count--, at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

uint64_t sb_windows_hash(const sb_windows *w)
{
    uint64_t hash = 0xcbf29ce484222325u;
    if (!w)
        return hash;
    const sb_windows_options *o = &w->options;
    const int64_t way[] = {(int64_t)o->seed, o->length, o->batch_windows, o->batch_symbols,
                           o->fixed};
    hash = windows_hash_bytes(hash, way, sizeof way);
    hash = windows_hash_bytes(hash, w->stream, (size_t)w->streams * sizeof *w->stream);
    return windows_hash_bytes(hash, w->id, (size_t)w->ids * sizeof *w->id);
}

static const sb_batch *windows_source_next(void *windows)
{
    return sb_windows_next(windows);
}

static sb_data_position windows_source_tell(const void *windows)
{
    return sb_windows_tell(windows);
}

static bool windows_source_seek(void *windows, sb_data_position position)
{
    return sb_windows_seek(windows, position);
}

static uint64_t windows_source_hash(const void *windows)
{
    return sb_windows_hash(windows);
}

static int64_t windows_source_batches(const void *windows)
{
    return sb_windows_batches(windows);
}

sb_source sb_windows_as_source(sb_windows *windows)
{
    return (sb_source){.object = windows,
                       .next = windows_source_next,
                       .tell = windows_source_tell,
                       .seek = windows_source_seek,
                       .hash = windows_source_hash,
                       .batches = windows_source_batches};
}
