/*
 * What threads do together, with hand-worked values: shuffles, votes, counts, barriers of odd
 * shapes, and atomics, in blocks whose last warp is not full.
 */
#include "check.cuh"
#include <cuda_bf16.h>

__global__ void shuffles(int *y)
{
    int lane = threadIdx.x, *own = y + lane * 8;
    own[0] = __shfl_sync(0xffffffffu, lane, 5);
    own[1] = __shfl_sync(0xffffffffu, lane, 5, 8);
    own[2] = __shfl_xor_sync(0xffffffffu, lane, 3);
    own[3] = __shfl_up_sync(0xffffffffu, lane, 2);
    own[4] = __shfl_down_sync(0xffffffffu, lane, 2, 16);
    own[5] = static_cast<int>(__shfl_xor_sync(0xffffffffu, 0x1p1000 * lane, 1) * 0x1p-1000);
    own[6] = static_cast<int>(__shfl_xor_sync(0xffffffffu, (1LL << 40) * lane, 1) >> 40);
    own[7] =
        lane < 16 ? __shfl_xor_sync(0x0000ffffu, lane, 1) : __shfl_xor_sync(0xffff0000u, lane, 2);
}

static void try_shuffles()
{
    Array<int> met(32 * 8);
    std::vector<int> expected;
    for (int lane = 0; lane < 32; lane++) {
        expected.insert(expected.end(), {5, lane / 8 * 8 + 5, lane ^ 3, lane < 2 ? lane : lane - 2,
                                         lane % 16 < 14 ? lane + 2 : lane, lane ^ 1, lane ^ 1,
                                         lane ^ (lane < 16 ? 1 : 2)});
    }
    LAUNCH(shuffles, 1, 32, 0, 0, met);
    check_close(met.read(), expected, 0, "shuffles");
}

/* A block of 48 threads: the second warp has 16 lanes. */
__global__ void votes(int *y)
{
    int i = threadIdx.x, *own = y + i * 6;
    own[0] = __popc(__ballot_sync(0xffffffffu, i % 2));
    own[1] = __any_sync(0xffffffffu, i == 40);
    own[2] = __all_sync(0xffffffffu, i < 32);
    own[3] = __syncthreads_count(i % 3 == 0);
    own[4] = __syncthreads_or(i == 47);
    own[5] = __syncthreads_and(i < 47);
}

static void try_votes()
{
    Array<int> met(48 * 6);
    std::vector<int> expected;
    for (int i = 0; i < 48; i++)
        expected.insert(expected.end(), {i < 32 ? 16 : 8, i >= 32, i < 32, 16, 1, 0});
    LAUNCH(votes, 1, 48, 0, 0, met);
    check_close(met.read(), expected, 0, "votes");
}

/* Half of the lanes end; the others still synchronise. */
__global__ void after_the_end(int *y)
{
    if (threadIdx.x >= 16)
        return;
    y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
}

/* The sum of 0 .. n-1 by any shape of block. */
__global__ void tree(int *y)
{
    DYNAMIC_SHARED(int, part);
    int size = blockDim.x * blockDim.y * blockDim.z;
    int i = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    part[i] = i;
    __syncthreads();
    for (int half = 512; half > 0; half /= 2) {
        if (i < half && i + half < size)
            part[i] += part[i + half];
        __syncthreads();
    }
    if (i == 0)
        y[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = part[0];
}

static void try_shapes()
{
    for (dim3 block : {dim3(1024), dim3(8, 8, 16), dim3(33, 5, 2), dim3(1), dim3(32)}) {
        int size = block.x * block.y * block.z;
        Array<int> met(2 * 3 * 2);
        LAUNCH(tree, dim3(2, 3, 2), block, size * sizeof(int), 0, met);
        check_close(met.read(), std::vector<int>(12, size * (size - 1) / 2), 0,
                    "a tree of any shape");
    }
}

/* Uninitialised shared memory is NaN, in every block. */
__global__ void unwritten(float *y)
{
    SHARED(float, fixed, [8]);
    DYNAMIC_SHARED(float, sized);
    y[8 * blockIdx.x + threadIdx.x] += fixed[threadIdx.x] + sized[threadIdx.x];
    if (threadIdx.x < 4)
        y[8 * blockIdx.x + threadIdx.x] = isnan(fixed[threadIdx.x]) && isnan(sized[threadIdx.x]);
    __syncthreads();
    fixed[threadIdx.x] = sized[threadIdx.x] = 3;
}

static void try_unwritten()
{
    Array<float> met(16);
    LAUNCH(unwritten, 2, 8, 8 * sizeof(float), 0, met);
    std::vector<float> y = met.read();
    for (int i = 0; i < 16; i++)
        check(i % 8 < 4 ? y[i] == 1 : isnan(y[i]), "memory starts as NaN");
}

struct Totals {
    int sum, largest, smallest, last, winners;
    unsigned long long wide;
    float real;
    double precise;
};

__global__ void atomics(Totals *totals)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&totals->sum, i);
    atomicMax(&totals->largest, i);
    atomicMin(&totals->smallest, i);
    atomicExch(&totals->last, i);
    if (atomicCAS(&totals->winners, 0, 1) == 0)
        atomicAdd(&totals->wide, 1ull << 40);
    atomicAdd(&totals->real, 0.5f);
    atomicAdd(&totals->precise, 0.25);
}

