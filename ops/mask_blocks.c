/* Block-sparse masks by pattern or list. */
#include "ops/mask_terms.h"
#include "tensor/failure.h"
#include "tensor/storage.h"

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

/* An uninitialised tensor on the CPU. */
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
