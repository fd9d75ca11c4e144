#include "ops/softmax.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include <math.h>

KERNEL_ROWS(softmax);

static bool softmax_backward(sb_node *node)
{
    const sb_tensor *y = node->out[0], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct softmax_kernels *k = kernel_row(&softmax_rows, y);
    return k && k->backward(row_count(y), y->dim[y->rank - 1], y->data, dy->data,
                            sb_node_fresh(node, 0), dx->data);
}

static const sb_operation softmax = {"softmax", "x", softmax_backward, true, true};

sb_tensor *sb_softmax(sb_tensor *x)
{
    sb_node *node = call_begin(&softmax, &softmax_rows, 1, &x, 1, NULL, 0);
    if (!node || !check_rows("softmax", x))
        return NULL;
    x = node->in[0];
    const struct softmax_kernels *k = kernel_row(&softmax_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    return call_end(node, y && k->forward(row_count(x), x->dim[x->rank - 1], x->data, y->data));
}

struct masked {
    struct mask_sizes sizes;
    struct mask_terms mask;
    double temperature;
};

static bool softmax_masked_backward(sb_node *node)
{
    const struct masked *m = sb_node_options(node);
    const sb_tensor *y = node->out[0], *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0);
    const struct softmax_kernels *k = kernel_row(&softmax_rows, y);
    return k && k->masked_backward(m->sizes, &m->mask, m->temperature, y->data, dy->data,
                                   sb_node_fresh(node, 0), dx->data);
}

static const sb_operation masked_softmax = {"masked_softmax", "x mask", softmax_masked_backward,
                                            true, true};

/* x (..., Lq, Lk) as the scores (B, H, Lq, Lk), aligned from the right. */
static struct mask_sizes softmax_sizes_of(const sb_tensor *x)
{
    int64_t dim[4] = {1, 1, 1, 1};
    for (int i = 0; i < x->rank; i++)
        dim[4 - x->rank + i] = x->dim[i];
    return (struct mask_sizes){dim[0], dim[1], dim[2], dim[3]};
}

/* Makes the node; the tensors of the mask are inputs too. */
static sb_node *softmax_masked_node(sb_tensor *x, const sb_mask *mask, double temperature)
{
    sb_tensor *in[1 + MASK_TERMS] = {x};
    int inputs = 1 + mask_tensors(mask, in + 1);
    struct masked m = {.temperature = temperature};
    sb_node *node = call_begin(&masked_softmax, &softmax_rows, inputs, in, 1, &m, sizeof m);
    if (!node || !check_real("masked_softmax", "x", x))
        return NULL;
    if (!mask)
        return fail_null("masked_softmax", "mask");
    if (x->rank < 2 || x->rank > 4)
        return sb_fail("masked_softmax: x is %s; it must have 2 to 4 axes, the last two queries "
                       "and keys",
                       tensor_shape(x).text);
    if (!(temperature > 0 && temperature < INFINITY))
        return sb_fail("masked_softmax: temperature is %g; it must be a positive number",
                       temperature);
    struct masked *held = node->options;
    const double factor = factor_in_range(x->dtype, 1 / temperature);
    held->temperature = factor == 1 / temperature ? temperature : 1 / factor;
    held->sizes = softmax_sizes_of(x);
    return mask_resolve("masked_softmax", mask, held->sizes, held->sizes.Lq, &held->mask) ? node
                                                                                          : NULL;
}

sb_tensor *sb_masked_softmax(sb_tensor *x, sb_mask *mask, double temperature)
{
    sb_node *node = softmax_masked_node(x, mask, temperature);
    if (!node)
        return NULL;
    x = node->in[0];
    const struct masked *m = sb_node_options(node);
    const struct softmax_kernels *k = kernel_row(&softmax_rows, x);
    sb_tensor *y = k ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    return call_end(node,
                    y && k->masked_forward(m->sizes, &m->mask, m->temperature, x->data, y->data));
}

EXAMPLE(example_softmax, sb_softmax(x[0]))
EXAMPLE(example_causal, sb_masked_softmax(x[0], sb_mask_causal(), 1))
EXAMPLE(example_blocked, sb_masked_softmax(x[0], sb_mask_block(x[1]), 0.7))

static sb_tensor *example_combined(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_mask *lengths = sb_mask_lengths(x[1]);
    sb_mask *both = sb_mask_and(lengths, sb_mask_window(2, 1));
    return sb_masked_softmax(x[0], sb_mask_and(both, sb_mask_allow(x[2])), 2);
}

OPERATION(softmax,
          {"softmax",
           example_softmax,
           {"1", "2", "7", "3x5", "c2:2x4", "2x3x4", "3x32", "2x1x3x65"}},
          {"masked_softmax", example_causal, {"1x1", "2x7", "3x5x4", "2x1x3x65", "=4x4"}},
          {"masked_softmax", example_blocked, {"4x7 b:4x7", "2x3x4 b:4", "2x2x2x63 b:2x1x2x63"}},
          {"masked_softmax", example_combined, {"2x2x4x5 i6:2 b:2x1x4x5", "1x1x2x64 i65:1 b:64"}});
