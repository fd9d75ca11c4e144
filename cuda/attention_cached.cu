/*
 * Attention of decoding: few queries, with keys and values from a cache.
 *
 * Keys are divided into chunks at fixed positions. A block computes the exponentials and the sum of
 * one query and one chunk. If there are several chunks, a second kernel adds them in order. A chunk
 * without kept keys adds zero, so the bits of a row depend on its kept keys and not on Lk.
 *
 * In a block, as many lanes as a row has packs read a key or a value together. These groups take
 * keys in turns, each several at a time, since a block must have many loads in flight.
 */
#include "cuda/attention.cuh"
#include "cuda/pack.cuh"

namespace
{

enum { WARPS = 8, CHUNK_THREADS = WARPS * WARP, AT_ONCE = 8 };
#ifdef SOFTBACK_EMULATOR
enum { CHUNK = 32 }; /* several at the sizes of tests */
#else
enum { CHUNK = 512 };
#endif

template <class T> struct cached_call {
    attention a;
    attention_forward f;
    int64_t chunks;
    int k_lanes, v_lanes;     /* that read a row together */
    real_of<T> *exponentials; /* (B, H, Lq, Lk), with several chunks; -1 for blocked keys */
    real_of<T>
        *parts; /* (B, H, Lq, chunks, 2 + Dv), with several: maximum, sum, y before division */
};

/* One chunk of the keys of one query. */
template <class T> struct chunk {
    typedef real_of<T> real;
    const cached_call<T> &c;
    const int64_t r, index;
    const masked_row row;
    const int64_t base;        /* the first key */
    const int count, from, to; /* the keys, and the range that the mask keeps, from the base on */

    explicit __device__ chunk(const cached_call<T> &c)
        : c(c), r(blockIdx.x / c.chunks), index(blockIdx.x % c.chunks),
          row(c.a.mask, {c.a.B, c.a.H, c.a.Lq, c.a.Lk}, r), base(index * CHUNK),
          count(within(c.a.Lk)), from(within(row.keys.from)), to(within(row.keys.to))
    {
    }
    __device__ int within(int64_t j) const
    {
        return (int)smaller(j > base ? j - base : 0, CHUNK);
    }
    __device__ rows<const T> cached(const void *data, attention_strides s) const
    {
        return rows_from(rows_of<T>(data, s, row.b, row.h / (c.a.H / c.a.G)), base);
    }
    /* The factor of s_j - maximum: scores with a bias are already scaled. */
    __device__ real factor() const
    {
        return c.f.bias ? 1 : (real)c.a.scale;
    }
    __device__ real *part(int64_t n) const
    {
        return c.parts + (r * c.chunks + n) * (2 + c.a.Dv);
    }
    /* Of a row with this maximum and this sum; NaN is the maximum of a fully masked row. */
    __device__ void store_y(int64_t d, real max, real sum, real total) const
    {
        const rows<T> y = rows_in<T>(c.f.y, c.a.y, row.b, row.h);
        y.at[row.i * y.step + d] = (T)(max == max ? total / sum : 0);
    }
    __device__ void store_weight(int j, real exponential, real sum) const
    {
        T *const weights = (T *)c.f.weights + r * c.a.Lk + base;
        weights[j] = (T)(exponential < 0 ? 0 : exponential / sum);
    }
};

/* The keys of this thread in a chunk: of each pass, AT_ONCE. */
struct key_turns {
    int lanes, at, first, step;

    explicit __device__ key_turns(int lanes)
        : lanes(lanes), at(threadIdx.x % lanes), first(threadIdx.x / lanes),
          step(CHUNK_THREADS / lanes)
    {
    }
    template <class Visit> __device__ void passes(int from, int to, Visit visit) const
    {
        const int pass = AT_ONCE * step;
        for (int j = from / pass * pass; from < to && j < to; j += pass)
            visit(j + first);
    }
};

template <class T, int N> __device__ pack<T, N> load_pack(const T *x)
{
    return *reinterpret_cast<const pack<T, N> *>(x);
}

/* s_j = q . k_j for the keys that the mask may keep. */
template <class T, int N> __device__ void score_keys(const chunk<T> &x, real_of<T> *s)
{
    typedef real_of<T> real;
    const attention &a = x.c.a;
    const rows<const T> q = rows_of<T>(x.c.f.q, a.q, x.row.b, x.row.h);
    const rows<const T> k = x.cached(x.c.f.k, a.k);
    const key_turns turns(x.c.k_lanes);
    turns.passes(x.from, x.to, [&](int first) {
        real sum[AT_ONCE] = {};
        for (int64_t d = turns.at * N; d < a.D; d += turns.lanes * N) {
            pack<T, N> key[AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) {
                const int64_t j = smaller(first + n * turns.step, x.to - 1);
                key[n] = load_pack<T, N>(k.at + j * k.step + d);
            }
            const pack<T, N> query = load_pack<T, N>(q.at + x.row.i * q.step + d);
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++)
                for (int e = 0; e < N; e++)
                    sum[n] += (real)query.of[e] * (real)key[n].of[e];
        }
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            for (int distance = turns.lanes / 2; distance > 0; distance /= 2)
                sum[n] += __shfl_xor_sync(0xffffffffu, sum[n], distance);
            if (turns.at == 0 && first + n * turns.step < x.to)
                s[first + n * turns.step] = sum[n];
        }
    });
}