static void try_atomics()
{
    Array<Totals> totals(std::vector<Totals>{{0, 0, 1000, -1, 0, 0, 0, 0}});
    LAUNCH(atomics, 4, 96, 0, 0, totals);
    Totals met = totals.read()[0];
    check(met.sum == 384 * 383 / 2, "atomicAdd of int");
    check(met.largest == 383 && met.smallest == 0, "atomicMax and atomicMin");
    check(met.last >= 0 && met.last < 384, "atomicExch");
    check(met.winners == 1 && met.wide == 1ull << 40, "atomicCAS succeeds for one thread");
    check(met.real == 192 && met.precise == 96, "atomicAdd of float and double");
}

__global__ void arithmetic(float *y)
{
    y[0] = max(3, 2u) + min(1.5f, 2.0);
    y[1] = fmaxf(NAN, 2.0f) + max(NAN, 1.0f);
    y[2] = __umulhi(0x80000000u, 6u);
    y[3] = __int_as_float(__float_as_int(1.25f)) + __uint_as_float(0x3f800000u);
    y[4] = rsqrtf(0.25f) + __fmaf_rn(2, 3, 4);
    y[5] = __float2int_rn(2.5f) + __clz(1) + __popc(255) + __ffs(8);
    float4 four = *reinterpret_cast<const float4 *>(y);
    y[6] = four.x + four.y + four.z + four.w;
}

static void try_arithmetic()
{
    Array<float> met(8);
    LAUNCH(arithmetic, 1, 1, 0, 0, met);
    std::vector<float> all = met.read();
    all.resize(7);
    check_close(all, {4.5f, 3, 3, 2.25f, 12, 45, 12.75f}, 0, "arithmetic");
}

/* Hand-worked roundings to nearest even: 1 + 2^-8 lies halfway between 1 and 1 + 2^-7. */
__global__ void bfloat(float *y)
{
    const float half_place = 0.00390625f;
    y[0] = __nv_bfloat16(1 + half_place);
    y[1] = __nv_bfloat16(1 + 3 * half_place);
    y[2] = __nv_bfloat16(1 + half_place + 1e-6f);
    y[3] = __nv_bfloat16(1 + static_cast<double>(half_place) + 1e-12);
    y[4] = __nv_bfloat16(256.0f) + __nv_bfloat16(1.0f);
    y[5] = __bfloat1622float2(__floats2bfloat162_rn(2, 3)).y;
    y[6] = __bfloat16_as_ushort(__nv_bfloat16(-1));
    y[7] = isnan(static_cast<float>(__nv_bfloat16(NAN))) ? 1 : 0;
}

static void try_bfloat()
{
    Array<float> met(8);
    LAUNCH(bfloat, 1, 1, 0, 0, met);
    check_close(met.read(), {1, 1.015625f, 1.0078125f, 1.0078125f, 256, 3, 0xbf80, 1}, 0, "bf16");
}

int main()
{
    try_shuffles();
    try_votes();
    Array<int> met(16);
    LAUNCH(after_the_end, 1, 32, 0, 0, met);
    check(met.read()[7] == 6, "lanes that have ended are not waited for");
    try_shapes();
    try_unwritten();
    try_atomics();
    try_arithmetic();
    try_bfloat();
    return check_report();
}
