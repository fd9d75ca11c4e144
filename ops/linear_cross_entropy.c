/*
 * The logits of a chunk of rows live in scratch: forward makes them for the loss, backward makes
 * them again and turns them, in place, into their gradient. What runs are the kernels of linear
 * and of cross_entropy.
 */
#include "autograd/node.h"
#include "ops/bf16.h"
#include "ops/check.h"
#include "ops/cross_entropy.h"
#include "ops/example.h"
#include "ops/linear.h"

/* Enough rows that reading the weight for each chunk does not tell; about 2^21 logits if V allows.
   A multiple of SLAB_ROWS. */
static int64_t rows_of_chunk(int64_t V)
{
    const int64_t least = 2 * SLAB_ROWS, most = 16 * SLAB_ROWS;
    int64_t fitting = ((int64_t)1 << 21) / (V + 1) / SLAB_ROWS * SLAB_ROWS;
    return fitting < least ? least : fitting > most ? most : fitting;
}

/* What both directions walk with: logits (chunk, V) and, for dbias, partial sums. */
struct walk {
    const struct linear_kernels *linear;
    struct linear_shape shape; /* of all rows */
    int64_t chunk;
    size_t bytes;
    sb_tensor *logits, *partial;
};

static bool walk_begin(struct walk *w, const sb_tensor *x, const sb_tensor *weight)
{
    const int64_t rows = row_count(x), V = weight->dim[0];
    *w = (struct walk){.linear = kernel_row(&linear_rows, x),
                       .shape = {.rows = rows,
                                 .in = weight->dim[1],
                                 .out = V,
                                 .by_row = tape_open()->mode == SB_NO_RECORD},
                       .chunk = rows_of_chunk(V),
                       .bytes = sb_dtype_bytes(x->dtype)};
    const char *op = "linear_cross_entropy";
    const int64_t held = w->chunk < rows ? w->chunk : rows;
    if (w->linear)
        w->logits = tensor_new(op, x->device, x->dtype, 2, (int64_t[]){held, V});
    if (w->logits)
        w->partial = tensor_new(op, x->device, x->dtype, 2, (int64_t[]){slab_count(held), V});
    return w->partial != NULL;
}

static void walk_end(struct walk *w)
{
    sb_tensor_release(w->logits);
    sb_tensor_release(w->partial);
}

/* The part of a (rows, C) tensor from row `start` on. */
static void *rows_from(const struct walk *w, const sb_tensor *t, int64_t start)
{
    return (char *)t->data + (size_t)(start * w->shape.in) * w->bytes;
}

/* logits = x W' + b of one chunk */
static bool make_logits(const struct walk *w, const struct linear_shape *s, const sb_tensor *x,
                        const sb_tensor *weight, const sb_tensor *bias, int64_t start)
{
    return w->linear->forward(s, rows_from(w, x, start), weight->data, bias ? bias->data : NULL,
                              NULL, w->logits->data);
}

static struct linear_shape shape_from(const struct walk *w, int64_t start)
{
    struct linear_shape s = w->shape;
    s.rows = start + w->chunk < w->shape.rows ? w->chunk : w->shape.rows - start;
    return s;
}

static bool forward(struct walk *w, const struct cross_entropy *loss, const sb_tensor *x,
                    const sb_tensor *weight, const sb_tensor *bias)
{
    bool ok = walk_begin(w, x, weight);
    for (int64_t start = 0; ok && start < w->shape.rows; start += w->chunk) {
        const struct linear_shape s = shape_from(w, start);
        const struct cross_entropy part = cross_entropy_part(loss, start, s.rows);
        ok = make_logits(w, &s, x, weight, bias, start) &&
             part.kernels->forward(&part.targets, w->logits->data, &part.found);
    }
    walk_end(w);
    return ok || sb_fail("linear_cross_entropy: out of memory");
}

/* One chunk of backward, whose logits become dlogits. Only the first one finds dweight and dbias
   fresh. */
