/*
 * Fragments of matrices in shared memory, as mma takes them (tensor_core.cuh), for kernels
 * whose products are on tensor cores.
 */
#ifndef SOFTBACK_CUDA_FRAGMENTS_CUH
#define SOFTBACK_CUDA_FRAGMENTS_CUH

#include "cuda/row_group.cuh"
#include <tensor_core.cuh>

__device__ inline int lane_group()
{
    return threadIdx.x % WARP / 4;
}
__device__ inline int lane_part()
{
    return threadIdx.x % 4;
}

/* The numbers of a chunk of 16 bytes: eight bf16, or four floats. */
template <class T> constexpr int CHUNK = 16 / sizeof(T);

/*
 * Rows of D numbers in shared memory. ldmatrix reads a chunk of each of eight rows at a time; rows
 * are an odd multiple of 16 bytes apart, so that there are no bank conflicts.
 */
template <int D, class T = bf16> constexpr int PITCH = D + CHUNK<T>;

/* Rows row .. row + 15, two chunks of columns: as a fragment a, or, across, as two fragments b,
   elements 0 and 1 of the first and 2 and 3 of the second. */
template <int D, class T>
__device__ void load_a(uint32_t (&x)[4], const T *tile, int row, int chunk)
{
    const int lane = threadIdx.x % WARP;
    ldmatrix_x4(x, tile + (row + lane % 16) * PITCH<D, T> + CHUNK<T> * (chunk + lane / 16));
}
template <int D>
__device__ void load_b_across(uint32_t (&y)[4], const bf16 *tile, int row, int chunk)
{
    const int lane = threadIdx.x % WARP;
    ldmatrix_x4_trans(y, tile + (row + lane % 16) * PITCH<D> + 8 * (chunk + lane / 16));
}

/* The same part as two fragments b whose columns are its rows. */
template <int D, class T>
__device__ void load_b(uint32_t (&y)[4], const T *tile, int row, int chunk)
{
    const int lane = threadIdx.x % WARP;
    ldmatrix_x4(y, tile + (row + lane / 16 * 8 + lane % 8) * PITCH<D, T> +
                       CHUNK<T> * (chunk + lane / 8 % 2));
}

/* The transpose of the same part as a fragment a. */
template <int D>
__device__ void load_a_across(uint32_t (&x)[4], const bf16 *tile, int row, int chunk)
{
    const int lane = threadIdx.x % WARP;
    ldmatrix_x4_trans(x, tile + (row + lane / 16 * 8 + lane % 8) * PITCH<D> +
                             8 * (chunk + lane / 8 % 2));
}

/* d += x y for two adjacent fragments. */
__device__ inline void multiply_add(float (&d)[4], float (&next)[4], const uint32_t (&x)[4],
                                    const uint32_t (&y)[4])
{
    const uint32_t first[2] = {y[0], y[1]}, second[2] = {y[2], y[3]};
    mma_m16n8k16_bf16(d, x, first);
    mma_m16n8k16_bf16(next, x, second);
}

#endif
