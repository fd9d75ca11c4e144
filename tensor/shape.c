#include "tensor/shape.h"
#include "tensor/failure.h"
#include <stdio.h>

int64_t shape_size(int rank, const int64_t *dim)
{
    const int64_t limit = (int64_t)1 << 56;
    int64_t size = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return -1;
        if (dim[i] == 0)
            empty = true;
        else if (size > limit / dim[i])
            return -1;
        else
            size *= dim[i];
    }
    return empty ? 0 : size;
}

struct shape_text shape_text(int rank, const int64_t *dim)
{
    struct shape_text shape;
    size_t room = sizeof shape.text;
    size_t used = (size_t)snprintf(shape.text, room, "(");
    for (int i = 0; i < rank && i < SB_MAX_RANK; i++)
        used += (size_t)snprintf(shape.text + used, room - used, i ? ", %lld" : "%lld",
                                 (long long)dim[i]);
    snprintf(shape.text + used, room - used, ")");
    return shape;
}

bool shape_check(const char *who, int rank, const int64_t *dim)
{
    if (rank < 0 || rank > SB_MAX_RANK)
        return sb_fail("%s: rank %d is not in 0..%d", who, rank, SB_MAX_RANK);
    if (rank > 0 && !dim)
        return fail_null(who, "dim");
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0)
            return sb_fail("%s: dimension %d of %s is negative", who, i,
                           shape_text(rank, dim).text);
    if (shape_size(rank, dim) < 0)
        return sb_fail("%s: %s has more elements than any memory holds", who,
                       shape_text(rank, dim).text);
    return true;
}

bool shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b)
{
    if (rank_a != rank_b)
        return false;
    for (int i = 0; i < rank_a; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

bool shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank,
                     int64_t *dim)
{
    int longest = rank_a > rank_b ? rank_a : rank_b;
    for (int i = 1; i <= longest; i++) { /* from the last axis to the first */
        int64_t size_a = i <= rank_a ? a[rank_a - i] : 1;
        int64_t size_b = i <= rank_b ? b[rank_b - i] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return false;
        dim[longest - i] = size_a == 1 ? size_b : size_a;
    }
    *rank = longest;
    return true;
}

void shape_strides(int rank, const int64_t *dim, int to_rank, const int64_t *to, int64_t *stride)
{
    int64_t step = 1;
    for (int i = 1; i <= to_rank; i++) {
        int64_t size = i <= rank ? dim[rank - i] : 1;
        stride[to_rank - i] = size == 1 && to[to_rank - i] != 1 ? 0 : step;
        step *= size;
    }
}

int shape_axis(int rank, int axis)
{
    int from_start = axis < 0 ? rank + axis : axis;
    return from_start >= 0 && from_start < rank ? from_start : -1;
}
