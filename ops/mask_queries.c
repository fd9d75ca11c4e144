#include "ops/mask_queries.h"
#include "autograd/node.h"
#include "ops/ops.h"
#include "ops/softmax.h"

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
                             const struct run run[2], bool heads_first, sb_tensor *q)
{
    struct mask_terms terms;
    if (!mask || !q || tape_open()->mode != SB_RECORD)
        return q;
    if (!mask_resolve_rows(who, mask, whole, run[0].count + run[1].count, &terms))
        return NULL;
    if (mask_gives_each_a_key(&terms, whole))
        return q;
    sb_tensor *seen = mask_queries_seen(mask, &terms, whole, run, q);
    if (seen && q->rank == 4 && !heads_first)
        seen = sb_permute(seen, 4, (const int[]){0, 2, 1, 3});
    sb_tensor *zero = seen ? tensor_new(who, q->device, q->dtype, 0, NULL) : NULL;
    if (zero)
        tensor_zero(zero);
    return zero && sb_tape_own(zero) ? sb_where(seen, q, zero) : NULL;
}
