#include "ops/attention_call.h"
#include "ops/call.h"
#include "ops/decoding.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

/* Keys (B, room, G, D) and values (B, room, G, Dv), filled up to `length`; NULL in a new cache. */
struct sb_kv_cache {
    int64_t length;
    sb_tensor *k, *v;
    const sb_tensor *position; /* kv_cache_follow; or NULL */
};

enum { FIRST_ROOM = 16 };

sb_kv_cache *sb_kv_cache_new(void)
{
    sb_kv_cache *cache = memory_new(sizeof *cache);
    return cache ? cache : sb_fail("kv_cache_new: out of memory");
}

static void cache_replace(sb_kv_cache *cache, sb_tensor *k, sb_tensor *v)
{
    sb_tensor_release(cache->k);
    sb_tensor_release(cache->v);
    cache->k = k;
    cache->v = v;
}

void sb_kv_cache_free(sb_kv_cache *cache)
{
    if (!cache)
        return;
    cache_replace(cache, NULL, NULL);
    memory_free(cache);
}

int64_t sb_kv_cache_length(const sb_kv_cache *cache)
{
    return cache ? cache->length : 0;
}

int64_t sb_kv_cache_batch(const sb_kv_cache *cache)
{
    return cache && cache->k ? cache->k->dim[0] : 0;
}

/* The size in bytes of `positions` positions of one sequence in t (B, ..., G, D). */
static size_t cache_bytes_of(const sb_tensor *t, int64_t positions)
{
    return (size_t)(positions * t->dim[2] * t->dim[3]) * sb_dtype_bytes(t->dtype);
}

static bool cache_run_copies(const sb_tensor *to, const struct block_copy copy[2])
{
    /* Copies depend on the size of elements alone: one row serves all dtypes. */
    const struct attention_kernels *kernels =
        kernel_row_if_any(&attention_rows, to->device, SB_F32);
    return kernels && kernels->copy_blocks(copy);
}

/* A copy of the first `positions` positions of n sequences into `to`. Sequence i comes from
   rows[i], or from i if rows is NULL. */
static struct block_copy cache_copy(sb_tensor *to, const sb_tensor *from, int64_t positions,
                                    int64_t n, const int32_t *rows)
{
    return (struct block_copy){.n = n,
                               .bytes = cache_bytes_of(to, positions),
                               .to = to->data,
                               .to_stride = cache_bytes_of(to, to->dim[1]),
                               .from = from->data,
                               .from_stride = cache_bytes_of(from, from->dim[1]),
                               .rows = rows};
}

/* A copy of the positions of `from` to the end of the cache. */
static struct block_copy cache_append(const sb_kv_cache *cache, sb_tensor *to,
                                      const sb_tensor *from)
{
    struct block_copy copy = cache_copy(to, from, from->dim[1], from->dim[0], NULL);
    if (cache->position)
        copy.at = cache->position->data;
    else
        copy.to = (char *)to->data + cache_bytes_of(to, cache->length);
    copy.at_bytes = cache_bytes_of(to, 1);
    return copy;
}

/* Uninitialised keys and values for B sequences with this capacity, otherwise like k and v. */
static bool cache_make(const char *who, const sb_tensor *k, const sb_tensor *v, int64_t B,
                       int64_t room, sb_kv_cache *made)
{
    const int64_t k_dim[4] = {B, room, k->dim[2], k->dim[3]};
    const int64_t v_dim[4] = {B, room, v->dim[2], v->dim[3]};
    *made = (sb_kv_cache){.k = tensor_new(who, k->device, k->dtype, 4, k_dim)};
    made->v = made->k ? tensor_new(who, v->device, v->dtype, 4, v_dim) : NULL;
    if (!made->v)
        cache_replace(made, NULL, NULL);
    return made->v != NULL;
}

/* Copies the sequences rows[0..n-1] (NULL: all) into new tensors of another capacity. */
static bool cache_rebuild(const char *who, sb_kv_cache *cache, int64_t room, int64_t n,
                          const int32_t *rows)
{
    sb_kv_cache made;
    if (!cache_make(who, cache->k, cache->v, n, room, &made))
        return false;
    const struct block_copy copies[] = {cache_copy(made.k, cache->k, cache->length, n, rows),
                                        cache_copy(made.v, cache->v, cache->length, n, rows)};
    if (!cache_run_copies(made.k, copies)) {
        cache_replace(&made, NULL, NULL);
        return false;
    }
    cache_replace(cache, made.k, made.v);
    return true;
}

