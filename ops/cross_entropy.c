#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "tensor/failure.h"

KERNEL_ROWS(cross_entropy);

enum { MAX, INVERSE, LOSS, WEIGHT, STATISTICS }; /* rows of the first saved tensor */
enum { SAVED_STATISTICS, SAVED_DIVISOR = CROSS_ENTROPY_DIVISOR, SAVED_CLASS_WEIGHT };

struct cross_entropy_options cross_entropy_defaults(const sb_cross_entropy_options *options)
{
    if (!options)
        return (struct cross_entropy_options){.reduction = SB_REDUCE_MEAN};
    return (struct cross_entropy_options){.label_smoothing = options->label_smoothing,
                                          .reduction = options->reduction,
                                          .weighted = options->class_weight != NULL};
}

/* Targets as a constant: the same tensor, detached if it requires a gradient. */
static sb_tensor *cross_entropy_constant(sb_tensor *targets)
{
    return targets && targets->requires_grad ? sb_detach(targets) : targets;
}

static bool cross_entropy_check_options(const char *op, const struct cross_entropy_options *options)
{
    if (!check_share(op, "label_smoothing", options->label_smoothing))
        return false;
    if ((int)options->reduction < SB_REDUCE_MEAN || (int)options->reduction > SB_REDUCE_NONE)
        return sb_fail("%s: %d is not a reduction", op, (int)options->reduction);
    return true;
}

/* Backward checks again: the caller may have changed the ids since forward. */
static bool cross_entropy_ids_fit(const char *op, const struct cross_entropy_kernels *k, int64_t V,
                                  const sb_tensor *ids)
{
    int64_t bad = k->first_bad_id(tensor_size(ids), V, ids->data);
    return bad < 0 || sb_fail("%s: id %lld at %s of targets %s; ids must be below %lld", op,
                              (long long)sb_tensor_get(ids, bad), place_text(ids, bad).text,
                              tensor_shape(ids).text, (long long)V);
}

static bool cross_entropy_check_targets(const char *op, const struct cross_entropy_kernels *k,
                                        int rank, const int64_t *dim, sb_dtype dtype,
                                        const sb_tensor *targets)
{
    if (targets->dtype != SB_I32 && targets->dtype != dtype)
        return sb_fail("%s: targets are of %s; they must be ids (i32) or probabilities (%s)", op,
                       sb_dtype_name(targets->dtype), sb_dtype_name(dtype));
    int wanted = targets->dtype == SB_I32 ? rank - 1 : rank;
    if (!shape_equal(wanted, dim, targets->rank, targets->dim))
        return sb_fail("%s: the logits are %s, targets are %s of %s, not %s", op,
                       shape_text(rank, dim).text, tensor_shape(targets).text,
                       sb_dtype_name(targets->dtype), shape_text(wanted, dim).text);
    return targets->dtype != SB_I32 || cross_entropy_ids_fit(op, k, dim[rank - 1], targets);
}

static bool cross_entropy_check_class_weight(const char *op, const struct cross_entropy_kernels *k,
                                             int64_t V, sb_dtype dtype, const sb_device *device,
                                             const sb_tensor *weight)
{
    if (!tensor_readable(op, weight))
        return false;
    if (weight->dtype != dtype || weight->device != device)
        return sb_fail("%s: x is of %s on %s, class_weight of %s on %s", op, sb_dtype_name(dtype),
                       device->name, sb_dtype_name(weight->dtype), weight->device->name);
    if (weight->rank != 1 || weight->dim[0] != V)
        return sb_fail("%s: class_weight is %s, not (%lld)", op, tensor_shape(weight).text,
                       (long long)V);
    int64_t bad = k->first_bad_weight(V, weight->data);
    return bad < 0 || sb_fail("%s: class_weight[%lld] is %g; weights are numbers >= 0", op,
                              (long long)bad, sb_tensor_get(weight, bad));
}

