/*
 * Copies through shared memory with cp.async: each block reverses 512 bytes. The last block's part
 * may be shorter; cp.async fills up with zeros.
 */
#include "check.cuh"
#include <tensor_core.cuh>

const int Tile = 128;

__global__ void reverse_tiles(const float *x, float *y, int count)
{
    SHARED_ALIGNED(16, float, tile, [Tile]);
    int first = blockIdx.x * Tile + threadIdx.x * 4;
    int bytes = max(0, min(16, (count - first) * 4));
#ifdef PLANTED_MISALIGNED_COPY
    first++;
#endif
#ifdef PLANTED_COPY_PAST_END
    bytes = 16;
#endif
    if (threadIdx.x < Tile / 4)
        cp_async16(&tile[threadIdx.x * 4], bytes > 0 ? x + first : x, bytes);
#ifndef PLANTED_NO_COMMIT
    cp_async_commit();
#endif
#ifndef PLANTED_NO_WAIT
    cp_async_wait<0>();
#endif
#ifndef PLANTED_NO_BARRIER
    __syncthreads();
#endif
    y[blockIdx.x * Tile + threadIdx.x] = tile[Tile - 1 - threadIdx.x];
}

/* Lanes of a warp exchange numbers in shared memory: this needs __syncwarp, even without a branch.
 */
__global__ void swap_neighbours(const int *x, int *y)
{
    SHARED(int, slot, [32]);
    slot[threadIdx.x] = x[threadIdx.x];
#ifndef PLANTED_NO_SYNCWARP
    __syncwarp();
#endif
    y[threadIdx.x] = slot[threadIdx.x ^ 1];
}

/* Blocks must not depend on the order in which they run. */
__global__ void running_sums(const int *x, int *y)
{
#ifdef PLANTED_BLOCK_ORDER
    y[blockIdx.x] = (blockIdx.x > 0 ? y[blockIdx.x - 1] : 0) + x[blockIdx.x];
#else
    int sum = 0;
    for (unsigned i = 0; i <= blockIdx.x; i++)
        sum += x[i];
    y[blockIdx.x] = sum;
#endif
}

static void try_reverse(int count)
{
    int blocks = (count + Tile - 1) / Tile;
    std::vector<float> x = some_numbers(count, 1), y(blocks * Tile);
    for (int i = 0; i < count; i++)
        y[i / Tile * Tile + Tile - 1 - i % Tile] = x[i];
    Array<float> from(x), to(y.size());
    LAUNCH(reverse_tiles, blocks, Tile, 0, 0, from, to, count);
    check_close(to.read(), y, 0, "reversed tiles");
}

int main()
{
    try_reverse(3 * Tile);
    try_reverse(Tile + 5);
    std::vector<int> x(32), swapped(32), sums(32);
    for (int i = 0; i < 32; i++) {
        x[i] = i + 1;
        swapped[i ^ 1] = i + 1;
        sums[i] = (i + 1) * (i + 2) / 2;
    }
    Array<int> from(x), to(32);
    LAUNCH(swap_neighbours, 1, 32, 0, 0, from, to);
    check_close(to.read(), swapped, 0, "swapped neighbours");
    LAUNCH(running_sums, 32, 1, 0, 0, from, to);
    check_close(to.read(), sums, 0, "running sums");
    return check_report();
}
