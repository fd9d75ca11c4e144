/*
 * Tiled attention in float: a block holds some query rows and walks over the keys and values, a
 * tile at a time in shared memory, with a running maximum and sum (Dao et al. 2022,
 * "FlashAttention"). A row is shared by neighbouring lanes, each with every `Lanes`-th column.
 */
#include "check.cuh"

const int Rows = 16, Keys = 32, Lanes = 8;

/* Rows of a tile are 4 floats longer than needed, so that lanes use different banks; vector loads
   need rows of a multiple of 4. */
template <int Size> static __device__ void load_tile(const float *from, float *tile, int rows)
{
    const int stride = Size + 4;
    for (int i = threadIdx.x; i < Keys * Size / 4; i += blockDim.x) {
        int row = i / (Size / 4), column = i % (Size / 4) * 4;
        float4 four = make_float4(0, 0, 0, 0);
#ifdef PLANTED_TILE_PAST_END
        rows = Keys;
#endif
        if (row < rows)
            four = *reinterpret_cast<const float4 *>(from + row * Size + column);
        *reinterpret_cast<float4 *>(tile + row * stride + column) = four;
    }
}

/* The running statistics of a row: exp(largest) sum is the sum of all exp(score). */
template <int Columns> struct Running {
    float query[Columns], output[Columns], largest, sum;

    __device__ void add(float score, const float *value)
    {
        float now = fmaxf(largest, score);
        float shrink = __expf(largest - now), weight = __expf(score - now);
        sum = sum * shrink + weight;
        largest = now;
        for (int c = 0; c < Columns; c++)
            output[c] = fmaf(weight, value[c * Lanes], output[c] * shrink);
    }
};

template <int Columns>
static __device__ float score_of(const Running<Columns> &row, const float *key)
{
    float score = 0;
    for (int c = 0; c < Columns; c++)
        score = fmaf(row.query[c], key[c * Lanes], score);
    for (int distance = Lanes / 2; distance > 0; distance /= 2)
        score += __shfl_xor_sync(0xffffffffu, score, distance);
    return score;
}

template <int Size>
__global__ void __launch_bounds__(Rows *Lanes)
    attention(const float *q, const float *k, const float *v, float *y, int length, float scale)
{
    DYNAMIC_SHARED(float, keys);
    float *values = keys + Keys * (Size + 4);
    const int row = threadIdx.x / Lanes, lane = threadIdx.x % Lanes, t = blockIdx.x * Rows + row;
    const size_t head = static_cast<size_t>(blockIdx.y) * length * Size;
    const size_t own = head + static_cast<size_t>(t) * Size + lane;
    Running<Size / Lanes> running = {};
    running.largest = -INFINITY;
    for (int c = 0; c < Size / Lanes; c++)
        running.query[c] = t < length ? q[own + c * Lanes] * scale : 0;
    for (int start = 0; start < length; start += Keys) {
#ifndef PLANTED_NO_BARRIER_BEFORE_TILE
        __syncthreads(); /* all have finished with the last tile */
#endif
        load_tile<Size>(k + head + static_cast<size_t>(start) * Size, keys, length - start);
        load_tile<Size>(v + head + static_cast<size_t>(start) * Size, values, length - start);
#ifndef PLANTED_NO_BARRIER_AFTER_TILE
        __syncthreads();
#endif
        for (int j = 0; j < min(Keys, length - start); j++) {
            float score = score_of(running, keys + j * (Size + 4) + lane);
            if (start + j <= t) /* causal */
                running.add(score, values + j * (Size + 4) + lane);
        }
    }
    for (int c = 0; c < Size / Lanes && t < length; c++)
        y[own + c * Lanes] = running.output[c] / running.sum;
}

static void expected_row(const float *q, const float *k, const float *v, float *y, int t, int size)
{
    std::vector<double> sums(size);
    double total = 0;
    for (int s = 0; s <= t; s++) {
        double score = 0;
        for (int c = 0; c < size; c++)
            score += static_cast<double>(q[t * size + c]) * k[s * size + c];
        double weight = exp(score / sqrt(static_cast<double>(size)));
        total += weight;
        for (int c = 0; c < size; c++)
            sums[c] += weight * v[s * size + c];
    }
    for (int c = 0; c < size; c++)
        y[t * size + c] = static_cast<float>(sums[c] / total);
}

template <int Size> static void try_shape(int heads, int length)
{
    size_t head = static_cast<size_t>(length) * Size, count = heads * head;
    std::vector<float> q = some_numbers(count, 1), k = some_numbers(count, 2);
    std::vector<float> v = some_numbers(count, 3), y(count);
    for (int h = 0; h < heads; h++)
        for (int t = 0; t < length; t++)
            expected_row(&q[h * head], &k[h * head], &v[h * head], &y[h * head], t, Size);
    Array<float> on_q(q), on_k(k), on_v(v), on_y(count);
    const int shared_bytes = 2 * Keys * (Size + 4) * sizeof(float);
#ifndef PLANTED_SHARED_LIMIT
    cudaFuncSetAttribute(attention<Size>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         shared_bytes);
#endif
    LAUNCH(attention<Size>, dim3((length + Rows - 1) / Rows, heads), Rows * Lanes, shared_bytes, 0,
           on_q, on_k, on_v, on_y, length, 1 / sqrtf(Size));
    check_error(cudaGetLastError(), cudaSuccess, "the launch is within the device's limits");
    check_close(on_y.read(), y, 2e-5, "attention");
}

int main()
{
    try_shape<32>(2, 70);
    try_shape<32>(1, 33);
    try_shape<256>(1, 20);
    return check_report();
}
