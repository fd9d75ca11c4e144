#include "nn/output_head.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/slice.h"
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

/* dx = dy; the products with the weight have added all to its gradient by now. */
static bool head_padding_backward(sb_node *node)
{
    const int64_t *row = sb_node_options(node);
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0), *dweight = sb_node_dx(node, 1);
    if (dweight) {
        const int64_t C = dweight->dim[1];
        sb_tensor *padding = tensor_view("output_head", dweight, *row * C, 1, &C);
        const bool ok = padding && tensor_zero(sb_node_fresh(node, 1) ? dweight : padding);
        sb_tensor_release(padding);
        if (!ok)
            return false;
    }
    if (!dx || node_forward_gradient(node))
        return true;
    const struct slice_kernels *k = kernel_row(&slice_rows, dy);
    const struct runs all = {1, tensor_size(dy), 0, 0};
    return k &&
           (sb_node_fresh(node, 0) ? k->copy(sb_dtype_bytes(dy->dtype), all, dy->data, dx->data)
                                   : k->add(all, dy->data, dx->data));
}

static const sb_operation head_padding = {"output_head", "y weight", head_padding_backward, true,
                                          true};

/* y itself, or scaled; backward clears what the head has added to the row of padding, without a
   copy of the weight's gradient. */
static sb_tensor *head_input(const sb_output_head *head, sb_tensor *y, sb_tensor *weight)
{
    if (head->scale != 0 && head->scale != 1)
        y = sb_scale(y, head->scale);
    if (!head->padded || !y || !weight || tape_open()->mode != SB_RECORD)
        return y;
    sb_node *node = sb_node_new(&head_padding, 2, (sb_tensor *[]){y, weight}, 1, &head->padding_id,
                                sizeof head->padding_id);
    return node ? node_view(node, 0, node->in[0]->rank, node->in[0]->dim) : NULL;
}

sb_tensor *sb_output_head_logits(const sb_output_head *head, sb_tensor *y)
{
    if (!head)
        return fail_null("output_head", "head");
    sb_tensor *weight = precision_of(head->weight, y);
    return sb_linear(head_input(head, y, weight), weight, precision_of(head->bias, y));
}

sb_tensor *sb_output_head_loss(const sb_output_head *head, sb_tensor *y, sb_tensor *targets,
                               const sb_cross_entropy_options *options)
{
    if (!head)
        return fail_null("output_head", "head");
    sb_tensor *weight = precision_of(head->weight, y);
    return sb_linear_cross_entropy(head_input(head, y, weight), weight, precision_of(head->bias, y),
                                   targets, options);
}