/* Checks that t (B, L, G, D) matches the cached tensor `like`, which is NULL in a new cache. */
static bool cache_follows(const char *name, const sb_tensor *t, const sb_tensor *like)
{
    if (!sb_dtype_is_real(t->dtype) || t->rank != 4)
        return sb_fail("kv_cache_append: %s is %s of %s; it must be real and (batch, length, "
                       "heads, size)",
                       name, tensor_shape(t).text, sb_dtype_name(t->dtype));
    if (t->dtype == SB_DUAL)
        return sb_fail("kv_cache_append: %s is of dual numbers, and a cache passes no derivatives",
                       name);
    if (!like)
        return true;
    if (t->dtype != like->dtype || t->device != like->device)
        return sb_fail("kv_cache_append: %s is of %s on %s; the cache holds %s on %s", name,
                       sb_dtype_name(t->dtype), t->device->name, sb_dtype_name(like->dtype),
                       like->device->name);
    if (t->dim[0] != like->dim[0] || t->dim[2] != like->dim[2] || t->dim[3] != like->dim[3])
        return sb_fail("kv_cache_append: %s is %s; the cache holds %lld sequences of %lld heads of "
                       "size %lld",
                       name, tensor_shape(t).text, (long long)like->dim[0], (long long)like->dim[2],
                       (long long)like->dim[3]);
    return true;
}

static bool cache_may_append(const sb_kv_cache *cache, const sb_tensor *k, const sb_tensor *v)
{
    if (!cache || !k || !v)
        return fail_null("kv_cache_append", !cache ? "cache" : !k ? "k" : "v");
    const struct open_tape *tape = tape_open();
    if (tape && tape->failed)
        return false;
    if (tape && tape->mode == SB_RECORD)
        return sb_fail("kv_cache_append: the open tape records, and a cache keeps nothing for "
                       "backward; open one with SB_NO_RECORD");
    if (!tensor_readable("kv_cache_append", k) || !tensor_readable("kv_cache_append", v) ||
        !cache_follows("k", k, cache->k) || !cache_follows("v", v, cache->v))
        return false;
    if (k->dim[0] != v->dim[0] || k->dim[1] != v->dim[1] || k->dim[2] != v->dim[2] ||
        k->dtype != v->dtype || k->device != v->device)
        return sb_fail("kv_cache_append: k is %s of %s, v is %s of %s; only the size of a head may "
                       "differ",
                       tensor_shape(k).text, sb_dtype_name(k->dtype), tensor_shape(v).text,
                       sb_dtype_name(v->dtype));
    return true;
}

int64_t kv_cache_room(const sb_kv_cache *cache)
{
    return cache->k ? cache->k->dim[1] : 0;
}

/* The next capacity of a cache, for this many positions more. */
static int64_t cache_grown_room(const sb_kv_cache *cache, int64_t positions)
{
    int64_t room = kv_cache_room(cache) ? kv_cache_room(cache) : FIRST_ROOM;
    while (room < cache->length + positions)
        room *= 2;
    return room;
}

static bool cache_make_room(sb_kv_cache *cache, const sb_tensor *k, const sb_tensor *v)
{
    const char *who = "kv_cache_append";
    const int64_t room = cache_grown_room(cache, k->dim[1]);
    if (room == kv_cache_room(cache))
        return true;
    if (cache->k)
        return cache_rebuild(who, cache, room, cache->k->dim[0], NULL);
    return cache_make(who, k, v, k->dim[0], room, cache);
}

bool kv_cache_reserve(sb_kv_cache *cache, int64_t positions)
{
    const int64_t room = cache_grown_room(cache, positions);
    return room == kv_cache_room(cache) ||
           cache_rebuild("kv_cache_append", cache, room, cache->k->dim[0], NULL);
}

void kv_cache_follow(sb_kv_cache *cache, const sb_tensor *position)
{
    cache->position = position;
}

void kv_cache_advance(sb_kv_cache *cache, int64_t positions)
{
    cache->length += positions;
}

static struct decoding_cache cache_part(const sb_tensor *t)
{
    return (struct decoding_cache){t->data, (int64_t)cache_bytes_of(t, t->dim[1]),
                                   (int64_t)cache_bytes_of(t, 1)};
}

bool kv_caches_rearrange(int n, sb_kv_cache *const cache[], int64_t slots, const sb_tensor *from,
                         const sb_tensor *position)
{
    /* It moves bytes: one row serves all dtypes. */
    const struct decoding_kernels *kernels =
        kernel_row_if_any(&decoding_rows, from->device, SB_F32);
    struct decoding_caches caches = {.texts = tensor_size(from) / slots,
                                     .slots = slots,
                                     .from = from->data,
                                     .position = position->data};
    bool ok = kernels != NULL;
    for (int i = 0; ok && i < n; i++) {
        caches.cache[caches.count++] = cache_part(cache[i]->k);
        caches.cache[caches.count++] = cache_part(cache[i]->v);
        if (caches.count < DECODING_CACHES && i + 1 < n)
            continue;
        ok = kernels->rearrange(&caches);
        caches.count = 0;
    }
    return ok;
}

