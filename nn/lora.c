#include "nn/lora.h"
#include "nn/groups.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/parameter_set.h"
#include "nn/precision.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/option.h"
#include <math.h>
#include <string.h>

static const char adapters[] = "*.lora_a,*.lora_b";

bool sb_parameters_lora(sb_parameters *set, const sb_lora_options *options)
{
    if (!set || !options)
        return fail_null("parameters_lora", set ? "options" : "set");
    if (options->rank < 1 || options->rank > 1 << 16)
        return sb_fail("parameters_lora: rank is %lld, not in 1..%d", (long long)options->rank,
                       1 << 16);
    if (!check_not_negative("parameters_lora", "alpha", options->alpha))
        return false;
    char *on = memory_text(options->on ? options->on : "*.query,*.value");
    if (!on)
        return sb_fail("parameters_lora: out of memory");
    memory_free(set->lora.on);
    const double rank = (double)options->rank;
    set->lora = (struct lora){
        .rank = options->rank, .scale = sb_option(options->alpha, rank) / rank, .on = on};
    return true;
}

bool lora_is_adapter(const char *name)
{
    return glob_matches(adapters, name);
}

bool lora_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int64_t in,
               int64_t out, int ranks)
{
    const struct lora *lora = &set->lora;
    if (lora->rank == 0 || !glob_matches(lora->on, name))
        return true;
    if (ranks > 1)
        return sb_fail("linear: ranks hold parts of \"%s\", which cannot have LoRA adapters then; "
                       "let the ranks share batches",
                       name);
    const sb_initial normal = {SB_INITIAL_NORMAL, 1 / sqrt((double)in)},
                     zero = {SB_INITIAL_CONSTANT, 0};
    const bool undrawn = set->undrawn;
    set->undrawn = false;
    layer->lora_a =
        sb_parameters_add(set, name_join(name, "lora_a").text, SB_SHAPE(lora->rank, in), normal);
    if (layer->lora_a)
        set->item[set->count - 1].scale = lora->scale;
    layer->lora_b = layer->lora_a ? sb_parameters_add(set, name_join(name, "lora_b").text,
                                                      SB_SHAPE(out, lora->rank), zero)
                                  : NULL;
    set->undrawn = undrawn;
    layer->lora_scale = lora->scale;
    return layer->lora_b != NULL;
}

static sb_tensor *activate(sb_tensor *y, sb_activation activation)
{
    static sb_tensor *(*const functions[])(sb_tensor *) = {
        [SB_ACTIVATION_RELU] = sb_relu,           [SB_ACTIVATION_GELU] = sb_gelu,
        [SB_ACTIVATION_GELU_TANH] = sb_gelu_tanh, [SB_ACTIVATION_SILU] = sb_silu,
        [SB_ACTIVATION_TANH] = sb_tanh,           [SB_ACTIVATION_SIGMOID] = sb_sigmoid};
    if ((unsigned)activation >= sizeof functions / sizeof *functions)
        return sb_fail("linear_layer: there is no activation %d", (int)activation);
    return activation == SB_ACTIVATION_IDENTITY ? y : functions[activation](y);
}

sb_tensor *lora_forward(const sb_linear_layer *layer, sb_tensor *x, sb_activation activation)
{
    sb_tensor *weight = precision_of(layer->weight, x);
    sb_tensor *y = sb_linear(x, weight, precision_of(layer->bias, x));
    sb_tensor *narrow = sb_linear(x, precision_of(layer->lora_a, x), NULL);
    sb_tensor *added = sb_linear(narrow, precision_of(layer->lora_b, x), NULL);
    return activate(sb_add(y, sb_scale(added, layer->lora_scale)), activation);
}

bool sb_lora_freeze(sb_parameters *set)
{
    bool any = false;
    for (int64_t i = 0; set && i < set->count; i++)
        any = any || lora_is_adapter(set->item[i].name);
    if (!set)
        return fail_null("lora_freeze", "set");
    if (!any && set->lora.rank == 0)
        return sb_fail("lora_freeze: there are no adapters; call sb_parameters_lora before the "
                       "model is made");
    if (!any)
        return sb_fail("lora_freeze: there are no adapters: no linear layer matches \"%.200s\"",
                       set->lora.on);
    return sb_parameters_freeze(set, "*", true) && sb_parameters_freeze(set, adapters, false);
}

/* W += scale B A, and B = 0. */
static bool merge(sb_tensor *weight, sb_tensor *a, sb_tensor *b, double scale)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *sum = sb_add(weight, sb_scale(sb_matmul(b, a), scale));
    const bool ok =
        sum &&
        (shape_equal(sum->rank, sum->dim, weight->rank, weight->dim) ||
         sb_fail("lora_merge: the adapters' product is %s, their weight %s: shapes differ",
                 tensor_shape(sum).text, tensor_shape(weight).text)) &&
        weight->device->copy(weight->data, sum->data, tensor_bytes(sum));
    if (ok) {
        tensor_note_write(weight);
        tensor_zero(b);
        tensor_note_write(b);
    }
    return sb_tape_end(&tape) && ok;
}

bool sb_lora_merge(sb_parameters *set)
{
    static const char ending[] = ".lora_a";
    bool any = false;
    if (!set)
        return fail_null("lora_merge", "set");
    if (!parameters_may_change("lora_merge", set))
        return false;
    for (int64_t i = 0; i < set->count; i++) {
        const struct parameter *a = &set->item[i];
        if (a->scale == 0)
            continue;
        char layer[201]; /* names have at most 200 bytes */
        const size_t path = strlen(a->name) - strlen(ending);
        memcpy(layer, a->name, path);
        layer[path] = '\0';
        sb_tensor *weight = sb_parameters_find(set, name_join(layer, "weight").text),
                  *b = sb_parameters_find(set, name_join(layer, "lora_b").text);
        if (!merge(weight, a->tensor, b, a->scale))
            return false;
        any = true;
    }
    return any || sb_fail("lora_merge: there are no adapters");
}