/* Fills the fields that the node's tensors determine. */
static void cross_entropy_describe(struct cross_entropy *loss, const sb_node *node, const int64_t V,
                                   const sb_tensor *targets)
{
    const struct cross_entropy_options *options = sb_node_options(node);
    const sb_tensor *statistics = sb_node_saved(node, SAVED_STATISTICS);
    const sb_tensor *class_weight =
        options->weighted ? sb_node_saved(node, SAVED_CLASS_WEIGHT) : NULL;
    loss->targets = (struct cross_entropy_targets){
        .rows = statistics->dim[1],
        .V = V,
        .probabilities = targets->dtype != SB_I32,
        .label_smoothing = options->label_smoothing,
        .targets = targets->data,
        .class_weight = class_weight ? class_weight->data : NULL,
    };
    const int64_t rows = loss->targets.rows;
    loss->found = (struct cross_entropy_found){
        tensor_element(statistics, MAX * rows), tensor_element(statistics, INVERSE * rows),
        tensor_element(statistics, LOSS * rows), tensor_element(statistics, WEIGHT * rows)};
    loss->reduction = options->reduction;
    loss->dtype = statistics->dtype;
}

bool cross_entropy_begin(struct cross_entropy *loss, sb_node *node, sb_dtype logits, int rank,
                         const int64_t *dim, const sb_tensor *targets, sb_tensor *class_weight)
{
    const char *op = node->operation->name;
    const struct cross_entropy_options *options = sb_node_options(node);
    const sb_device *device = node->in[0]->device;
    const sb_dtype dtype = dtype_of_sums(logits);
    const int64_t rows = shape_size(rank - 1, dim), V = dim[rank - 1];
    const struct cross_entropy_kernels *k = kernel_row_if_any(&cross_entropy_rows, device, logits);
    if (!k)
        return sb_fail("%s: no kernel for %s on %s", op, sb_dtype_name(logits), device->name);
    if (!cross_entropy_check_options(op, options) ||
        !cross_entropy_check_targets(op, k, rank, dim, dtype, targets) ||
        (class_weight && !cross_entropy_check_class_weight(op, k, V, dtype, device, class_weight)))
        return false;
    bool none = options->reduction == SB_REDUCE_NONE;
    if (!sb_node_output(node, dtype, none ? rank - 1 : 0, dim) ||
        !sb_node_save(node, tensor_new(op, device, dtype, 2, (int64_t[]){STATISTICS, rows})) ||
        !sb_node_save(node, tensor_new(op, device, dtype, SB_SCALAR)) ||
        (class_weight && !sb_node_save(node, sb_tensor_retain(class_weight))))
        return false;
    *loss = (struct cross_entropy){.kernels = k};
    cross_entropy_describe(loss, node, V, targets);
    if (none)
        loss->found.loss = node->out[0]->data;
    return true;
}

sb_tensor *cross_entropy_finish(const struct cross_entropy *loss, sb_node *node)
{
    sb_tensor *y = node->out[0];
    bool counted = true, mean = loss->reduction == SB_REDUCE_MEAN;
    if (loss->reduction == SB_REDUCE_NONE)
        return y;
    if (!loss->kernels->reduce(loss->targets.rows, mean, loss->found.loss,
                               loss->targets.probabilities ? NULL : loss->found.weight,
                               sb_node_saved(node, SAVED_DIVISOR)->data, y->data, &counted))
        return NULL;
    if (!counted)
        return sb_fail("%s: none of %lld targets counts (ignored or weight 0): the mean is 0/0",
                       node->operation->name, (long long)loss->targets.rows);
    return y;
}

bool cross_entropy_resume(struct cross_entropy *loss, const sb_node *node, sb_dtype logits,
                          int rank, const int64_t *dim, const sb_tensor *targets)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    loss->kernels = kernel_row_if_any(&cross_entropy_rows, dy->device, logits);
    if (!loss->kernels ||
        (targets->dtype == SB_I32 &&
         !cross_entropy_ids_fit(node->operation->name, loss->kernels, dim[rank - 1], targets)))
        return false;
    cross_entropy_describe(loss, node, dim[rank - 1], targets);
    bool none = loss->reduction == SB_REDUCE_NONE;
    loss->dy = (struct cross_entropy_dy){dy->data, none ? 1 : 0,
                                         none ? NULL : sb_node_saved(node, SAVED_DIVISOR)->data};
    return true;
}

/* The address `count` elements of `bytes` bytes after p. */
static void *cross_entropy_after(const void *p, int64_t count, size_t bytes)
{
    return (char *)(uintptr_t)p + (size_t)count * bytes;
}

