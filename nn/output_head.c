#include "nn/output_head.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
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
    *head = (sb_output_head){linear.weight, linear.bias};
    return layer_end(&start, head->weight && (head->bias || !bias) && !linear.lora_a);
}

sb_tensor *sb_output_head_logits(const sb_output_head *head, sb_tensor *y)
{
    if (!head)
        return fail_null("output_head", "head");
    sb_tensor *weight = precision_of(head->weight, y);
    return sb_linear(y, weight, precision_of(head->bias, y));
}

sb_tensor *sb_output_head_loss(const sb_output_head *head, sb_tensor *y, sb_tensor *targets,
                               const sb_cross_entropy_options *options)
{
    if (!head)
        return fail_null("output_head", "head");
    sb_tensor *weight = precision_of(head->weight, y);
    return sb_linear_cross_entropy(y, weight, precision_of(head->bias, y), targets, options);
}
