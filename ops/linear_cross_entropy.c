/*
 * The logits of a chunk of rows are in scratch memory. If a gradient is required, forward replaces
 * them by their gradient as soon as it has the chunk's loss, and accumulates the gradients of x,
 * weight and bias for dy / divisor = 1; backward multiplies these by dy / divisor. Where rows have
 * different dy, backward recomputes the logits instead. Both use the kernels of linear and of
 * cross_entropy.
 *
 * For bf16, the CPU computes the loss from the f32 sums of the products and rounds only their
 * gradient. A device stores logits of bf16, half the bytes of this widest tensor of a model, and
 * computes the loss from them in f32. The sums over all chunks are rounded once at the end.
 */
#include "autograd/dual_tape.h"
#include "ops/arithmetic.h"
#include "ops/call.h"
#include "ops/cast.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/example.h"
#include "ops/linear.h"
#include "ops/loss.h"

int64_t linear_cross_entropy_logits = (int64_t)1 << 28;

/* On the CPU a chunk has about 2^21 logits, so that reading the weight for each chunk costs little.
   A device would read the weight, and add to its gradient, in too many small products. A multiple
   of SLAB_ROWS. */
static int64_t fused_loss_rows_of_chunk(const sb_device *device, int64_t V)
{
    const bool cpu = device == sb_device_cpu();
    const int64_t least = cpu ? 2 * SLAB_ROWS : SLAB_ROWS, most = 16 * SLAB_ROWS;
    const int64_t logits = cpu ? (int64_t)1 << 21 : linear_cross_entropy_logits;
    const int64_t fitting = logits / (V + 1) / SLAB_ROWS * SLAB_ROWS;
    return fitting < least ? least : cpu && fitting > most ? most : fitting;
}

/* On a device the rows of the logits begin at multiples of 16 bytes, which products and loads need
   for their full speed. */
static int64_t fused_loss_pitch(const sb_device *device, int64_t V)
{
    return device == sb_device_cpu() ? V : (V + 7) / 8 * 8;
}

static sb_dtype fused_loss_logits(const sb_tensor *x)
{
    return x->device == sb_device_cpu() ? dtype_of_sums(x->dtype) : x->dtype;
}

/* The scratch memory of forward and backward: logits (chunk, V) and, for dbias, partial sums.
   `rounded` holds the gradient of the logits when these are wider than x. */
struct walk {
    const struct linear_kernels *linear;
    struct linear_shape shape; /* of all rows */
    int64_t chunk;
    sb_tensor *logits, *partial, *rounded;
};

static bool fused_loss_walk_begin(struct walk *w, const sb_tensor *x, const sb_tensor *weight)
{
    const int64_t rows = row_count(x), V = weight->dim[0];
    *w = (struct walk){.linear = kernel_row(&linear_rows, x),
                       .shape = linear_shape_of(x, weight, SB_ACTIVATION_IDENTITY),
                       .chunk = fused_loss_rows_of_chunk(x->device, V)};
    w->shape.wide = true;
    w->shape.pitch = fused_loss_pitch(x->device, V);
    const char *op = "linear_cross_entropy";
    const int64_t held = w->chunk < rows ? w->chunk : rows, pitch = w->shape.pitch;
    const sb_dtype sums = dtype_of_sums(x->dtype);
    if (w->linear)
        w->logits = tensor_new(op, x->device, fused_loss_logits(x), 2, (int64_t[]){held, pitch});
    if (w->logits)
        w->partial = tensor_new(op, x->device, sums, 2, (int64_t[]){slab_count(held), V});
    if (w->partial)
        w->rounded = w->logits->dtype == x->dtype
                         ? sb_tensor_retain(w->logits)
                         : tensor_new(op, x->device, x->dtype, 2, (int64_t[]){held, pitch});
    return w->rounded != NULL;
}

static void fused_loss_walk_end(struct walk *w)
{
    sb_tensor_release(w->logits);
    sb_tensor_release(w->partial);
    sb_tensor_release(w->rounded);
}

/* logits = x W' + b of one chunk */
static bool fused_loss_make_logits(const struct walk *w, const struct linear_shape *s,
                                   const sb_tensor *x, const sb_tensor *weight,
                                   const sb_tensor *bias, int64_t start)
{
    struct linear_shape shape = *s;
    shape.wide = w->logits->dtype != x->dtype;
    return w->linear->forward(&shape, tensor_element(x, start * s->in), weight->data,
                              bias ? bias->data : NULL, NULL, w->logits->data);
}

static struct linear_shape fused_loss_shape_from(const struct walk *w, int64_t start)
{
    struct linear_shape s = w->shape;
    s.rows = start + w->chunk < w->shape.rows ? w->chunk : w->shape.rows - start;
    return s;
}

