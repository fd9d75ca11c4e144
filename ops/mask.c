#include "ops/mask.h"
#include "autograd/node.h"
#include "ops/mask_terms.h"
#include "ops/softmax.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

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

bool mask_may_be_made(const char *who)
{
    missing |= !tape_open();
    return tape_need(who) != NULL;
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
    if (!mask_may_be_made(who))
        return NULL;
    if (!pairs)
        return fail_null(who, name);
    if (!tensor_readable(who, pairs))
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
    if (!mask_may_be_made("mask_lengths"))
        return NULL;
    if (!lengths)
        return fail_null("mask_lengths", "lengths");
    if (!tensor_readable("mask_lengths", lengths))
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

bool mask_resolve(const char *who, const sb_mask *mask, struct mask_sizes sizes,
                  struct mask_terms *terms)
{
    return mask_resolve_rows(who, mask, sizes, sizes.Lq, terms);
}

bool mask_resolve_rows(const char *who, const sb_mask *mask, struct mask_sizes sizes, int64_t rows,
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