static bool backward_chunk(const struct walk *w, sb_node *node, const struct cross_entropy *loss,
                           int64_t start)
{
    const struct linear_shape s = shape_from(w, start);
    const struct cross_entropy part = cross_entropy_part(loss, start, s.rows);
    const sb_tensor *x = node->in[0], *weight = node->in[1];
    sb_tensor *dx = sb_node_dx(node, 0), *dweight = sb_node_dx(node, 1);
    sb_tensor *dbias = sb_node_dx(node, 3);
    void *dlogits = w->logits->data;
    const bool first = start == 0;
    return make_logits(w, &s, x, weight, sb_node_input(node, 3), start) &&
           part.kernels->backward(&part.targets, dlogits, &part.found, &part.dy, true, dlogits) &&
           (!dx || w->linear->backward_x(&s, dlogits, weight->data, sb_node_fresh(node, 0),
                                         rows_from(w, dx, start))) &&
           (!dweight ||
            w->linear->backward_weight(&s, dlogits, rows_from(w, x, start),
                                       first && sb_node_fresh(node, 1), dweight->data)) &&
           (!dbias || w->linear->backward_bias(&s, dlogits, w->partial->data,
                                               first && sb_node_fresh(node, 3), dbias->data));
}

static bool backward(sb_node *node)
{
    const sb_tensor *x = node->in[0], *weight = node->in[1];
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        dim[axis] = axis < x->rank - 1 ? x->dim[axis] : weight->dim[0];
    struct cross_entropy loss;
    struct walk w = {0};
    bool ok =
        cross_entropy_resume(&loss, node, x->rank, dim, node->in[2]) && walk_begin(&w, x, weight);
    for (int64_t start = 0; ok && (start == 0 || start < w.shape.rows); start += w.chunk)
        ok = backward_chunk(&w, node, &loss, start);
    walk_end(&w);
    return ok || sb_fail("linear_cross_entropy: out of memory");
}

static const sb_operation linear_cross_entropy = {"linear_cross_entropy", "x weight targets bias",
                                                  backward, true};

sb_tensor *sb_linear_cross_entropy(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                   sb_tensor *targets, const sb_cross_entropy_options *options)
{
    const char *op = linear_cross_entropy.name;
    sb_cross_entropy_options wide;
    if (bf16_needs_f32(&cross_entropy_rows, x)) {
        x = bf16_widened(op, x);
        weight = bf16_widened(op, weight);
        bias = bf16_widened(op, bias);
        options = cross_entropy_widened(op, options, &wide);
        return sb_linear_cross_entropy(x, weight, bias, targets, options);
    }
    const struct cross_entropy_options chosen = cross_entropy_defaults(options);
    sb_node *node =
        sb_node_new(&linear_cross_entropy, bias ? 4 : 3, (sb_tensor *[]){x, weight, targets, bias},
                    1, &chosen, sizeof chosen);
    if (!node || !linear_check("linear_cross_entropy", x, weight, bias) ||
        !check_ids("linear_cross_entropy", "targets", targets))
        return NULL;
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        dim[axis] = axis < x->rank - 1 ? x->dim[axis] : weight->dim[0];
    struct cross_entropy loss;
    struct walk w;
    if (!cross_entropy_begin(&loss, node, x->rank, dim, targets,
                             options ? options->class_weight : NULL) ||
        !forward(&w, &loss, x, weight, bias))
        return NULL;
    return cross_entropy_finish(&loss, node);
}

static sb_tensor *run_mean(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL);
}

static sb_tensor *run_none(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_cross_entropy(x[0], x[1], NULL, x[2],
                                   &(sb_cross_entropy_options){.reduction = SB_NONE});
}

static sb_tensor *run_weighted(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_cross_entropy(
        x[0], x[1], x[2], x[3],
        &(sb_cross_entropy_options){.label_smoothing = 0.1, .class_weight = x[4]});
}

OPERATION_WITHOUT_KERNELS(
    linear_cross_entropy,
    {"linear_cross_entropy",
     run_mean,
     {"3 7x3 7 i7:.", "3x2 5x2 5 i5:3", "2x3x4 5x4 5 i5:2x3", "2x1x2x3 65x3 65 i65:2x1x2",
      "=3x2 5x2 5 i5:3", "3x2 =5x2 5 i5:3", "3x2 5x2 =5 i5:3", "130x1 2x1 2 i2:130"}},
    {"linear_cross_entropy", run_none, {"3x2 5x2 i5:3", "2x63 3x63 i3:2"}},
    {"linear_cross_entropy", run_weighted, {"3x2 5x2 5 i5:3 =+5", "2x3x4 5x4 5 i5:2x3 =+5"}});