/* ---- Gradients in forward ---- */

enum { X, WEIGHT, TARGETS, BIAS, INPUTS }; /* of the node */

/* The gradient of each input for dy / divisor = 1, or NULL if not needed: views of one saved
   tensor. */
struct early {
    sb_tensor *one; /* the number 1 */
    sb_tensor *part[INPUTS];
};

/* The inputs that require a gradient, as bits; for a leaf this may change between forward and
   backward. */
static unsigned fused_loss_wanted_now(const sb_node *node)
{
    unsigned wanted = 0;
    for (int i = 0; i < node->inputs; i++)
        wanted |= (unsigned)tape_wants_grad(tape_open(), node->in[i]) << i;
    return wanted;
}

/* The inputs whose gradient can be accumulated before dy is known. */
static unsigned fused_loss_early_inputs(const sb_node *node)
{
    const struct cross_entropy_options *options = sb_node_options(node);
    return options->reduction != SB_REDUCE_NONE ? fused_loss_wanted_now(node) : 0;
}

/* exp 0, which needs no upload to the device */
static sb_tensor *fused_loss_make_one(const sb_tensor *like)
{
    sb_tensor *one = tensor_new("linear_cross_entropy", like->device, like->dtype, SB_SCALAR);
    const struct elementwise_kernels *k = one ? kernel_row(&elementwise_rows, one) : NULL;
    if (k && tensor_zero(one) && k->forward(ELEMENTWISE_EXP, 0, 1, one->data, one->data))
        return one;
    sb_tensor_release(one);
    return NULL;
}

static void fused_loss_early_end(struct early *e)
{
    sb_tensor_release(e->one);
    for (int i = 0; i < INPUTS; i++)
        sb_tensor_release(e->part[i]);
}

/* Makes the saved tensor in forward, or finds it in backward; each part begins at a multiple of
   16. */
static bool fused_loss_early_begin(struct early *e, sb_node *node, bool make)
{
    const char *op = "linear_cross_entropy";
    const unsigned early = ((const struct cross_entropy_options *)sb_node_options(node))->early;
    int64_t size = 0, place[INPUTS] = {0};
    *e = (struct early){0};
    for (int i = 0; i < node->inputs; i++) {
        place[i] = size;
        size += early >> i & 1 ? (tensor_size(node->in[i]) + 15) / 16 * 16 : 0;
    }
    const sb_tensor *x = node->in[X];
    const sb_dtype sums = dtype_of_sums(x->dtype);
    sb_tensor *all = make ? sb_node_save(node, tensor_new(op, x->device, sums, SB_SHAPE(size)))
                          : sb_node_saved(node, node->saves - 1);
    bool ok = all != NULL;
    for (int i = 0; i < node->inputs; i++)
        if (ok && early >> i & 1) {
            e->part[i] = tensor_view(op, all, place[i], node->in[i]->rank, node->in[i]->dim);
            ok = e->part[i] != NULL;
        }
    e->one = ok && make ? fused_loss_make_one(all) : NULL;
    return ok && (e->one || !make);
}

/* Replaces the logits of a chunk by their gradient, in place or rounded. */
static bool fused_loss_make_dlogits(const struct walk *w, const struct linear_shape *s,
                                    const struct cross_entropy *part)
{
    const struct cross_entropy_kernels *k = part->kernels;
    void *logits = w->logits->data;
    return k->backward(&part->targets, logits, &part->found, &part->dy, true, logits) &&
           (w->rounded == w->logits ||
            cast_elements(true, s->rows * s->pitch, w->logits, w->rounded));
}

/* Replaces a chunk's logits by their gradient, and adds its parts to the sums of the inputs (NULL:
   not needed). The first chunk writes those that are fresh. */
static bool fused_loss_add_gradients(const struct walk *w, const struct cross_entropy *part,
                                     const sb_node *node, int64_t start,
                                     sb_tensor *const sum[INPUTS], const bool fresh[INPUTS])
{
    const struct linear_shape s = fused_loss_shape_from(w, start);
    const struct linear_kernels *k = w->linear;
    const void *dlogits = w->rounded->data, *x = tensor_element(node->in[X], start * s.in);
    const bool first = start == 0;
    if (!fused_loss_make_dlogits(w, &s, part))
        return false;
    return (!sum[X] || k->backward_x(&s, dlogits, node->in[WEIGHT]->data, fresh[X],
                                     tensor_element(sum[X], start * s.in))) &&
           (!sum[WEIGHT] ||
            k->backward_weight(&s, dlogits, x, first && fresh[WEIGHT], sum[WEIGHT]->data)) &&
           (!sum[BIAS] ||
            k->backward_bias(&s, dlogits, w->partial->data, first && fresh[BIAS], sum[BIAS]->data));
}

