/* Positional encodings: sinusoidal, rotary, and attention biases by distance. */
#include "ops/positions.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/dual.h"
#include "tensor/mathematics.h"

KERNEL_ROWS(positions);

/* A new constant on the CPU, to be filled with set(). */
static sb_tensor *positions_constant(const char *who, sb_dtype dtype, int rank, const int64_t *dim)
{
    if (!tape_need(who))
        return NULL;
    if (dtype != SB_F32 && dtype != SB_F64 && dtype != SB_DUAL)
        return sb_fail("%s: dtype is %s; it must be f32 or f64", who, sb_dtype_name(dtype));
    return tensor_new(who, sb_device_cpu(), dtype, rank, dim);
}

/* Moves the filled constant to the device in use and gives it to the open tape. */
static sb_tensor *positions_finished(sb_tensor *t)
{
    t = tensor_moved(t, sb_device_in_use());
    return t ? sb_tape_own(t) : NULL;
}

static void positions_set(sb_tensor *t, int64_t index, double value)
{
    if (t->dtype == SB_F64)
        ((double *)t->data)[index] = value;
    else if (t->dtype == SB_DUAL)
        ((sb_dual *)t->data)[index] = value;
    else
        ((float *)t->data)[index] = (float)value;
}

/* Whether the positions are numbers of int64_t. */
static bool positions_countable(const char *who, int64_t start, int64_t length)
{
    return start <= INT64_MAX - length ||
           sb_fail("%s: start is %lld: with %lld positions it passes the last one, 2^63 - 1", who,
                   (long long)start, (long long)length);
}

sb_tensor *sb_sinusoidal(sb_dtype dtype, int64_t start, int64_t length, int64_t C)
{
    if (C < 2 || C % 2 != 0)
        return sb_fail("sinusoidal: C is %lld; it must be even and at least 2", (long long)C);
    if (start < 0 || length < 0)
        return sb_fail("sinusoidal: start is %lld, length is %lld; neither may be negative",
                       (long long)start, (long long)length);
    if (!positions_countable("sinusoidal", start, length))
        return NULL;
    sb_tensor *y = positions_constant("sinusoidal", dtype, 2, (int64_t[]){length, C});
    for (int64_t i = 0; y && i < C / 2; i++) {
        double wavelength = math_pow(10000, 2 * (double)i / (double)C);
        for (int64_t t = 0; t < length; t++) {
            double angle = (double)(start + t) / wavelength;
            positions_set(y, t * C + 2 * i, math_sin(angle));
            positions_set(y, t * C + 2 * i + 1, math_cos(angle));
        }
    }
    return positions_finished(y);
}

sb_tensor *sb_alibi(sb_dtype dtype, int64_t H, int64_t Lq, int64_t Lk)
{
    if (H < 1 || Lq < 0 || Lk < 0)
        return sb_fail("alibi: H is %lld, Lq is %lld, Lk is %lld; H must be at least 1, no length "
                       "negative",
                       (long long)H, (long long)Lq, (long long)Lk);
    sb_tensor *y = positions_constant("alibi", dtype, 4, (int64_t[]){1, H, Lq, Lk});
    for (int64_t h = 0; y && h < H; h++) {
        double slope = math_pow(2, -8 * (double)(h + 1) / (double)H);
        for (int64_t i = 0; i < Lq; i++)
            for (int64_t j = 0; j < Lk; j++) {
                int64_t distance = j - (i + Lk - Lq);
                positions_set(y, (h * Lq + i) * Lk + j,
                              -slope * (double)(distance < 0 ? -distance : distance));
            }
    }
    return positions_finished(y);
}

static bool positions_turn(const sb_node *node, bool backwards, bool add, const sb_tensor *x,
                           sb_tensor *y)
{
    const struct positions_kernels *k = kernel_row(&positions_rows, x);
    return k && k->turn(x->dim[0], x->dim[1], x->dim[2], x->dim[3], sb_node_saved(node, 0)->data,
                        backwards, add, x->data, y->data);
}