bool sb_kv_cache_append(sb_kv_cache *cache, sb_tensor *k, sb_tensor *v)
{
    if (!cache_may_append(cache, k, v) || !cache_make_room(cache, k, v))
        return false;
    const struct block_copy copies[] = {cache_append(cache, cache->k, k),
                                        cache_append(cache, cache->v, v)};
    if (!cache_run_copies(cache->k, copies))
        return false;
    cache->length += cache->position ? 0 : k->dim[1];
    return true;
}

bool sb_kv_cache_reorder(sb_kv_cache *cache, int64_t n, const int32_t *rows)
{
    if (!cache || !rows)
        return fail_null("kv_cache_reorder", cache ? "rows" : "cache");
    int64_t B = sb_kv_cache_batch(cache);
    bool same = n == B;
    if (!check_at_least("kv_cache_reorder", "n", n, 0))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (rows[i] < 0 || rows[i] >= B)
            return sb_fail("kv_cache_reorder: rows[%lld] is %d; the cache holds %lld sequences",
                           (long long)i, (int)rows[i], (long long)B);
        same &= rows[i] == i;
    }
    return same || cache_rebuild("kv_cache_reorder", cache, cache->k->dim[1], n, rows);
}

bool sb_kv_cache_truncate(sb_kv_cache *cache, int64_t length)
{
    if (!cache)
        return fail_null("kv_cache_truncate", "cache");
    if (length < 0 || length > cache->length)
        return sb_fail("kv_cache_truncate: length is %lld; the cache holds %lld positions",
                       (long long)length, (long long)cache->length);
    cache->length = length;
    return true;
}

static const sb_operation operations[] = {{"attention_cached", "q mask", NULL, false, false},
                                          {"attention_cached", "q bias mask", NULL, false, false}};

static bool cache_may_attend(const sb_kv_cache *cache)
{
    if (!tape_need("attention_cached"))
        return false;
    if (!cache)
        return fail_null("attention_cached", "cache");
    if (!cache->k)
        return sb_fail("attention_cached: the cache is empty; nothing was appended to it");
    if (tape_open()->mode == SB_RECORD)
        return sb_fail("attention_cached: the open tape records, and a cache keeps nothing for "
                       "backward; open one with SB_NO_RECORD");
    return true;
}

static bool cache_fits(const sb_tensor *q, const sb_kv_cache *cache)
{
    return (q->dtype == cache->k->dtype && q->device == cache->k->device) ||
           sb_fail("attention_cached: q is of %s on %s; the cache holds %s on %s",
                   sb_dtype_name(q->dtype), q->device->name, sb_dtype_name(cache->k->dtype),
                   cache->k->device->name);
}

/* Attention in the dtype of its operands. */
static sb_tensor *cache_attend(sb_tensor *const in[3], int64_t length,
                               const sb_attention_options *options)
{
    struct attention_call call;
    if (options->softcap != 0)
        return sb_fail("attention_cached: softcap is %g; it is not available with a cache; call "
                       "sb_attention with all keys and values",
                       options->softcap);
    if (!attention_call_read(&call, "attention_cached", in[0], in[1], in[2], length, options) ||
        !attention_call_score(&call, true))
        return NULL;
    call.a.products = PRODUCTS_ROWS;
    sb_node *node = attention_call_node(&call, operations, 1, &call.a, sizeof call.a);
    return attention_call_forward(&call, node);
}

sb_tensor *sb_attention_cached(sb_tensor *q, const sb_kv_cache *cache,
                               const sb_attention_options *options)
{
    sb_attention_options o = options ? *options : (sb_attention_options){0};
    if (o.weights)
        *o.weights = NULL;
    if (!cache_may_attend(cache) || (q && !cache_fits(q, cache)))
        return NULL;
    sb_tensor *in[] = {q, cache->k, cache->v, o.bias, o.log_temperature};
    const bool widened = call_widen("attention_cached", &attention_rows, 5, in);
    o.bias = in[3];
    o.log_temperature = in[4];
    sb_tensor *y = cache_attend(in, cache->position ? kv_cache_room(cache) : cache->length, &o);
    if (o.weights)
        *o.weights = call_round(widened, *o.weights);
    return call_round(widened, y);
}
