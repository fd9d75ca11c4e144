/*
 * The backward pass of layer normalisation. With h = (x - mean) / deviation and dh = dy gain:
 *   dx    = (dh - avg(dh) - h avg(dh h)) / deviation     a warp for each row
 *   dgain = sum over rows of dy h                         a block for 32 columns and some rows
 * The blocks' parts of dgain are added by atomics, or stored and added by the last block to finish,
 * which gives the same bits each time.
 */
#include "check.cuh"

const int Across = 32, Down = 8; /* threads of a block of column_sums */

static __device__ float over_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    return __shfl_sync(0xffffffffu, value, 0);
}

__global__ void input_gradient(const float *dy, const float *h, const float *gain,
                               const float *deviation, float *dx, int rows, int columns)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    dy += static_cast<size_t>(row) * columns;
    h += static_cast<size_t>(row) * columns;
    dx += static_cast<size_t>(row) * columns;
    float sum = 0, dot = 0;
    for (int c = lane; c < columns; c += 32) {
        sum += dy[c] * gain[c];
        dot += dy[c] * gain[c] * h[c];
    }
    float average = over_warp(sum) / columns, slope = over_warp(dot) / columns;
    for (int c = lane; c < columns; c += 32)
        dx[c] = (dy[c] * gain[c] - average - h[c] * slope) / deviation[row];
}

/* The sum of this block's rows, column by column, in the block's first row of threads. */
static __device__ float part_of_block(const float *dy, const float *h, int rows, int columns)
{
    SHARED(float, part, [Down][Across + 1]);
    int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * Across + x;
    float sum = 0;
    for (int row = blockIdx.y * Down + y; row < rows && c < columns; row += gridDim.y * Down) {
        size_t i = static_cast<size_t>(row) * columns + c;
        sum += dy[i] * h[i];
    }
    part[y][x] = sum;
    __syncthreads();
    for (int half = Down / 2; half > 0; half /= 2) {
        if (y < half)
            part[y][x] += part[y + half][x];
#ifndef PLANTED_NO_BARRIER_IN_TREE
        __syncthreads();
#endif
    }
    return part[0][x];
}

__global__ void column_sums(const float *dy, const float *h, float *dgain, int rows, int columns)
{
    float sum = part_of_block(dy, h, rows, columns);
    int c = blockIdx.x * Across + threadIdx.x;
    if (threadIdx.y > 0 || c >= columns)
        return;
#ifdef PLANTED_NO_ATOMIC
    dgain[c] += sum;
#else
    atomicAdd(&dgain[c], sum);
#endif
}

/* `parts` has a row for each of the grid's rows; `finished`, at first 0, counts blocks. */
__global__ void column_sums_in_order(const float *dy, const float *h, float *dgain, float *parts,
                                     unsigned *finished, int rows, int columns)
{
    SHARED(bool, is_last);
    float sum = part_of_block(dy, h, rows, columns);
    int c = blockIdx.x * Across + threadIdx.x;
    if (threadIdx.y == 0 && c < columns)
        parts[static_cast<size_t>(blockIdx.y) * columns + c] = sum;
#ifndef PLANTED_NO_FENCE
    __threadfence(); /* all must see the part before the count */
#endif
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        is_last = atomicAdd(finished, 1u) == gridDim.x * gridDim.y - 1;
    __syncthreads();
    if (!is_last)
        return;
#ifndef PLANTED_NO_FENCE
    __threadfence();
#endif
    for (int i = threadIdx.y * Across + threadIdx.x; i < columns; i += Across * Down) {
        float total = 0;
        for (unsigned y = 0; y < gridDim.y; y++)
            total += parts[static_cast<size_t>(y) * columns + i];
        dgain[i] = total;
    }
}

struct Example {
    int rows, columns;
    std::vector<float> dy, h, gain, deviation, dx, dgain;
};

static Example example_of(int rows, int columns)
{
    size_t count = static_cast<size_t>(rows) * columns;
    Example e = {rows,
                 columns,
                 some_numbers(count, 1),
                 some_numbers(count, 2),
                 some_numbers(columns, 3),
                 some_numbers(rows, 4),
                 std::vector<float>(count),
                 {}};
    std::vector<double> dgain(columns);
    for (int row = 0; row < rows; row++) {
        const float *dy = &e.dy[row * columns], *h = &e.h[row * columns];
        double sum = 0, dot = 0;
        e.deviation[row] += 1.5f;
        for (int c = 0; c < columns; c++) {
            sum += dy[c] * e.gain[c];
            dot += dy[c] * e.gain[c] * h[c];
            dgain[c] += dy[c] * h[c];
        }
        for (int c = 0; c < columns; c++)
            e.dx[row * columns + c] = static_cast<float>(
                (dy[c] * e.gain[c] - sum / columns - h[c] * dot / columns) / e.deviation[row]);
    }
    e.dgain.assign(dgain.begin(), dgain.end());
    return e;
}

static void try_shape(int rows, int columns)
{
    Example e = example_of(rows, columns);
    Array<float> dy(e.dy), h(e.h), gain(e.gain), deviation(e.deviation), dx(e.dx.size());
    LAUNCH(input_gradient, (rows + 3) / 4, 128, 0, 0, dy, h, gain, deviation, dx, rows, columns);
    check_close(dx.read(), e.dx, 1e-5, "dx");

    dim3 grid((columns + Across - 1) / Across, 4), block(Across, Down);
    Array<float> dgain(columns), ordered(columns), parts(4 * columns);
    Array<unsigned> finished(1);
#ifndef PLANTED_NO_MEMSET
    cudaMemsetAsync(dgain, 0, columns * sizeof(float));
#endif
    cudaMemsetAsync(finished, 0, sizeof(unsigned));
    LAUNCH(column_sums, grid, block, 0, 0, dy, h, dgain, rows, columns);
    LAUNCH(column_sums_in_order, grid, block, 0, 0, dy, h, ordered, parts, finished, rows, columns);
    check_close(dgain.read(), e.dgain, 1e-4, "dgain by atomics");
    check_close(ordered.read(), e.dgain, 1e-4, "dgain by the last block");
}

int main()
{
    try_shape(33, 70);
    try_shape(50, 96);
    return check_report();
}
