#include "ops/linear_int8.h"
#include "ops/cpu/int8_tile.h"
#include "ops/cpu/linear_row.h"
#include "ops/cpu/softmax_row.h"
#include "tensor/memory.h"

/* What a row is divided by; NaN where an element is infinite or NaN, and so 0 x is not 0. */
static real int8_scale(int64_t n, const real *x)
{
    vector most = vector_zero(), zeros = vector_zero();
    for (int64_t i = 0; i < n; i += LANES) {
        const vector v = n - i < LANES ? tail_load(x + i, n - i, n - i, 0) : vector_load(x + i);
        most = vector_larger(most, vector_larger(v, -v));
        zeros += 0 * v;
    }
    return vector_sum(zeros) == 0 ? vector_max(most) / 127 : (real)NAN;
}

/* 1 / scale, or 0 for a row that is 0, not finite, or so small that 1 / scale is not. */
static real int8_inverse(real scale)
{
    return scale > 0 && 1 / scale < (real)INFINITY ? 1 / scale : 0;
}

/* The integers of n elements, and 0 up to the next group; returns their sum. */
static int32_t int8_quantise(int64_t n, const real *restrict x, real inverse, int8_t *restrict q)
{
    int32_t sum = 0;
    if (inverse == 0) {
        memset(q, 0, (size_t)n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const real value = x[i] * inverse;
            const int32_t number = (int32_t)(value + (value < 0 ? (real)-0.5 : (real)0.5));
            q[i] = (int8_t)number;
            sum += number;
        }
    }
    for (int64_t i = n; i % INT8_GROUP != 0; i++)
        q[i] = 0;
    return sum;
}

static int64_t int8_groups(int64_t in)
{
    return (in + INT8_GROUP - 1) / INT8_GROUP;
}

/* All columns, with those that fill the last vector. */
static int64_t int8_columns(int64_t out)
{
    return (out + INT8_LANES - 1) / INT8_LANES * INT8_LANES;
}

/* The columns of the panel that begins at `column`. */
static int64_t int8_panel_columns(int64_t out, int64_t column)
{
    const int64_t left = int8_columns(out) - column;
    return left < INT8_COLUMNS ? left : INT8_COLUMNS;
}

/* Writes row o of a weight into its panel, as q + 128. */
static void int8_pack_row(int64_t out, int64_t in, int64_t o, const real *w, real scale,
                          uint8_t *packed)
{
    const int64_t first = o / INT8_COLUMNS * INT8_COLUMNS;
    const int64_t step = int8_panel_columns(out, first) * INT8_GROUP;
    uint8_t *to = packed + first * int8_groups(in) * INT8_GROUP + (o - first) * INT8_GROUP;
    int8_t q[BUFFER];
    for (int64_t i = 0; i < in; i += BUFFER) {
        const int64_t n = in - i < BUFFER ? in - i : BUFFER;
        int8_quantise(n, w + i, int8_inverse(scale), q);
        for (int64_t g = 0; g < n; g += INT8_GROUP, to += step) {
            uint32_t group;
            memcpy(&group, q + g, sizeof group);
            group ^= 0x80808080u; /* adds 128 to each */
            memcpy(to, &group, sizeof group);
        }
    }
}

/* Integers by panels, then the scales. */
static int64_t linear_int8_pack(int64_t out, int64_t in, const void *weight_, void *packed)
{
    const real *weight = weight_;
    const int64_t bytes = int8_columns(out) * int8_groups(in) * INT8_GROUP;
    if (packed) {
        real *scale = (real *)((uint8_t *)packed + bytes);
        memset(packed, 0, (size_t)bytes);
#pragma omp parallel for schedule(static) if (out * in > PARALLEL_WORK)
        for (int64_t o = 0; o < out; o++) {
            scale[o] = int8_scale(in, weight + o * in);
            int8_pack_row(out, in, o, weight + o * in, scale[o], packed);
        }
    }
    return bytes + out * (int64_t)sizeof(real);
}

/* The rows of x, whose integers are `step` bytes apart. */
struct int8_rows {
    int64_t step;
    real *scale;
    int32_t *sum;
    int8_t *q;
};