/* y_t is x_t rotated by an angle, so dx_t is dy_t rotated by the opposite angle */
static bool positions_rotary_backward(sb_node *node)
{
    return positions_turn(node, true, !sb_node_fresh(node, 0), sb_node_dy(node, 0),
                          sb_node_dx(node, 0));
}

static const sb_operation rotary = {"rotary", "x", positions_rotary_backward, true, true};

static sb_rotary_options positions_rotary_options(const sb_rotary_options *options)
{
    sb_rotary_options o = options ? *options : (sb_rotary_options){0};
    o.base = sb_option(o.base, 10000);
    o.scaling = sb_option(o.scaling, 1);
    o.low_factor = sb_option(o.low_factor, 1);
    o.high_factor = sb_option(o.high_factor, 4);
    return o;
}

/* The angle of position 1 for frequency i of half: base^(-i/half), divided by the scaling. By
   frequency, the part 1 - kept of it is divided. */
static double positions_frequency(const sb_rotary_options *o, int64_t i, int64_t half)
{
    const double frequency = math_pow(o->base, -(double)i / (double)half);
    if (o->original == 0)
        return frequency / o->scaling;
    const double turns = (double)o->original * frequency / 6.283185307179586;
    const double kept = (turns - o->low_factor) / (o->high_factor - o->low_factor);
    return kept >= 1   ? frequency
           : kept <= 0 ? frequency / o->scaling
                       : kept * frequency + (1 - kept) * frequency / o->scaling;
}

/* cos and sin of t times each frequency, (2, L, D / 2), in host memory. */
static sb_tensor *positions_angles(sb_dtype dtype, int64_t start, int64_t L, int64_t D,
                                   const sb_rotary_options *options)
{
    const sb_rotary_options o = positions_rotary_options(options);
    int64_t half = D / 2;
    const int64_t dim[3] = {2, L, half};
    sb_tensor *host = tensor_new("rotary", sb_device_cpu(), dtype, 3, dim);
    for (int64_t i = 0; host && i < half; i++) {
        const double frequency = positions_frequency(&o, i, half);
        for (int64_t t = 0; t < L; t++) {
            positions_set(host, t * half + i, math_cos((double)(start + t) * frequency));
            positions_set(host, (L + t) * half + i, math_sin((double)(start + t) * frequency));
        }
    }
    return host;
}

sb_tensor *rotary_angles(sb_dtype dtype, int64_t start, int64_t L, int64_t D,
                         const sb_rotary_options *options)
{
    return positions_finished(positions_angles(dtype, start, L, D, options));
}

/* Rotates the node's input by a table of angles, whose reference is the node's from now on. */
static sb_tensor *positions_turned(sb_node *node, sb_tensor *table)
{
    sb_tensor *x = node->in[0];
    if (!table || !sb_node_save(node, table))
        return NULL;
    sb_tensor *y = sb_node_output(node, x->dtype, x->rank, x->dim);
    return call_end(node, y && positions_turn(node, false, false, x, y));
}

sb_tensor *rotary_by_angles(sb_tensor *x, sb_tensor *angles)
{
    sb_node *node = call_begin(&rotary, &positions_rows, 1, &x, 1, NULL, 0);
    return node && angles ? positions_turned(node, sb_tensor_retain(angles)) : NULL;
}

sb_tensor *sb_rotary(sb_tensor *x, int64_t start, double base)
{
    return sb_rotary_scaled(x, start, &(sb_rotary_options){.base = base});
}

static bool positions_rotary_check(const sb_rotary_options *options)
{
    const sb_rotary_options o = positions_rotary_options(options);
    if (!(o.base > 0 && o.base < INFINITY))
        return sb_fail("rotary: base is %g; it must be positive, or 0 for 10000", o.base);
    if (!(o.scaling > 0 && o.scaling < INFINITY))
        return sb_fail("rotary: scaling is %g; it must be positive, or 0 for 1", o.scaling);
    if (o.original < 0)
        return sb_fail("rotary: original is %lld; it must be a number of positions, or 0 for "
                       "scaling of all frequencies",
                       (long long)o.original);
    return (o.low_factor > 0 && o.low_factor < o.high_factor && o.high_factor < INFINITY) ||
           sb_fail("rotary: low_factor is %g, high_factor is %g; both must be positive, the first "
                   "below the second",
                   o.low_factor, o.high_factor);
}

