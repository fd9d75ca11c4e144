#include "ops/mask.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/mask_terms.h"
#include "ops/ops.h"
#include "ops/runs.h"
#include "ops/softmax.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

/* A term before the sizes of the scores are known. */
struct part {
    enum mask_kind kind;
    int64_t before, after;
    bool last;         /* a band that is aligned with the last query and key */
    sb_tensor *tensor; /* lengths or pairs, retained; NULL for a band */
    bool allows;
    int64_t size; /* of blocks */
};

struct sb_mask {
    int count;
    struct part part[MASK_TERMS];
};

static const int64_t everything = INT64_MAX;

/* Set when a mask failed because no tape was open. There was no tape to mark as failed, and the
   next attention must not take the NULL mask for "no mask". */
static _Thread_local bool missing;

static void mask_release(void *object)
{
    sb_mask *mask = object;
    for (int i = 0; i < mask->count; i++)
        sb_tensor_release(mask->part[i].tensor);
    memory_free(mask);
}

/* A mask of the open tape with these parts, whose tensors it retains. */
static sb_mask *mask_new(const char *who, int count, const struct part part[])
{
    sb_mask *mask = memory_new(sizeof *mask);
    if (!mask)
        return sb_fail("%s: out of memory", who);
    mask->count = count;
    for (int i = 0; i < count; i++) {
        mask->part[i] = part[i];
        sb_tensor_retain(part[i].tensor);
    }
    missing = false;
    return tape_own_object(mask, mask_release, who);
}

/* Whether a tape is open for a mask; every constructor checks this first. */
static bool mask_may_be_made(const char *who)
{
    missing |= !tape_open();
    return tape_need(who) != NULL;
}

/* The same for a mask that is made from a tensor. */
static bool mask_may_read(const char *who, const char *name, const sb_tensor *t)
{
    if (!mask_may_be_made(who))
        return false;
    if (!t)
        return fail_null(who, name);
    return tensor_readable(who, t);
}

static sb_mask *mask_band(const char *who, int64_t before, int64_t after, bool last)
{
    if (!mask_may_be_made(who))
        return NULL;
    struct part part = {.kind = MASK_BAND, .before = before, .after = after, .last = last};
    return mask_new(who, 1, &part);
}

sb_mask *sb_mask_causal(void)
{
    return mask_band("mask_causal", everything, 0, false);
}

sb_mask *sb_mask_causal_last(void)
{
    return mask_band("mask_causal_last", everything, 0, true);
}

sb_mask *sb_mask_window(int64_t before, int64_t after)
{
    if (mask_may_be_made("mask_window") && (before < 0 || after < 0))
        return sb_fail("mask_window: before is %lld, after is %lld; both must be at least 0",
                       (long long)before, (long long)after);
    return mask_band("mask_window", before, after, false);
}

/* A mask of pairs, or of blocks of `size` queries and keys; size 0: pairs. */
static sb_mask *mask_dense(const char *who, const char *name, sb_tensor *pairs, bool allows,
                           int64_t size)
{
    if (!mask_may_read(who, name, pairs))
        return NULL;
    if (pairs->dtype != SB_BOOL)
        return sb_fail("%s: %s is of %s; it must be bool", who, name, sb_dtype_name(pairs->dtype));
    if (pairs->rank > 4)
        return sb_fail("%s: %s is %s; the scores have only the four axes (batch, heads, queries, "
                       "keys)",
                       who, name, tensor_shape(pairs).text);
    struct part part = {.kind = size ? MASK_BLOCKS : MASK_DENSE, .tensor = pairs};
    part.allows = allows;
    part.size = size;
    return mask_new(who, 1, &part);
}

sb_mask *sb_mask_allow(sb_tensor *allowed)
{
    return mask_dense("mask_allow", "allowed", allowed, true, 0);
}

sb_mask *sb_mask_block(sb_tensor *blocked)
{
    return mask_dense("mask_block", "blocked", blocked, false, 0);
}

sb_mask *sb_mask_blocks(sb_tensor *kept, int64_t size)
{
    if (mask_may_be_made("mask_blocks") && size < 1)
        return sb_fail("mask_blocks: size is %lld; a block has at least 1 query and key",
                       (long long)size);
    return mask_dense("mask_blocks", "kept", kept, true, size);
}

