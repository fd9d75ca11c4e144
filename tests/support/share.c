#include "tests/support/share.h"

static int64_t place_of(const sb_piece *piece, int64_t n)
{
    return piece->turn && n >= piece->turn ? piece->second + n - piece->turn : piece->first + n;
}

/* The index in t of element e of a part of t whose axis has `here` elements. */
static int64_t element_of(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here,
                          int64_t e)
{
    int64_t inner = 1;
    for (int i = axis + 1; i < t->rank; i++)
        inner *= t->dim[i];
    const int64_t outer = e / inner / here, n = place_of(piece, e / inner % here);
    return (outer * t->dim[axis] + n) * inner + e % inner;
}

sb_tensor *share_part(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here)
{
    int64_t dim[SB_MAX_RANK];
    memcpy(dim, t->dim, sizeof dim);
    dim[axis] = here;
    sb_tensor *part = KEPT(sb_tensor_zeros(t->dtype, t->rank, dim));
    double *numbers = numbers_of(t), *own = numbers_of(part);
    for (int64_t e = 0; e < sb_tensor_size(part); e++)
        own[e] = numbers[element_of(t, axis, piece, here, e)];
    sb_tensor_write(part, own);
    return sb_dtype_is_real(part->dtype) ? sb_tensor_requires_grad(part) : part;
}

void share_add(sb_tensor *t, int axis, const sb_piece *piece, const sb_tensor *x)
{
    double *numbers = numbers_of(x), *sum = numbers_of(t);
    const int64_t here = x->rank > 0 ? x->dim[axis] : 1;
    for (int64_t e = 0; e < sb_tensor_size(x); e++)
        sum[element_of(t, axis, piece, here, e)] += numbers[e];
    sb_tensor_write(t, sum);
}
