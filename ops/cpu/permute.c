#include "ops/cpu/broadcast.h"
#include "ops/shape.h"

#define INLINE static inline __attribute__((always_inline))

/*
 * If x and y have the same last axis, contiguous runs are copied. Otherwise x's last axis is an
 * inner axis of y, and tiles of TILE x TILE elements of the two axes are transposed: each row of a
 * tile is read and written as one run.
 */
enum { TILE = 16 };

/* One element, or (add) one real number to add. */
INLINE void move(size_t width, bool add, const char *restrict from, char *restrict to)
{
    if (add) {
        real a, b;
        memcpy(&a, from, sizeof a);
        memcpy(&b, to, sizeof b);
        b += a;
        memcpy(to, &b, sizeof b);
    } else {
        memcpy(to, from, width);
    }
}

/* y[i][j] = x[j][i] for i < rows, j < columns, both at most TILE. */
INLINE void turn_tile(size_t width, bool add, int64_t rows, int64_t columns, const char *restrict x,
                      size_t x_stride, char *restrict y, size_t y_stride)
{
    char tile[TILE * TILE * sizeof(double)];
    for (int64_t j = 0; j < columns; j++)
        memcpy(tile + (size_t)j * TILE * width, x + (size_t)j * x_stride * width,
               (size_t)rows * width);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            move(width, add, tile + (size_t)(j * TILE + i) * width,
                 y + ((size_t)i * y_stride + (size_t)j) * width);
}

/* Rows of y from one block of x's last axis: `rows` times all of y's last axis. */
INLINE void turn_block(size_t width, bool add, int64_t rows, int64_t columns, const char *x,
                       size_t x_stride, char *y, size_t y_stride)
{
    for (int64_t j = 0; j < columns; j += TILE) {
        const int64_t length = smaller(columns - j, TILE);
        const char *from = x + (size_t)j * x_stride * width;
        char *to = y + (size_t)j * width;
        if (rows == TILE && length == TILE)
            turn_tile(width, add, TILE, TILE, from, x_stride, to, y_stride);
        else
            turn_tile(width, add, rows, length, from, x_stride, to, y_stride);
    }
}

/* Transposes a block, with one copy of the loop for each element width. */
static void permute_turn(size_t width, bool add, int64_t rows, int64_t columns, const char *x,
                         size_t x_stride, char *y, size_t y_stride)
{
    if (add)
        turn_block(sizeof(real), true, rows, columns, x, x_stride, y, y_stride);
    else if (width == 1)
        turn_block(1, false, rows, columns, x, x_stride, y, y_stride);
    else if (width == 4)
        turn_block(4, false, rows, columns, x, x_stride, y, y_stride);
    else
        turn_block(8, false, rows, columns, x, x_stride, y, y_stride);
}

/* `count` runs of n elements. */
static void permute_move_runs(size_t width, bool add, int64_t count, int64_t n, const char *x,
                              int64_t x_stride, char *y, int64_t y_stride)
{
    for (int64_t r = 0; r < count; r++) {
        const char *from = x + (size_t)(r * x_stride) * width;
        char *to = y + (size_t)(r * y_stride) * width;
        if (!add) {
            memcpy(to, from, (size_t)n * width);
            continue;
        }
        const real *restrict term = (const void *)from;
        real *restrict sum = (void *)to;
        for (int64_t i = 0; i < n; i++)
            sum[i] += term[i];
    }
}

static void permute_runs(size_t width, bool add, const struct broadcast *plan, const char *x,
                         char *y)
{
    const int last = plan->rank - 1, next = last - 1;
    const int64_t n = plan->dim[last], count = next < 0 ? 1 : plan->dim[next];
    const int64_t x_stride = next < 0 ? 0 : plan->stride[1][next];
    const struct walk walk = {.plan = plan};
    struct axes outer = {.size = 1};
    for (int axis = 0; axis < next; axis++)
        axes_add(&outer, &walk, axis);
#pragma omp parallel for schedule(static) if (outer.size * count * n > PARALLEL_WORK)
    for (int64_t unit = 0; unit < outer.size; unit++) {
        int64_t at[BROADCAST_OPERANDS] = {0};
        axes_locate(&outer, &walk, unit, at);
        permute_move_runs(width, add, count, n, x + (size_t)at[1] * width, x_stride,
                          y + (size_t)at[0] * width, n);
    }
}

static void permute_tiles(size_t width, bool add, const struct broadcast *plan, const char *x,
                          char *y)
{
    const int last = plan->rank - 1;
    const struct walk walk = {.plan = plan};
    struct axes outer = {.size = 1};
    int turned = 0; /* the axis of y that is x's last */
    for (int axis = 0; axis < last; axis++) {
        if (plan->stride[1][axis] == 1)
            turned = axis;
        else
            axes_add(&outer, &walk, axis);
    }
    const int64_t rows = plan->dim[turned], columns = plan->dim[last];
    const int64_t blocks = (rows + TILE - 1) / TILE;
    const size_t x_stride = (size_t)plan->stride[1][last];
    const size_t y_stride = (size_t)plan->stride[0][turned];
#pragma omp parallel for schedule(static) if (outer.size * rows * columns > PARALLEL_WORK)
    for (int64_t unit = 0; unit < outer.size * blocks; unit++) {
        const int64_t row = unit % blocks * TILE;
        int64_t at[BROADCAST_OPERANDS] = {row * plan->stride[0][turned], row};
        axes_locate(&outer, &walk, unit / blocks, at);
        permute_turn(width, add, smaller(rows - row, TILE), columns, x + (size_t)at[1] * width,
                     x_stride, y + (size_t)at[0] * width, y_stride);
    }
}

static bool permute_copy(size_t width, const struct broadcast *plan, const void *x, void *y)
{
    if (plan->stride[1][plan->rank - 1] == 1)
        permute_runs(width, false, plan, x, y);
    else
        permute_tiles(width, false, plan, x, y);
    return true;
}

static bool permute_add(const struct broadcast *plan, const void *x, void *y)
{
    if (plan->stride[1][plan->rank - 1] == 1)
        permute_runs(sizeof(real), true, plan, x, y);
    else
        permute_tiles(sizeof(real), true, plan, x, y);
    return true;
}

KERNELS(permute) = {permute_copy, permute_add};