sb_mask *sb_mask_lengths(sb_tensor *lengths)
{
    if (!mask_may_read("mask_lengths", "lengths", lengths))
        return NULL;
    if (lengths->dtype != SB_I32 || lengths->rank != 1)
        return sb_fail("mask_lengths: lengths is %s of %s; it must be i32 with one axis, the batch",
                       tensor_shape(lengths).text, sb_dtype_name(lengths->dtype));
    struct part part = {.kind = MASK_LENGTHS, .tensor = lengths};
    return mask_new("mask_lengths", 1, &part);
}

sb_mask *sb_mask_and(sb_mask *a, sb_mask *b)
{
    if (!mask_may_be_made("mask_and"))
        return NULL;
    if (!a || !b)
        return fail_null("mask_and", a ? "b" : "a");
    if (a->count + b->count > MASK_TERMS)
        return sb_fail("mask_and: %d and %d masks cannot be combined; the limit is %d", a->count,
                       b->count, MASK_TERMS);
    struct part part[MASK_TERMS];
    for (int i = 0; i < a->count + b->count; i++)
        part[i] = i < a->count ? a->part[i] : b->part[i - a->count];
    return mask_new("mask_and", a->count + b->count, part);
}

int mask_tensors(const sb_mask *mask, sb_tensor *tensors[MASK_TERMS])
{
    int n = 0;
    for (int i = 0; mask && i < mask->count; i++)
        if (mask->part[i].tensor)
            tensors[n++] = mask->part[i].tensor;
    return n;
}

static int64_t mask_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Clipped to the largest distances that occur: Lq before a query and Lk after it. */
static void mask_resolve_band(const struct part *part, struct mask_sizes sizes,
                              struct mask_term *term)
{
    int64_t shift = part->last ? sizes.Lk - sizes.Lq : 0;
    term->before = mask_smaller(part->before, sizes.Lq + sizes.Lk) - shift;
    term->after = mask_smaller(part->after, sizes.Lq + sizes.Lk) + shift;
}

static bool mask_resolve_lengths(const char *who, const struct part *part, struct mask_sizes sizes,
                                 struct mask_term *term)
{
    const sb_tensor *t = part->tensor;
    if (t->dim[0] != sizes.B)
        return sb_fail("%s: the mask has lengths for %lld sentences; the batch is %lld", who,
                       (long long)t->dim[0], (long long)sizes.B);
    const struct softmax_kernels *kernels = kernel_row(&softmax_rows, t);
    if (!kernels)
        return false;
    int64_t bad = kernels->bad_length(sizes.B, t->data, sizes.Lk);
    if (bad >= 0)
        return sb_fail("%s: the mask's lengths[%lld] is %.0f; with %lld keys it must be in 0..%lld",
                       who, (long long)bad, sb_tensor_get(t, bad), (long long)sizes.Lk,
                       (long long)sizes.Lk);
    term->lengths = t->data;
    return true;
}

/* The number of rows or columns of a part for a length: blocks, or the length itself. */
static int64_t mask_in_blocks(const struct part *part, int64_t length)
{
    return part->size ? length / part->size + (length % part->size != 0) : length;
}

static bool mask_resolve_dense(const char *who, const struct part *part, struct mask_sizes sizes,
                               int64_t rows, struct mask_term *term)
{
    const sb_tensor *t = part->tensor;
    const int64_t scores[4] = {sizes.B, sizes.H, part->size ? mask_in_blocks(part, sizes.Lq) : rows,
                               mask_in_blocks(part, sizes.Lk)};
    int64_t common[4];
    int rank;
    if (!shape_broadcast(t->rank, t->dim, 4, scores, &rank, common) ||
        !shape_equal(rank, common, 4, scores))
        return sb_fail("%s: the mask is %s; it does not broadcast to the %s %s", who,
                       tensor_shape(t).text, part->size ? "blocks of scores" : "scores",
                       shape_text(4, scores).text);
    shape_strides(t->rank, t->dim, 4, scores, term->stride);
    term->pairs = t->data;
    term->allows = part->allows;
    term->size = part->size;
    return true;
}

bool mask_resolve(const char *who, const sb_mask *mask, struct mask_sizes sizes, int64_t rows,
                  struct mask_terms *terms)
{
    *terms = (struct mask_terms){0};
    if (!mask && missing) {
        missing = false;
        return sb_fail("%s: mask is NULL, because no tape was open when it was created; create it "
                       "on the tape that uses it",
                       who);
    }
    bool ok = true;
    for (int i = 0; mask && ok && i < mask->count; i++) {
        const struct part *part = &mask->part[i];
        struct mask_term *term = &terms->term[terms->count++];
        term->kind = part->kind;
        if (part->kind == MASK_BAND)
            mask_resolve_band(part, sizes, term);
        else if (part->kind == MASK_LENGTHS)
            ok = mask_resolve_lengths(who, part, sizes, term);
        else
            ok = terms->dense = mask_resolve_dense(who, part, sizes, rows, term);
    }
    return ok;
}