/* The same in forward, for dy / divisor = 1. */
static bool fused_loss_early_chunk(const struct walk *w, const struct early *e,
                                   struct cross_entropy part, const sb_node *node, int64_t start)
{
    static const bool fresh[INPUTS] = {true, true, true, true};
    part.dy = (struct cross_entropy_dy){e->one->data, 0, NULL};
    return fused_loss_add_gradients(w, &part, node, start, e->part, fresh);
}

/* dx = part * factor; computed in the part and then rounded if dx is narrower. */
static bool fused_loss_early_scale(const struct arithmetic_kernels *k, sb_tensor *part,
                                   const sb_tensor *factor, bool fresh, sb_tensor *dx)
{
    const struct broadcast all = broadcast_plan(3, (const sb_tensor *[]){part, part, factor});
    if (part->dtype == dx->dtype)
        return k->backward(ARITHMETIC_MULTIPLY, 1, fresh, &all, part->data, NULL, factor->data,
                           NULL, dx->data);
    return k->forward(ARITHMETIC_MULTIPLY, &all, part->data, factor->data, NULL, part->data) &&
           cast_elements(fresh, tensor_size(dx), part, dx);
}

/* dx = early part * (dy / divisor) */
static bool fused_loss_early_backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0),
                    *divisor = sb_node_saved(node, CROSS_ENTROPY_DIVISOR);
    const struct arithmetic_kernels *k = kernel_row(&arithmetic_rows, dy);
    sb_tensor *factor =
        k ? tensor_new("linear_cross_entropy", dy->device, dy->dtype, SB_SCALAR) : NULL;
    struct early e = {0};
    bool ok = factor != NULL && fused_loss_early_begin(&e, node, false);
    if (ok) {
        const struct broadcast one = broadcast_plan(3, (const sb_tensor *[]){factor, dy, divisor});
        ok = k->forward(ARITHMETIC_DIVIDE, &one, dy->data, divisor->data, NULL, factor->data);
    }
    for (int i = 0; ok && i < node->inputs; i++) {
        sb_tensor *dx = sb_node_dx(node, i); /* if there is one, so is the part */
        ok = !dx || fused_loss_early_scale(k, e.part[i], factor, sb_node_fresh(node, i), dx);
    }
    fused_loss_early_end(&e);
    sb_tensor_release(factor);
    return ok;
}

static bool fused_loss_forward(struct walk *w, const struct cross_entropy *loss, sb_node *node)
{
    struct cross_entropy_options *options = node->options;
    const sb_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    struct early e = {0};
    options->early = fused_loss_early_inputs(node);
    bool ok = (!options->early || fused_loss_early_begin(&e, node, true)) &&
              fused_loss_walk_begin(w, x, weight);
    for (int64_t start = 0; ok && (start == 0 || start < w->shape.rows); start += w->chunk) {
        const struct linear_shape s = fused_loss_shape_from(w, start);
        struct cross_entropy part = cross_entropy_part(loss, start, s.rows);
        part.targets.pitch = s.pitch;
        ok = fused_loss_make_logits(w, &s, x, weight, sb_node_input(node, BIAS), start) &&
             part.kernels->forward(&part.targets, w->logits->data, &part.found) &&
             (!options->early || fused_loss_early_chunk(w, &e, part, node, start));
    }
    fused_loss_walk_end(w);
    fused_loss_early_end(&e);
    return ok || sb_fail("linear_cross_entropy: out of memory");
}

/* ---- Gradients in backward ---- */

/* Finds where each chunk adds its part of the gradient of input i: dx itself, or a separate sum
   that is rounded at the end; NULL when no gradient is needed. */
static bool fused_loss_sum_begin(const sb_node *node, int i, sb_tensor **sum, bool *fresh)
{
    sb_tensor *dx = sb_node_dx(node, i);
    if (!dx)
        return true;
    *sum = call_sums("linear_cross_entropy", dx);
    *fresh = sb_node_fresh(node, i) || *sum != dx;
    return *sum != NULL;
}

static bool fused_loss_sum_end(const sb_node *node, int i, sb_tensor *sum, bool ok)
{
    sb_tensor *dx = sb_node_dx(node, i);
    if (ok && sum != dx)
        ok = cast_elements(sb_node_fresh(node, i), tensor_size(dx), sum, dx);
    sb_tensor_release(sum);
    return ok;
}

