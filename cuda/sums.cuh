/*
 * Many sums of many terms, in float64. Long sums are divided into slabs, whose partial sums a
 * second kernel adds; only the numbers of sums and terms determine the slabs.
 *
 * Terms is a class with
 *     start(sum)         the common data of the terms of one sum
 *     term(start, i)     its i-th term, a double
 */
#ifndef SOFTBACK_CUDA_SUMS_CUH
#define SOFTBACK_CUDA_SUMS_CUH

#include "cuda/column_group.cuh"

/* The target of sums: x = sum / divisor, or x += sum / divisor. */
template <class X> struct sum_target {
    double divisor;
    bool add;
    X *x;

    __device__ void store(int64_t i, double total) const
    {
        x[i] = before(!add, x[i]) + (real_of<X>)(total / divisor);
    }
};

/* Row slab * sums + i of the grid computes a slab of sum i. Without `partial` there is one slab. */
template <class X, class Group, class Terms>
__global__ void sum_terms(int64_t sums, int64_t count, int64_t slabs, Terms terms, double *partial,
                          sum_target<X> target)
{
    const Group group;
    const bool used = group.row < sums * slabs;
    const int64_t row = used ? group.row : 0, slab = row / sums;
    const int64_t end = used ? count * (slab + 1) / slabs : 0;
    const auto start = terms.start(row - slab * sums);
    double total = 0;
    for (int64_t i = count * slab / slabs + group.lane; i < end; i += Group::LANES)
        total += terms.term(start, i);
    total = group.sum(total);
    if (!used || group.lane != 0)
        return;
    if (partial)
        partial[row] = total;
    else
        target.store(row, total);
}

template <class X, class Terms>
void launch_sums(int64_t sums, int64_t count, int64_t slabs, bool along, Terms terms,
                 double *partial, sum_target<X> target)
{
    with_group(sums * slabs, (count + slabs - 1) / slabs, along, [&](auto kind) {
        using Group = typename decltype(kind)::type;
        LAUNCH((sum_terms<X, Group, Terms>), group_blocks<Group>(sums * slabs), dim3(ROW_THREADS),
               0, stream, sums, count, slabs, terms, partial, target);
    });
}

/* The partial sums (slabs, sums). */
struct partial_terms {
    const double *partial;
    int64_t sums;

    __device__ const double *start(int64_t sum) const
    {
        return partial + sum;
    }
    __device__ double term(const double *start, int64_t slab) const
    {
        return start[slab * sums];
    }
};

/* As many slabs as occupy a device, but none with too little work. */
inline int64_t sum_slabs(int64_t sums, int64_t count, bool along)
{
    const int64_t most = (along ? 1 << 12 : 1 << 15) / sums, worth = count / (along ? 4096 : 256);
    const int64_t slabs = worth < most ? worth : most;
    return slabs < 1 ? 1 : slabs;
}

/* Queues the sums. `along`: the terms of a sum are contiguous; otherwise adjacent sums are. */
template <class X, class Terms>
bool sum_all(const char *operation, int64_t sums, int64_t count, bool along, Terms terms,
             sum_target<X> target)
{
    if (sums == 0)
        return true;
    const int64_t slabs = sum_slabs(sums, count, along);
    if (slabs == 1) {
        launch_sums(sums, count, 1, along, terms, nullptr, target);
        return launched(operation);
    }
    const scratch partial(operation, (size_t)(slabs * sums) * sizeof(double));
    if (!partial)
        return false;
    double *const sum = partial.as<double>();
    launch_sums(sums, count, slabs, along, terms, sum, target);
    launch_sums(sums, slabs, 1, sums == 1, partial_terms{sum, sums}, nullptr, target);
    return launched(operation);
}

#endif