sb_tensor *sb_rotary_scaled(sb_tensor *x, int64_t start, const sb_rotary_options *options)
{
    sb_node *node = call_begin(&rotary, &positions_rows, 1, &x, 1, NULL, 0);
    if (!node || !check_real("rotary", "x", x))
        return NULL;
    if (x->rank != 4 || x->dim[3] % 2 != 0)
        return sb_fail("rotary: x is %s; it must be (batch, length, heads, size) with an even size",
                       tensor_shape(x).text);
    if (start < 0)
        return sb_fail("rotary: start is %lld; it must not be negative", (long long)start);
    if (!positions_countable("rotary", start, x->dim[1]) || !positions_rotary_check(options))
        return NULL;
    x = node->in[0];
    sb_tensor *table =
        positions_angles(dtype_of_sums(x->dtype), start, x->dim[1], x->dim[3], options);
    return positions_turned(node, tensor_moved(table, x->device));
}

static bool positions_relative_backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *dtable = sb_node_dx(node, 0);
    const struct positions_kernels *k = kernel_row(&positions_rows, dy);
    return k && k->relative_backward(dtable->dim[0], dtable->dim[1] / 2, dy->dim[2], dy->dim[3],
                                     dy->data, dtable->data);
}

static const sb_operation relative = {"relative_bias", "table", positions_relative_backward, false,
                                      true};

sb_tensor *sb_relative_bias(sb_tensor *table, int64_t Lq, int64_t Lk)
{
    sb_node *node = call_begin(&relative, &positions_rows, 1, &table, 1, NULL, 0);
    if (!node || !check_real("relative_bias", "table", table))
        return NULL;
    if (table->rank != 2 || table->dim[1] % 2 == 0)
        return sb_fail("relative_bias: table is %s; it must be (heads, 2 R + 1)",
                       tensor_shape(table).text);
    if (Lq < 0 || Lk < 0)
        return sb_fail("relative_bias: Lq is %lld, Lk is %lld; neither may be negative",
                       (long long)Lq, (long long)Lk);
    table = node->in[0];
    int64_t H = table->dim[0], R = table->dim[1] / 2;
    const struct positions_kernels *k = kernel_row(&positions_rows, table);
    sb_tensor *y = k ? sb_node_output(node, table->dtype, 4, (int64_t[]){1, H, Lq, Lk}) : NULL;
    return call_end(node, y && k->relative_forward(H, R, Lq, Lk, table->data, y->data));
}

EXAMPLE(example_rotary, sb_rotary(x[0], 3, 0))
EXAMPLE(example_slow_rotary, sb_rotary(x[0], 0, 100))
EXAMPLE(example_scaled_rotary,
        sb_rotary_scaled(x[0], 2, &(sb_rotary_options){.base = 100, .scaling = 4, .original = 16}))
EXAMPLE(example_square, sb_relative_bias(x[0], 7, 7))
EXAMPLE(example_last_query, sb_relative_bias(x[0], 2, 65))
EXAMPLE(example_more_queries, sb_relative_bias(x[0], 9, 4))

OPERATION(positions, {"rotary", example_rotary, {"1x1x1x2", "2x7x1x4", "1x64x1x2", "2x3x2x6"}},
          {"rotary", example_slow_rotary, {"1x2x3x8", "=1x2x3x8"}},
          {"rotary", example_scaled_rotary, {"1x5x1x4"}},
          {"relative_bias", example_square, {"1x1", "2x3", "3x7", "1x65"}},
          {"relative_bias", example_last_query, {"2x1", "1x9"}},
          {"relative_bias", example_more_queries, {"2x5", "=2x5"}});