static void int8_read_row(const struct linear_shape *s, const real *x, int64_t r,
                          const struct int8_rows *rows)
{
    const real *row = x + r * s->in;
    rows->scale[r] = int8_scale(s->in, row);
    rows->sum[r] =
        int8_quantise(s->in, row, int8_inverse(rows->scale[r]), rows->q + r * rows->step);
}

static int8_tile_function *int8_tile(void)
{
#if defined(SOFTBACK_VNNI_TILES) && VECTOR_BYTES == 64
    if (__builtin_cpu_supports("avx512vnni"))
        return INT8(int8_tile_native);
#endif
    return INT8(int8_tile);
}

/* y = activation(z + bias) of n columns of a row. */
static void int8_finish(const struct linear_shape *s, int64_t n, const int32_t *sums, int32_t sum,
                        real x_scale, const real *scale, const real *bias, real *y)
{
    for (int64_t c = 0; c < n; c++)
        y[c] = (real)(sums[c] - 128 * sum) * (x_scale * scale[c]);
    if (bias || s->activation != SB_ACTIVATION_IDENTITY)
        activate_row(s->activation, n, bias, y, y);
}

/* The columns of y that one panel of the weight gives, from `column` on. */
static void int8_multiply_panel(const struct linear_shape *s, const struct int8_rows *rows,
                                int64_t column, const uint8_t *packed, const real *bias, real *y)
{
    const int64_t groups = int8_groups(s->in), columns = int8_panel_columns(s->out, column);
    const int64_t n = columns < s->out - column ? columns : s->out - column;
    const real *scale = (const real *)(packed + int8_columns(s->out) * groups * INT8_GROUP);
    int8_tile_function *multiply = int8_tile();
    int32_t sums[INT8_ROWS * INT8_COLUMNS];
    for (int64_t r = 0; r < s->rows; r += INT8_ROWS) {
        const int64_t some = s->rows - r < INT8_ROWS ? s->rows - r : INT8_ROWS;
        multiply(&(struct int8_tile){.groups = groups,
                                     .vectors = columns / INT8_LANES,
                                     .x = rows->q + r * rows->step,
                                     .row_step = rows->step,
                                     .weights = packed + column * groups * INT8_GROUP,
                                     .sums = sums},
                 some);
        for (int64_t i = 0; i < some; i++)
            int8_finish(s, n, sums + i * INT8_COLUMNS, rows->sum[r + i], rows->scale[r + i],
                        scale + column, bias ? bias + column : NULL, y + (r + i) * s->out + column);
    }
}

static void int8_multiply(const struct linear_shape *s, const real *x, const struct int8_rows *rows,
                          const uint8_t *packed, const real *bias, real *y)
{
#pragma omp for schedule(static)
    for (int64_t r = 0; r < s->rows; r++)
        int8_read_row(s, x, r, rows);
#pragma omp for schedule(static)
    for (int64_t column = 0; column < s->out; column += INT8_COLUMNS)
        int8_multiply_panel(s, rows, column, packed, bias, y);
}

static bool linear_int8_forward(const struct linear_shape *s, const void *x, const void *packed,
                                const void *bias, void *y)
{
    const int64_t step = int8_groups(s->in) * INT8_GROUP;
    const size_t a_row = sizeof(real) + sizeof(int32_t) + (size_t)step;
    const size_t bytes = (size_t)s->rows * a_row + 1;
    uint8_t *scratch = pool_take(memory_pool(), bytes);
    if (!scratch)
        return false;
    struct int8_rows rows = {.step = step, .scale = (real *)scratch};
    rows.sum = (int32_t *)(rows.scale + s->rows);
    rows.q = (int8_t *)(rows.sum + s->rows);
    const double work = (double)s->rows * (double)s->in * (double)s->out;
    if (work <= 32 * (double)PARALLEL_WORK) {
        int8_multiply(s, x, &rows, packed, bias, y);
    } else {
#pragma omp parallel
        int8_multiply(s, x, &rows, packed, bias, y);
    }
    pool_give(memory_pool(), scratch, bytes);
    return true;
}

KERNELS(linear_int8) = {linear_int8_pack, linear_int8_forward};