/* A reduction over the block in the order of warps: those without keys make no difference. */
template <class real, class Combine> __device__ real block_reduce(real value, Combine combine)
{
    SHARED(real, of_warp, [WARPS]);
    value = warp_reduce(value, combine);
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    value = of_warp[0];
    for (unsigned warp = 1; warp < blockDim.x / WARP; warp++)
        value = combine(value, of_warp[warp]);
    __syncthreads(); /* before `of_warp` is written again */
    return value;
}

/* The score of kept key j, from q . k_j. */
template <class T> __device__ real_of<T> finish_score(const chunk<T> &x, int j, real_of<T> s)
{
    typedef real_of<T> real;
    const attention &a = x.c.a;
    const int64_t *step = a.bias;
    if (a.cosine)
        s /= key_length(x.cached(x.c.f.k, a.k), j, a.D);
    if (!x.c.f.bias)
        return s;
    const T *const bias = (const T *)x.c.f.bias + x.row.b * step[0] + x.row.h * step[1];
    return (real)a.scale * s + (real)bias[x.row.i * step[2] + (x.base + j) * step[3]];
}

/* Scores become exponentials, or -1 for blocked keys; returns the largest score, NaN without kept
   keys, and the sum. */
template <class T>
__device__ void exponentiate(const chunk<T> &x, real_of<T> *s, real_of<T> *max, real_of<T> *sum)
{
    typedef real_of<T> real;
    enum { OWN = (CHUNK + CHUNK_THREADS - 1) / CHUNK_THREADS };
    real own[OWN];
    bool kept[OWN];
    *max = NAN;
    *sum = 0;
#pragma unroll
    for (int n = 0; n < OWN; n++) {
        const int j = threadIdx.x + n * CHUNK_THREADS;
        kept[n] = j < x.count && x.row.keeps(x.base + j);
        own[n] = kept[n] ? finish_score(x, j, s[j]) : 0;
        if (kept[n])
            *max = real_max(*max, real_max(-(real)INFINITY, own[n]));
    }
    *max = block_reduce(*max, greater());
    const real shift = *max == -(real)INFINITY ? 0 : *max;
#pragma unroll
    for (int n = 0; n < OWN; n++) {
        const int j = threadIdx.x + n * CHUNK_THREADS;
        const real exponential = real_exp(x.factor() * (own[n] - shift));
        *sum += kept[n] ? exponential : 0;
        if (j < x.count)
            s[j] = kept[n] ? exponential : -1;
    }
    *sum = block_reduce(*sum, add());
}

/* sum_j e_j v_j of this thread's keys, for the columns d .. d + N - 1. Blocked keys are left out,
   since 0 times a non-finite number is NaN. */
template <class T, int N>
__device__ void add_values(const chunk<T> &x, const key_turns &turns, const real_of<T> *e,
                           int64_t d, real_of<T> (&sum)[N])
{
    typedef real_of<T> real;
    const rows<const T> v = x.cached(x.c.f.v, x.c.a.v);
    turns.passes(x.from, x.to, [&](int first) {
        pack<T, N> value[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            const int64_t j = smaller(first + n * turns.step, x.to - 1);
            value[n] = load_pack<T, N>(v.at + j * v.step + d);
        }
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            const int j = first + n * turns.step;
            const real weight = j < x.to ? e[j] : -1;
            if (!(weight < 0))
                for (int i = 0; i < N; i++)
                    sum[i] += weight * (real)value[n].of[i];
        }
    });
}

/* Calls store(d, sum_j e_j v_jd) for every column d. */
template <class T, int N, class Store>
__device__ void sum_values(const chunk<T> &x, const real_of<T> *e, Store store)
{
    typedef real_of<T> real;
    SHARED(real, of_warp, [WARPS][WARP * N]);
    const key_turns turns(x.c.v_lanes);
    const int width = turns.lanes * N, lane = threadIdx.x % WARP;
    for (int64_t column = 0; column < x.c.a.Dv; column += width) {
        real sum[N] = {};
        if (column + turns.at * N < x.c.a.Dv)
            add_values(x, turns, e, column + turns.at * N, sum);
        for (int i = 0; i < N; i++) {
            for (int distance = turns.lanes; distance < WARP; distance *= 2)
                sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], distance);
            if (lane < turns.lanes)
                of_warp[threadIdx.x / WARP][lane * N + i] = sum[i];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < width && column + i < x.c.a.Dv; i += blockDim.x) {
            real total = 0;
            for (unsigned warp = 0; warp < blockDim.x / WARP; warp++)
                total += of_warp[warp][i];
            store(column + i, total);
        }
        __syncthreads(); /* before `of_warp` is written again */
    }
}