struct mask_terms mask_part(const struct mask_terms *mask, int64_t row, int64_t query, int64_t key)
{
    struct mask_terms part = *mask;
    for (int n = 0; n < part.count; n++) {
        struct mask_term *term = &part.term[n];
        term->query = query;
        term->key = key;
        if (term->kind == MASK_BAND) { /* i + query - before <= j + key <= i + query + after */
            term->before += key - query;
            term->after += query - key;
        }
        if (term->kind == MASK_DENSE)
            term->pairs += row * term->stride[2] + key * term->stride[3];
    }
    return part;
}

/* The index of element (b, h, i, j) of the scores in a dense tensor, or -1 if it is outside. */
static int64_t mask_dense_index(const sb_tensor *t, const int64_t place[4])
{
    int64_t index = 0;
    for (int axis = 0; axis < t->rank; axis++) {
        int64_t at = place[4 - t->rank + axis];
        at = t->dim[axis] == 1 ? 0 : at;
        if (at >= t->dim[axis])
            return -1;
        index = index * t->dim[axis] + at;
    }
    return index;
}

static bool mask_term_keeps(const struct part *part, const int64_t place[4], int64_t Lq, int64_t Lk)
{
    int64_t i = place[2] + (part->last ? Lk - Lq : 0), j = place[3];
    if (part->kind == MASK_BAND)
        return i - j <= part->before && j - i <= part->after;
    if (part->kind == MASK_LENGTHS)
        return (double)j < sb_tensor_get(part->tensor, place[0]);
    int64_t size = part->size ? part->size : 1;
    const int64_t block[4] = {place[0], place[1], place[2] / size, place[3] / size};
    return (sb_tensor_get(part->tensor, mask_dense_index(part->tensor, block)) != 0) ==
           part->allows;
}

/* Whether the mask covers sequence b, head h, Lq queries and Lk keys. */
static bool mask_has_text(const sb_mask *mask, int64_t b, int64_t h, int64_t Lq, int64_t Lk)
{
    if (b < 0 || h < 0 || Lq < 0 || Lk < 0)
        return sb_fail("mask_text: b %lld, h %lld, Lq %lld, Lk %lld: none may be negative",
                       (long long)b, (long long)h, (long long)Lq, (long long)Lk);
    for (int i = 0; i < mask->count; i++) {
        const struct part *part = &mask->part[i];
        const sb_tensor *t = part->tensor;
        if (t && !tensor_readable("mask_text", t))
            return false;
        int64_t size = part->size ? part->size : 1;
        const int64_t last[4] = {b, h, Lq ? (Lq - 1) / size : 0, Lk ? (Lk - 1) / size : 0};
        bool fits = part->kind == MASK_BAND || (part->kind == MASK_LENGTHS && b < t->dim[0]) ||
                    (part->kind != MASK_LENGTHS && t && mask_dense_index(t, last) >= 0);
        if (!fits)
            return sb_fail("mask_text: b %lld, h %lld, Lq %lld, Lk %lld do not fit a mask made "
                           "from %s",
                           (long long)b, (long long)h, (long long)Lq, (long long)Lk,
                           tensor_shape(t).text);
    }
    return true;
}

char *sb_mask_text(const sb_mask *mask, int64_t b, int64_t h, int64_t Lq, int64_t Lk)
{
    if (!mask)
        return fail_null("mask_text", "mask");
    if (!mask_has_text(mask, b, h, Lq, Lk))
        return NULL;
    int64_t characters = shape_size(2, (int64_t[]){Lq, Lk + 1});
    char *text = characters < 0 ? NULL : memory_new((size_t)characters + 1);
    if (!text)
        return sb_fail("mask_text: out of memory");
    char *at = text;
    for (int64_t i = 0; i < Lq; i++) {
        for (int64_t j = 0; j < Lk; j++) {
            bool kept = true;
            for (int n = 0; n < mask->count; n++)
                kept &= mask_term_keeps(&mask->part[n], (int64_t[]){b, h, i, j}, Lq, Lk);
            *at++ = kept ? '#' : '.';
        }
        *at++ = '\n';
    }
    return text;
}

