#include "nn/output_head.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/call.h"
#include "tensor/failure.h"

bool sb_output_head_init(sb_output_head *head, sb_parameters *set, const char *name, int64_t C,
                         int64_t V, bool bias, sb_tensor *tied)
{
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    sb_linear_layer linear = {.weight = tied};
    struct layer_start start;
    if (!layer_begin(&start, "output_head", head, sizeof *head, set, name))
        return false;
    if (tied && bias)
        linear.bias = sb_parameters_add(set, name_join(name, "bias").text, SB_SHAPE(V), zero);
    else if (!tied)
        sb_linear_layer_init(&linear, set, name, C, V, bias);
    if (linear.lora_a)
        sb_fail("output_head: \"%s\" cannot have LoRA adapters; name other layers, such as "
                "\"*.query,*.value\"",
                name);
    *head = (sb_output_head){.weight = linear.weight, .bias = linear.bias};
    return layer_end(&start, head->weight && (head->bias || !bias) && !linear.lora_a);
}

/* dx = dy */
static bool head_pass_on(sb_node *node)
{
    return !sb_node_dx(node, 0) || node_forward_gradient(node) ||
           call_add_gradient(node, sb_node_dy(node, 0));
}

/* The row of padding in the weight's gradient. */
static sb_tensor *head_padding_row(const sb_node *before, sb_tensor *dweight)
{
    const int64_t C = dweight->dim[1], *row = sb_node_options(before);
    return tensor_view("output_head", dweight, *row * C, 1, &C);
}

/* After the products, so first in backward: saves the row for the node before them. */
static bool head_after_backward(sb_node *node)
{
    sb_node *before = *(sb_node *const *)sb_node_options(node);
    const sb_tensor *weight = node_target(before, 1);
    if (weight->grad_current) {
        sb_tensor *row = head_padding_row(before, weight->grad);
        sb_tensor *saved =
            row ? tensor_new("output_head", row->device, row->dtype, 1, row->dim) : NULL;
        const bool ok = saved && row->device->copy(saved->data, row->data, tensor_bytes(row)) &&
                        sb_node_save(before, saved);
        sb_tensor_release(row);
        if (!ok)
            return false;
    }
    return head_pass_on(node);
}

/* Before the products, so last in backward: the row is again what others have added to it. */
static bool head_before_backward(sb_node *node)
{
    sb_tensor *dweight = sb_node_dx(node, 1), *saved = sb_node_saved(node, 0);
    if (dweight) {
        sb_tensor *row = head_padding_row(node, dweight);
        const bool ok =
            row && (sb_node_fresh(node, 1) ? tensor_zero(dweight)
                    : saved ? row->device->copy(row->data, saved->data, tensor_bytes(row))
                            : tensor_zero(row));
        sb_tensor_release(row);
        if (!ok)
            return false;
    }
    return head_pass_on(node);
}

static const sb_operation head_before = {"output_head", "y weight", head_before_backward, true,
                                         false};
static const sb_operation head_after = {"output_head", "y", head_after_backward, true, false};

/* The row of padding is a constant of these numbers, whose tangent stops. */
static sb_tensor *head_stop_tangent(sb_tensor *weight, int64_t row)
{
    const int64_t rows = sb_tensor_dim(weight, 0);
    sb_tensor *part[3] = {sb_slice(weight, 0, 0, row), sb_detach(sb_slice(weight, 0, row, 1)),
                          sb_slice(weight, 0, row + 1, rows - row - 1)};
    return sb_concatenate(part, 3, 0);
}

/* What the products take: y, maybe scaled, and the weight in its dtype; and the node before them
   that undoes what they add to the row of padding, without a copy of the weight's gradient. */
struct head {
    sb_tensor *y, *weight;
    sb_node *before; /* NULL: nothing to undo */
};

static bool head_stop(const sb_output_head *head, struct head *h)
{
    const struct open_tape *tape = tape_need("output_head");
    if (!tape || !h->y || !h->weight)
        return tape && fail_null("output_head", h->y ? "weight" : "y");
    if (h->weight->rank != 2 || head->padding_id < 0 || head->padding_id >= h->weight->dim[0])
        return sb_fail("output_head: padding_id is %lld; it must be a row of the weight %s",
                       (long long)head->padding_id, tensor_shape(h->weight).text);
    if (tape->twins) {
        h->weight = head_stop_tangent(h->weight, head->padding_id);
    } else if (tape->mode == SB_RECORD) {
        h->before = sb_node_new(&head_before, 2, (sb_tensor *[]){h->y, h->weight}, 1,
                                &head->padding_id, sizeof head->padding_id);
        if (h->before)
            node_writes_f32(h->before, 1);
        h->y = h->before ? node_view(h->before, 0, h->y->rank, h->y->dim) : NULL;
    }
    return h->y && h->weight;
}

static bool head_begin(struct head *h, const sb_output_head *head, sb_tensor *y)
{
    if (!head)
        return fail_null("output_head", "head");
    *h = (struct head){.y = y, .weight = precision_of(head->weight, y)};
    if (head->scale != 0 && head->scale != 1)
        h->y = sb_scale(y, head->scale);
    return !head->padded || head_stop(head, h);
}

static sb_tensor *head_end(const struct head *h, sb_tensor *y)
{
    if (!h->before || !y)
        return y;
    sb_node *after = sb_node_new(&head_after, 1, &y, 1, &h->before, sizeof h->before);
    return after ? node_view(after, 0, y->rank, y->dim) : NULL;
}

sb_tensor *sb_output_head_logits(const sb_output_head *head, sb_tensor *y)
{
    struct head h;
    if (!head_begin(&h, head, y))
        return NULL;
    return head_end(&h, sb_linear(h.y, h.weight, precision_of(head->bias, h.y)));
}

sb_tensor *sb_output_head_loss(const sb_output_head *head, sb_tensor *y, sb_tensor *targets,
                               const sb_cross_entropy_options *options)
{
    struct head h;
    if (!head_begin(&h, head, y))
        return NULL;
    sb_tensor *bias = precision_of(head->bias, h.y);
    return head_end(&h, sb_linear_cross_entropy(h.y, h.weight, bias, targets, options));
}
