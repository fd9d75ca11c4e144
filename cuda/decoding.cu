#include "cuda/device.cuh"
#include "cuda/pack.cuh"
#include "ops/decoding.h"

namespace
{

/* One block, so that every thread has read the position before it grows. */
template <class T> __global__ void note_symbols(decoding_note n)
{
    const T *log_p = (const T *)n.log_p;
    double *noted = n.noted + *n.position % n.steps * n.B * 2;
    __syncthreads();
    for (int64_t b = threadIdx.x; b < n.B; b += blockDim.x) {
        noted[2 * b] = n.best[b];
        noted[2 * b + 1] = (double)(real_of<T>)log_p[b];
        n.ids[b] = n.best[b];
        n.lengths[b]++;
    }
    if (threadIdx.x == 0)
        (*n.position)++;
}

template <class T> bool note(const struct decoding_note *n)
{
    if (n->B > 0)
        LAUNCH((note_symbols<T>), dim3(1), dim3(THREADS), 0, stream, *n);
    return launched("decode");
}

/* The candidates of a slot. Row `noted` becomes the host's copy of what was read. */
template <class T>
__device__ void collect(const decoding_beam &f, int64_t row, double *noted, decoding_candidate *c)
{
    const int32_t *best = f.best + row * f.reads;
    const T *log_p = (const T *)f.log_p + row * f.reads;
    const int64_t slots = f.width + 1;
    const int32_t slot = (int32_t)(row % slots);
    int64_t n = 0;
    for (int64_t i = 0; i < f.reads; i++) {
        const double p = (double)(real_of<T>)log_p[i], sum = f.sum[row] + p;
        noted[2 + 2 * i] = best[i];
        noted[3 + 2 * i] = p;
        if (n < slots && (best[i] == f.end || best[i] >= f.first))
            c[n++] = {sum == sum ? sum : -INFINITY, slot, best[i]};
    }
    while (n < slots)
        c[n++] = {-INFINITY, slot, -1};
}

/* Makes a candidate the hypothesis of this row. */
__device__ void put(const decoding_beam &f, int64_t row, const decoding_candidate &c, double *noted)
{
    noted[0] = f.from[row] = c.slot;
    noted[1] = f.ids[row] = c.id;
    f.sum[row] = c.sum;
}

/* A block for each text. */
template <class T> __global__ void extend_beams(decoding_beam f)
{
    SHARED(decoding_candidate, all, [DECODING_SLOTS * DECODING_SLOTS]);
    const int slots = (int)f.width + 1, n = slots * slots;
    const int64_t text = blockIdx.x, first = text * slots, pitch = 2 + 2 * f.reads;
    double *noted = f.noted + (*f.position % f.steps * f.texts * slots + first) * pitch;
    const int greedy = f.greedy[text];
    for (int s = threadIdx.x; s < slots; s += blockDim.x)
        collect<T>(f, first + s, noted + s * pitch, all + s * slots);
    __syncthreads();
    if (threadIdx.x == 0)
        f.greedy[text] = -1;
    for (int s = threadIdx.x; s < slots; s += blockDim.x)
        put(f, first + s, {-INFINITY, s, f.end}, noted + s * pitch);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const bool is_greedy = greedy >= 0 && i == greedy * slots;
        const int64_t place = decoding_place(&f, n, all, &all[i]);
        const int64_t s = place < f.width ? place : f.width;
        if (!decoding_goes_on(&f, &all[i]) || (s == f.width && !is_greedy))
            continue;
        put(f, first + s, all[i], noted + s * pitch);
        if (is_greedy)
            f.greedy[text] = (int32_t)s;
    }
}

__global__ void advance(int64_t rows, int32_t *lengths, int32_t *position)
{
    for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
        lengths[row]++;
    if (threadIdx.x == 0)
        (*position)++;
}

/* The position grows in a kernel of its own, after all blocks have read it. */
template <class T> bool extend(const struct decoding_beam *f)
{
    const int64_t slots = f->width + 1;
    if (f->texts == 0)
        return true;
    LAUNCH((extend_beams<T>), dim3((unsigned)f->texts), dim3(slots > 8 ? 256 : 64), 0, stream, *f);
    LAUNCH(advance, dim3(1), dim3(THREADS), 0, stream, f->texts * slots, f->lengths, f->position);
    return launched("decode");
}

enum { REARRANGE_THREADS = 64 };

/* A thread reads a pack of each slot before it writes one. The grid is for full caches. */
__global__ void rearrange_caches(decoding_caches c)
{
    typedef pack<unsigned char> bytes;
    DYNAMIC_SHARED(bytes, all);
    bytes *const was = all + threadIdx.x;
    const decoding_cache &cache = c.cache[blockIdx.y];
    const int64_t size = *c.position * cache.bytes, packs = pack_count(size, 16);
    GRID_STRIDE(n, c.texts * packs)
    {
        const int64_t text = n / packs, at = (n - text * packs) * 16, left = size - at;
        const int32_t *from = c.from + text * c.slots;
        unsigned char *data = (unsigned char *)cache.data + text * c.slots * cache.stride + at;
        for (int s = 0; s < c.slots; s++)
            was[s * REARRANGE_THREADS] = bytes::load(data + s * cache.stride, left);
        for (int s = 0; s < c.slots; s++)
            if (from[s] != s)
                was[from[s] * REARRANGE_THREADS].store(data + s * cache.stride, left);
    }
}

bool rearrange(const struct decoding_caches *c)
{
    int64_t most = 0;
    for (int64_t i = 0; i < c->count; i++)
        most = c->cache[i].stride > most ? c->cache[i].stride : most;
    const unsigned blocks = blocks_for(c->texts * pack_count(most, 16), REARRANGE_THREADS);
    if (c->count * c->texts * most > 0)
        LAUNCH(rearrange_caches, dim3(blocks, (unsigned)c->count), dim3(REARRANGE_THREADS),
               (size_t)c->slots * REARRANGE_THREADS * 16, stream, *c);
    return launched("decode");
}

} // namespace

KERNELS_AND_BF16(decoding, note<T>, extend<T>, rearrange);