struct cross_entropy cross_entropy_part(const struct cross_entropy *loss, int64_t start,
                                        int64_t rows)
{
    struct cross_entropy part = *loss;
    const struct cross_entropy_found *found = &loss->found;
    const size_t bytes = sb_dtype_bytes(loss->dtype);
    part.targets.rows = rows;
    part.targets.targets =
        loss->targets.probabilities
            ? cross_entropy_after(loss->targets.targets, start * loss->targets.V, bytes)
            : cross_entropy_after(loss->targets.targets, start, sizeof(int32_t));
    part.found = (struct cross_entropy_found){cross_entropy_after(found->max, start, bytes),
                                              cross_entropy_after(found->inverse, start, bytes),
                                              cross_entropy_after(found->loss, start, bytes),
                                              cross_entropy_after(found->weight, start, bytes)};
    if (loss->dy.dy) /* in backward */
        part.dy.dy = cross_entropy_after(loss->dy.dy, start * loss->dy.step, bytes);
    return part;
}

static bool cross_entropy_backward(sb_node *node)
{
    const sb_tensor *x = node->in[0];
    struct cross_entropy loss;
    return cross_entropy_resume(&loss, node, x->dtype, x->rank, x->dim, node->in[1]) &&
           loss.kernels->backward(&loss.targets, x->data, &loss.found, &loss.dy,
                                  sb_node_fresh(node, 0), sb_node_dx(node, 0)->data);
}

static const sb_operation cross_entropy = {"cross_entropy", "x targets", cross_entropy_backward,
                                           true, true};

sb_tensor *sb_cross_entropy(sb_tensor *x, sb_tensor *targets,
                            const sb_cross_entropy_options *options)
{
    const struct cross_entropy_options chosen = cross_entropy_defaults(options);
    sb_tensor *in[] = {x, targets, options ? options->class_weight : NULL};
    /* The kernels for bf16 read ids, and class weights in f32. */
    struct kernel_rows *rows = targets && targets->dtype == SB_I32 ? &cross_entropy_rows : NULL;
    if (!call_widen("cross_entropy", rows, 3, in) && x && x->dtype == SB_BF16)
        in[2] = call_widened("cross_entropy", in[2]);
    in[1] = cross_entropy_constant(in[1]);
    sb_node *node = sb_node_new(&cross_entropy, 2, in, 1, &chosen, sizeof chosen);
    struct cross_entropy loss;
    if (!node || !check_rows("cross_entropy", x) ||
        !cross_entropy_begin(&loss, node, in[0]->dtype, x->rank, x->dim, in[1], in[2]) ||
        !loss.kernels->forward(&loss.targets, in[0]->data, &loss.found))
        return NULL;
    return cross_entropy_finish(&loss, node);
}

EXAMPLE(example_mean, sb_cross_entropy(x[0], x[1], NULL))
EXAMPLE(example_none,
        sb_cross_entropy(x[0], x[1], &(sb_cross_entropy_options){.reduction = SB_REDUCE_NONE}))
EXAMPLE(example_smoothed, sb_cross_entropy(x[0], x[1],
                                           &(sb_cross_entropy_options){.label_smoothing = 0.1,
                                                                       .reduction = SB_REDUCE_SUM}))
EXAMPLE(example_weighted,
        sb_cross_entropy(x[0], x[1],
                         &(sb_cross_entropy_options){.label_smoothing = 0.2, .class_weight = x[2]}))

OPERATION(cross_entropy,
          {"cross_entropy",
           example_mean,
           {"2 i2:.", "3x7 i7:3", "2x3x5 i5:2x3", "2x1x2x65 i65:2x1x2", "c3:2x4 i4:2", "3x5 =+3x5",
            "2 =+2", "2x63 =+2x63"}},
          {"cross_entropy", example_none, {"7 i7:.", "3x5 i5:3", "2x3x4 =+2x3x4", "2x64 i64:2"}},
          {"cross_entropy", example_smoothed, {"3x5 i5:3", "2x3x4 =+2x3x4", "70x2 i2:70"}},
          {"cross_entropy",
           example_weighted,
           {"3x5 i5:3 =+5", "2x3x4 =+2x3x4 =+4", "2x65 i65:2 =+65"}});