/* Two blocks a multiprocessor: with registers for more, the compiler spills some. */
template <class T, int N>
__global__ void __launch_bounds__(CHUNK_THREADS, 2) attend_to_chunks(cached_call<T> c)
{
    typedef real_of<T> real;
    SHARED(real, s, [CHUNK]);
    const chunk<T> x(c);
    real max, sum;
    score_keys<T, N>(x, s);
    __syncthreads();
    exponentiate(x, s, &max, &sum);
    real *const part = c.parts ? x.part(x.index) : nullptr;
    if (part && threadIdx.x == 0) {
        part[0] = max;
        part[1] = sum;
    }
    sum_values<T, N>(x, s, [&](int64_t d, real total) {
        if (part)
            part[2 + d] = total;
        else
            x.store_y(d, max, sum, total);
    });
    for (int j = threadIdx.x; j < x.count; j += blockDim.x)
        if (part)
            c.exponentials[x.r * c.a.Lk + x.base + j] = s[j];
        else
            x.store_weight(j, s[j], sum);
}

/* What a part with its own maximum is multiplied by. */
template <class real> __device__ real part_factor(real own, real max, real factor)
{
    return own != own ? 0 : own == max ? 1 : real_exp(factor * (own - max));
}

/* The weights of a chunk from the parts of all; the first block of a row adds y too. */
template <class T> __global__ void __launch_bounds__(CHUNK_THREADS) join_chunks(cached_call<T> c)
{
    typedef real_of<T> real;
    const chunk<T> x(c);
    real max = NAN, sum = 0;
    for (int64_t n = 0; n < c.chunks; n++)
        max = real_max(max, x.part(n)[0]);
    for (int64_t n = 0; n < c.chunks; n++)
        sum += part_factor(x.part(n)[0], max, x.factor()) * x.part(n)[1];
    const real factor = part_factor(x.part(x.index)[0], max, x.factor());
    const real *const e = c.exponentials + x.r * c.a.Lk + x.base;
    for (int j = threadIdx.x; j < x.count; j += blockDim.x)
        x.store_weight(j, e[j] < 0 ? -1 : e[j] * factor, sum);
    for (int64_t d = threadIdx.x; x.index == 0 && d < c.a.Dv; d += blockDim.x) {
        real total = 0;
        for (int64_t n = 0; n < c.chunks; n++)
            total += part_factor(x.part(n)[0], max, x.factor()) * x.part(n)[2 + d];
        x.store_y(d, max, sum, total);
    }
}

int lanes_for(int64_t packs)
{
    int lanes = 1;
    while (lanes < packs && lanes < WARP)
        lanes *= 2;
    return lanes;
}

/* As many warps as have keys. */
template <class T, int N> bool attend(cached_call<T> c)
{
    c.k_lanes = lanes_for(c.a.D / N);
    c.v_lanes = lanes_for(c.a.Dv / N);
    const int64_t blocks = c.a.B * c.a.H * c.a.Lq * c.chunks;
    const int lanes = c.k_lanes > c.v_lanes ? c.k_lanes : c.v_lanes;
    const int64_t busy = pack_count(c.a.Lk * lanes, WARP);
    const unsigned warps = (unsigned)(busy < 1 ? 1 : busy < WARPS ? busy : (int64_t)WARPS);
    if (blocks > 0)
        LAUNCH((attend_to_chunks<T, N>), dim3((unsigned)blocks), dim3(warps * WARP), 0, stream, c);
    if (blocks > 0 && c.chunks > 1)
        LAUNCH((join_chunks<T>), dim3((unsigned)blocks), dim3(THREADS), 0, stream, c);
    return launched("attention");
}

template <class T> bool in_packs(const void *x, attention_strides s, int64_t length)
{
    return (uintptr_t)x % alignof(pack<T>) == 0 &&
           (s.batch | s.row | s.head | length) % PACK<T> == 0;
}

} // namespace

template <class T> bool attention_cached_forward(const attention *a, const attention_forward *f)
{
    typedef real_of<T> real;
    const int64_t rows = a->B * a->H * a->Lq, chunks = a->Lk > CHUNK ? pack_count(a->Lk, CHUNK) : 1;
    const int64_t parts = chunks > 1 ? rows * chunks * (2 + a->Dv) : 0;
    const bool apart = chunks > 1 && sizeof(T) < sizeof(real);
    const scratch memory("attention", (size_t)(parts + (apart ? rows * a->Lk : 0)) * sizeof(real));
    real *const room = memory.as<real>();
    const cached_call<T> call = {*a,
                                 *f,
                                 chunks,
                                 0,
                                 0,
                                 apart ? room + parts : (real *)f->weights,
                                 chunks > 1 ? room : nullptr};
    if (!memory)
        return false;
    return in_packs<T>(f->q, a->q, a->D) && in_packs<T>(f->k, a->k, a->D) &&
                   in_packs<T>(f->v, a->v, a->Dv)
               ? attend<T, PACK<T>>(call)
               : attend<T, 1>(call);
}

template bool attention_cached_forward<float>(const attention *, const attention_forward *);
template bool attention_cached_forward<double>(const attention *, const attention_forward *);
template bool attention_cached_forward<bf16>(const attention *, const attention_forward *);