/* ---- masks that come as numbers with -inf ---- */

/*
 * Only -inf has relu(-b) = inf, whose inverse is 0; NaN stays NaN, which counts as
 * true. Inverses of 8, since 1 / b may be subnormal, and a device may take that for 0.
 */
static sb_tensor *mask_bias_allowed(sb_tensor *bias)
{
    sb_tensor *eight = tensor_new("mask_from_bias", sb_device_cpu(), bias->dtype, SB_SCALAR);
    if (eight)
        tensor_write_part(eight, 0, 1, &(double){8});
    eight = tensor_moved(eight, bias->device);
    if (!eight || !sb_tape_own(eight))
        return NULL;
    return sb_cast(sb_divide(eight, sb_relu(sb_negate(sb_detach(bias)))), SB_BOOL);
}

sb_mask *sb_mask_from_bias(sb_tensor *bias)
{
    const char *who = "mask_from_bias";
    if (!mask_may_read(who, "bias", bias) || !check_real(who, "bias", bias))
        return NULL;
    sb_tensor *allowed = mask_bias_allowed(bias);
    return allowed ? sb_mask_allow(allowed) : NULL;
}

/* ---- block-sparse masks by pattern or list ---- */

/* The parameters of a pattern, and its numbers of blocks. */
struct pattern {
    int64_t size, rows, columns;
    int64_t around, stride, globals;
};

static bool mask_describe(const char *who, int64_t Lq, int64_t Lk, struct pattern *p)
{
    if (!mask_may_be_made(who))
        return false;
    if (Lq < 1 || Lk < 1 || p->size < 1)
        return sb_fail("%s: %lld queries, %lld keys, blocks of %lld: each must be at least 1", who,
                       (long long)Lq, (long long)Lk, (long long)p->size);
    p->rows = (Lq - 1) / p->size + 1;
    p->columns = (Lk - 1) / p->size + 1;
    return true;
}

static bool mask_is_near(int64_t a, int64_t b, int64_t around)
{
    return (a < b ? b - a : a - b) <= around;
}

static bool mask_block_keeps(const struct pattern *p, int64_t row, int64_t column)
{
    return mask_is_near(row, column, p->around) ||
           (p->stride > 0 && column % p->stride == p->stride - 1) || row < p->globals ||
           column < p->globals;
}

/* A tensor of zeros on the CPU. */
static sb_tensor *blocks_new(const struct pattern *p)
{
    sb_tensor *kept = tensor_new("mask", sb_device_cpu(), SB_BOOL, SB_SHAPE(p->rows, p->columns));
    if (kept)
        tensor_zero(kept);
    return kept;
}

/* Makes the mask and releases the tensor of blocks. */
static sb_mask *mask_finished(sb_tensor *kept, int64_t size)
{
    kept = tensor_moved(kept, sb_device_in_use());
    sb_mask *mask = sb_mask_blocks(kept, size);
    sb_tensor_release(kept);
    return mask;
}

static sb_mask *mask_of(const struct pattern *p)
{
    sb_tensor *kept = blocks_new(p);
    for (int64_t n = 0; kept && n < p->rows * p->columns; n++)
        sb_tensor_set(kept, n, mask_block_keeps(p, n / p->columns, n % p->columns));
    return mask_finished(kept, p->size);
}

/* The mask of a pattern that only lacks the number of its blocks. */
static sb_mask *mask_pattern(const char *who, int64_t Lq, int64_t Lk, struct pattern p)
{
    return mask_describe(who, Lq, Lk, &p) && check_at_least(who, "around", p.around, 0) &&
                   check_at_least(who, "globals", p.globals, 0)
               ? mask_of(&p)
               : NULL;
}

sb_mask *sb_mask_local(int64_t Lq, int64_t Lk, int64_t size, int64_t around)
{
    return mask_pattern("mask_local", Lq, Lk, (struct pattern){.size = size, .around = around});
}

sb_mask *sb_mask_strided(int64_t Lq, int64_t Lk, int64_t size, int64_t around, int64_t stride)
{
    const char *who = "mask_strided";
    const struct pattern p = {.size = size, .around = around, .stride = stride};
    return check_at_least(who, "stride", stride, 1) ? mask_pattern(who, Lq, Lk, p) : NULL;
}

