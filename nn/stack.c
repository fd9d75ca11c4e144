#include "nn/stack.h"
#include "autograd/recomputation.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static bool add_parts(struct stack *s, sb_parameters *set, const char *name, int64_t V,
                      const sb_transformer_options *o, sb_tensor *shared)
{
    if (!sb_embedding_layer_init(&s->embedding, set, name_join(name, "embedding").text, V, o,
                                 shared) ||
        !sb_position_bias_init(&s->bias, set, name, o))
        return false;
    for (int i = 0; i < s->layers; i++)
        if (!sb_transformer_layer_init(&s->layer[i], set, name_layer(name, i).text, o, s->crosses))
            return false;
    const sb_norm_options norm = layer_norm_options(o);
    return !s->has_norm ||
           sb_norm_layer_init_with(&s->norm, set, name_join(name, "norm").text, o->width, &norm);
}

bool stack_init(struct stack *stack, sb_parameters *set, const char *name, int64_t V, int layers,
                const sb_transformer_options *options, bool crosses, sb_tensor *shared)
{
    const struct parameters_mark mark = parameters_mark(set);
    *stack = (struct stack){.has_norm = options->norm_place != SB_NORM_POST,
                            .crosses = crosses,
                            .recomputes = options->recompute,
                            .layers = layers,
                            .layer = memory_new((size_t)layers * sizeof *stack->layer)};
    if (!stack->layer)
        sb_fail("transformer: out of memory");
    else if (add_parts(stack, set, name, V, options, shared))
        return true;
    stack_clear(stack);
    parameters_return(set, &mark);
    return false;
}

void stack_clear(struct stack *stack)
{
    memory_free(stack->layer);
    *stack = (struct stack){0};
}

/* A layer as a function of x and, if there are any, of the memory and the bias, for
   recomputation. */
struct segment {
    const sb_transformer_layer *layer;
    sb_attending self, cross;
};

static sb_tensor *run_segment(void *context, sb_tensor *const x[])
{
    struct segment s = *(const struct segment *)context;
    sb_tensor *memory = s.layer->crosses ? x[1] : NULL;
    if (s.self.bias)
        s.self.bias = x[s.layer->crosses ? 2 : 1];
    return sb_transformer_layer_forward(s.layer, x[0], memory, &s.self, &s.cross);
}

static sb_tensor *run_layer(const struct stack *stack, int i, sb_tensor *x, sb_tensor *memory,
                            const sb_attending *self, const sb_attending *cross)
{
    const struct segment s = {&stack->layer[i], *self, *cross};
    if (!stack->recomputes || self->cache || self->weights || cross->weights)
        return sb_transformer_layer_forward(s.layer, x, memory, self, cross);
    sb_tensor *in[3] = {x};
    int n = 1;
    if (stack->crosses)
        in[n++] = memory;
    if (self->bias)
        in[n++] = self->bias;
    return sb_recompute(run_segment, &s, sizeof s, n, in);
}

sb_tensor *stack_forward(const struct stack *stack, sb_tensor *ids, int64_t length,
                         struct stack_use *use)
{
    bool ok;
    const int64_t L = sb_tensor_dim(ids, 1);
    sb_tensor *x =
        sb_embedding_layer_forward_segments(&stack->embedding, ids, use->segments, use->self.start);
    use->self.bias = sb_position_bias_forward(&stack->bias, L, length, &ok);
    if (!x || !ok || !use->self.mask || (stack->crosses && !use->cross.mask))
        return NULL;
    for (int i = 0; i < stack->layers; i++) {
        use->self.cache = use->self_caches ? use->self_caches[i] : NULL;
        use->cross.cache = use->cross_caches ? use->cross_caches[i] : NULL;
        use->self.weights = use->self_weights ? &use->self_weights[i] : NULL;
        use->cross.weights = use->cross_weights ? &use->cross_weights[i] : NULL;
        x = run_layer(stack, i, x, use->memory, &use->self, &use->cross);
    }
    return stack->has_norm ? sb_norm_layer_forward(&stack->norm, x) : x;
}
