#include "nn/shared_gradients.h"
#include "nn/flat.h"
#include "tensor/clock.h"
#include "tensor/memory.h"
#include "tensor/reduction.h"

/* Large enough that latency is negligible, small enough that the first sums begin early. */
int64_t shared_gradients_bucket = 1 << 19;

struct bucket {
    struct reduction *sum;
    const sb_node *last; /* the last node that adds to it; NULL: none */
    bool ready, over;
};

struct shared_gradients {
    sb_communicator *c;
    sb_parameters *set;
    int64_t layout; /* of the gradients that the buckets belong to; 0: none yet */
    int64_t size;   /* of a bucket; the last one may be smaller */
    int64_t buckets;
    struct bucket *bucket;
    int64_t left; /* number of buckets, the first ones, whose sum has not begun */
    struct listener listener;
    double seconds;
};

static void drop_buckets(struct shared_gradients *s)
{
    for (int64_t b = 0; b < s->buckets; b++)
        reduction_free(s->bucket[b].sum);
    memory_free(s->bucket);
    s->bucket = NULL;
    s->buckets = 0;
    s->layout = 0;
}

static int64_t bucket_size(const struct shared_gradients *s, int64_t b)
{
    const int64_t left = tensor_size(parameters_gradients(s->set)) - b * s->size;
    return left < s->size ? left : s->size;
}

/* Makes new buckets when the flat buffer has changed. */
static bool cut(struct shared_gradients *s)
{
    if (!parameters_flatten(s->set))
        return false;
    const sb_tensor *g = parameters_gradients(s->set);
    if (s->layout == parameters_layout(s->set))
        return true;
    drop_buckets(s);
    s->size = shared_gradients_bucket;
    const int64_t n = (tensor_size(g) + s->size - 1) / s->size;
    s->bucket = memory_new((size_t)n * sizeof *s->bucket);
    if (!s->bucket)
        return sb_fail("gradients of ranks: out of memory");
    for (; s->buckets < n; s->buckets++) {
        struct bucket *b = &s->bucket[s->buckets];
        b->sum = reduction_new(s->c, g->device, g->dtype, bucket_size(s, s->buckets));
        if (!b->sum)
            return false;
    }
    s->layout = parameters_layout(s->set);
    return true;
}

bool shared_gradients_begin(struct shared_gradients *s)
{
    if (!cut(s))
        return false;
    s->left = s->buckets;
    for (int64_t b = 0; b < s->buckets; b++)
        s->bucket[b] = (struct bucket){.sum = s->bucket[b].sum};
    return true;
}

/* ---- during backward ---- */

static void adds(void *context, const sb_tensor *leaf, const sb_node *node)
{
    struct shared_gradients *s = context;
    const sb_tensor *values = parameters_values(s->set), *g = parameters_gradients(s->set);
    if (leaf->base != values)
        return; /* a leaf that is not in the set */
    const int64_t at = ((const char *)leaf->data - (const char *)values->data) /
                       (int64_t)sb_dtype_bytes(leaf->dtype);
    const int64_t first = parameters_offset(s->set, g, parameters_at(s->set, values, at));
    for (int64_t b = first / s->size; b * s->size < first + tensor_size(leaf); b++)
        s->bucket[b].last = node;
}

/* Starts sums from the last bucket on, so that the order is the same on every rank. */
static bool start(struct shared_gradients *s, bool all)
{
    const sb_tensor *g = parameters_gradients(s->set);
    for (; s->left > 0 && (all || s->bucket[s->left - 1].ready); s->left--) {
        const int64_t b = s->left - 1;
        if (!parameters_settle_part(s->set, b * s->size, bucket_size(s, b)) ||
            !reduction_start(s->bucket[b].sum, tensor_element(g, b * s->size)))
            return false;
    }
    return true;
}

static bool progress(struct shared_gradients *s)
{
    for (int64_t b = s->buckets - 1; b >= s->left; b--)
        if (!s->bucket[b].over && !reduction_progress(s->bucket[b].sum, &s->bucket[b].over))
            return false;
    return true;
}

static bool done(void *context, const sb_node *node)
{
    struct shared_gradients *s = context;
    const double began = clock_seconds();
    for (int64_t b = 0; b < s->left; b++)
        s->bucket[b].ready |= !s->bucket[b].last || s->bucket[b].last == node;
    const bool ok = start(s, false) && progress(s);
    s->seconds += clock_seconds() - began;
    return ok;
}

/* ---- around it ---- */

struct shared_gradients *shared_gradients_new(sb_communicator *c, sb_parameters *set)
{
    struct shared_gradients *s = memory_new(sizeof *s);
    if (!s)
        return sb_fail("gradients of ranks: out of memory");
    *s = (struct shared_gradients){
        .c = c, .set = set, .listener = {.adds = adds, .done = done, .context = s}};
    if (shared_gradients_begin(s))
        return s;
    shared_gradients_free(s);
    return NULL;
}

void shared_gradients_free(struct shared_gradients *s)
{
    if (!s)
        return;
    drop_buckets(s);
    memory_free(s);
}

const struct listener *shared_gradients_listener(const struct shared_gradients *s)
{
    return s ? &s->listener : NULL;
}

static bool wait_for_sums(struct shared_gradients *s)
{
    bool ok = start(s, true);
    for (int64_t b = s->buckets - 1; ok && b >= 0; b--)
        ok = progress(s) && reduction_finish(s->bucket[b].sum);
    return ok;
}

/* Whether this rank has the gradient of every parameter that is not frozen. */
static bool has_all(const sb_parameters *set)
{
    int64_t first = 0;
    return !sb_parameters_without_gradient(set, &first);
}

/* Every rank has the sum of a gradient that any rank has: of all parameters, as a rule, which takes
   one number to say. */
static bool share_presence(struct shared_gradients *s)
{
    double complete = has_all(s->set); /* the number of ranks that have all */
    if (!sb_communicator_sum(s->c, SB_F64, 1, &complete))
        return false;
    const int64_t n = sb_parameters_count(s->set);
    double *has = memory_new((size_t)n * sizeof *has + 1);
    if (!has)
        return sb_fail("gradients of ranks: out of memory");
    for (int64_t i = 0; i < n; i++)
        has[i] = complete > 0 ? !parameters_is_frozen(s->set, i)
                              : sb_parameters_get(s->set, i)->grad_current;
    const bool ok = complete > 0 || sb_communicator_sum(s->c, SB_F64, n, has);
    for (int64_t i = 0; ok && i < n; i++)
        sb_parameters_get(s->set, i)->grad_current = has[i] > 0;
    memory_free(has);
    return ok;
}

bool shared_gradients_finish(struct shared_gradients *s, const char **without)
{
    const double began = clock_seconds();
    int64_t first = 0;
    const bool ok = wait_for_sums(s) && share_presence(s);
    if (ok && without)
        *without = sb_parameters_without_gradient(s->set, &first);
    s->seconds += clock_seconds() - began;
    return ok;
}

double shared_gradients_seconds(const struct shared_gradients *s)
{
    return s ? s->seconds : 0;
}