sb_mask *sb_mask_global(int64_t Lq, int64_t Lk, int64_t size, int64_t around, int64_t globals)
{
    const struct pattern p = {.size = size, .around = around, .globals = globals};
    return mask_pattern("mask_global", Lq, Lk, p);
}

sb_mask *sb_mask_block_list(int64_t Lq, int64_t Lk, int64_t size, int64_t n,
                            const int64_t (*blocks)[2])
{
    const char *who = "mask_block_list";
    struct pattern p = {.size = size};
    if (!mask_describe(who, Lq, Lk, &p) || !check_at_least(who, "n", n, 0))
        return NULL;
    if (!blocks && n > 0)
        return fail_null(who, "blocks");
    for (int64_t i = 0; i < n; i++)
        if (blocks[i][0] < 0 || blocks[i][0] >= p.rows || blocks[i][1] < 0 ||
            blocks[i][1] >= p.columns)
            return sb_fail("%s: block %lld is (%lld, %lld); there are %lld x %lld blocks of %lld",
                           who, (long long)i, (long long)blocks[i][0], (long long)blocks[i][1],
                           (long long)p.rows, (long long)p.columns, (long long)size);
    sb_tensor *kept = blocks_new(&p);
    for (int64_t i = 0; kept && i < n; i++)
        sb_tensor_set(kept, blocks[i][0] * p.columns + blocks[i][1], 1);
    return mask_finished(kept, size);
}

/* ---- queries that a mask leaves without a key ---- */

/* Whether ranges alone give each query a key, as in a causal mask. */
static bool mask_gives_each_a_key(const struct mask_terms *terms, struct mask_sizes sizes)
{
    for (int n = 0; n < terms->count; n++)
        if (terms->term[n].kind != MASK_BAND)
            return false;
    for (int64_t i = 0; i < sizes.Lq; i++)
        if (mask_range(terms, 0, i, i, sizes.Lk).to == 0)
            return false;
    return true;
}

/* The number of heads by which the mask differs: all, or 1. */
static int64_t mask_heads(const struct mask_terms *terms, int64_t H)
{
    for (int n = 0; n < terms->count; n++)
        if (terms->term[n].stride[1] != 0)
            return H;
    return 1;
}

static const sb_operation mask_queries = {"mask_queries", "q mask", NULL, false, true};

/* Whether each query has a key, with the axes of q: (B, H, L, 1), (B, L, 1) or (L, 1). */
static sb_tensor *mask_queries_seen(const sb_mask *mask, const struct mask_terms *terms,
                                    struct mask_sizes sizes, const struct run run[2], sb_tensor *q)
{
    sb_tensor *in[1 + MASK_TERMS] = {q};
    const int64_t here = run[0].count + run[1].count;
    sizes.H = mask_heads(terms, sizes.H);
    const int64_t dim[4] = {sizes.B, q->rank == 4 ? sizes.H : sizes.B, here, 1};
    sb_node *node = sb_node_new(&mask_queries, 1 + mask_tensors(mask, in + 1), in, 1, NULL, 0);
    sb_tensor *seen = node ? sb_node_output(node, SB_BOOL, q->rank, dim + 4 - q->rank) : NULL;
    const struct softmax_kernels *kernels = seen ? kernel_row(&softmax_rows, seen) : NULL;
    bool ok = kernels != NULL;
    for (int r = 0; ok && r < 2; r++) {
        const struct mask_terms part = mask_part(terms, run[r].here, run[r].first, 0);
        sizes.Lq = run[r].count;
        ok = kernels->seen(sizes, &part, here, (uint8_t *)seen->data + run[r].here);
    }
    return ok ? seen : NULL;
}

sb_tensor *mask_keep_queries(const char *who, const sb_mask *mask, struct mask_sizes whole,
                             const struct run *run, bool heads_first, sb_tensor *q)
{
    struct mask_terms terms;
    if (!mask || !q || tape_open()->mode != SB_RECORD)
        return q;
    if (!mask_resolve(who, mask, whole, run[0].count + run[1].count, &terms))
        return NULL;
    if (mask_gives_each_a_key(&terms, whole))
        return q;
    sb_tensor *seen = mask_queries_seen(mask, &terms, whole, run, q);
    if (seen && q->rank == 4 && !heads_first)
        seen = sb_permute(seen, 4, (const int[]){0, 2, 1, 3});
    return seen ? sb_where(seen, q, call_zeros(who, q, SB_SCALAR)) : NULL;
}