/* Adds a chunk's part to the gradient of each input. */
static bool fused_loss_backward_chunk(const struct walk *w, const sb_node *node,
                                      const struct cross_entropy *loss, int64_t start,
                                      sb_tensor *const sum[INPUTS], const bool fresh[INPUTS])
{
    const struct linear_shape s = fused_loss_shape_from(w, start);
    struct cross_entropy part = cross_entropy_part(loss, start, s.rows);
    part.targets.pitch = s.pitch;
    return fused_loss_make_logits(w, &s, node->in[X], node->in[WEIGHT], sb_node_input(node, BIAS),
                                  start) &&
           fused_loss_add_gradients(w, &part, node, start, sum, fresh);
}

static bool fused_loss_backward(sb_node *node)
{
    const struct cross_entropy_options *options = sb_node_options(node);
    if (options->early && !(fused_loss_wanted_now(node) & ~options->early))
        return fused_loss_early_backward(node);
    const sb_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        dim[axis] = axis < x->rank - 1 ? x->dim[axis] : weight->dim[0];
    struct cross_entropy loss;
    struct walk w = {0};
    sb_tensor *sum[INPUTS] = {NULL};
    bool fresh[INPUTS] = {false};
    bool ok =
        cross_entropy_resume(&loss, node, fused_loss_logits(x), x->rank, dim, node->in[TARGETS]) &&
        fused_loss_walk_begin(&w, x, weight);
    for (int i = 0; ok && i < node->inputs; i++)
        ok = fused_loss_sum_begin(node, i, &sum[i], &fresh[i]);
    for (int64_t start = 0; ok && (start == 0 || start < w.shape.rows); start += w.chunk)
        ok = fused_loss_backward_chunk(&w, node, &loss, start, sum, fresh);
    fused_loss_walk_end(&w);
    for (int i = 0; i < node->inputs; i++)
        ok = fused_loss_sum_end(node, i, sum[i], ok);
    return ok || sb_fail("linear_cross_entropy: out of memory");
}

static const sb_operation linear_cross_entropy = {"linear_cross_entropy", "x weight targets bias",
                                                  fused_loss_backward, true, true};

sb_tensor *sb_linear_cross_entropy(sb_tensor *x, sb_tensor *weight, sb_tensor *bias,
                                   sb_tensor *targets, const sb_cross_entropy_options *options)
{
    const char *op = linear_cross_entropy.name;
    const struct cross_entropy_options chosen = cross_entropy_defaults(options);
    sb_tensor *class_weight = twin_of(op, options ? options->class_weight : NULL);
    if (x && x->dtype == SB_BF16)
        class_weight = call_widened(op, class_weight);
    sb_node *node =
        call_begin(&linear_cross_entropy, &linear_rows, bias ? 4 : 3,
                   (sb_tensor *[]){x, weight, targets, bias}, 1, &chosen, sizeof chosen);
    if (!node || !linear_check(op, x, weight, bias) || !check_ids(op, "targets", targets))
        return NULL;
    node_writes_f32(node, WEIGHT);
    int64_t dim[SB_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        dim[axis] = axis < x->rank - 1 ? x->dim[axis] : weight->dim[0];
    struct cross_entropy loss;
    struct walk w = {0};
    /* The node's inputs may be dual numbers where x is not. */
    if (!cross_entropy_begin(&loss, node, fused_loss_logits(node->in[X]), x->rank, dim, targets,
                             class_weight) ||
        !fused_loss_forward(&w, &loss, node))
        return NULL;
    return cross_entropy_finish(&loss, node);
}

EXAMPLE(example_mean, sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL))
EXAMPLE(example_none,
        sb_linear_cross_entropy(x[0], x[1], NULL, x[2],
                                &(sb_cross_entropy_options){.reduction = SB_REDUCE_NONE}))
EXAMPLE(example_weighted,
        sb_linear_cross_entropy(x[0], x[1], x[2], x[3],
                                &(sb_cross_entropy_options){.label_smoothing = 0.1,
                                                            .class_weight = x[4]}))

OPERATION_WITHOUT_KERNELS(
    linear_cross_entropy,
    {"linear_cross_entropy",
     example_mean,
     {"3 7x3 7 i7:.", "3x2 5x2 5 i5:3", "2x3x4 5x4 5 i5:2x3", "2x1x2x3 65x3 65 i65:2x1x2",
      "=3x2 5x2 5 i5:3", "3x2 =5x2 5 i5:3", "3x2 5x2 =5 i5:3", "130x1 2x1 2 i2:130"}},
    {"linear_cross_entropy", example_none, {"3x2 5x2 i5:3", "2x63 3x63 i3:2"}},
    {"linear_cross_entropy", example_weighted, {"3x2 5x2 5 i5:3 =+5", "2x3x4 5x4 5 i5:2x3 =+5"}});
