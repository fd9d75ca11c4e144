#include "autograd/recomputation.h"
#include "autograd/node.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdint.h>
#include <string.h>

/* The node's options, followed by the context. The node's inputs are x, then the other leaves that
   f reads. */
struct segment {
    sb_function f;
    int n;
    bool draws, given; /* whether the tape has a stream; whether it was given one, or NULL */
    sb_random random;  /* the stream at the start of f */
    max_align_t context[];
};

static bool backward(sb_node *node);

static const sb_operation recompute = {"recompute", "x[]", backward, true, true};

/* ---- backward ---- */

/*
 * A leaf on the inner tape that shares data and gradient with an input of the outer tape, so that
 * inner nodes add directly to the input's gradient. Returns a new reference.
 */
static sb_tensor *stand_in(const sb_node *node, int i)
{
    sb_tensor *x = node->in[i];
    if (x->tape == 0 || !sb_node_dx(node, i))
        return sb_tensor_retain(x);
    sb_tensor *leaf = tensor_view("recompute", x, 0, x->rank, x->dim);
    if (!leaf)
        return NULL;
    leaf->requires_grad = true;
    leaf->grad = sb_tensor_retain(x->grad);
    leaf->grad_current = !sb_node_fresh(node, i);
    return leaf;
}

/* Zeroes gradients to which no node added. */
static bool close_gradients(const sb_node *node, sb_tensor *const x[], int n)
{
    bool ok = true;
    for (int i = 0; i < node->inputs; i++) {
        const sb_tensor *its = i < n ? x[i] : node->in[i];
        bool wanted = its->requires_grad && node->in[i]->grad;
        if (wanted && !its->grad_current) {
            ok = tensor_zero(node->in[i]->grad) && ok;
            node->in[i]->grad_current = true;
        }
    }
    return ok;
}

/* A leaf without a gradient is not current: the first node that has a part for it writes it. */
static bool run_again(sb_node *node, struct segment *s, sb_tensor **x)
{
    for (int i = 0; i < node->inputs; i++)
        if (node->in[i]->tape == 0 && sb_node_dx(node, i) && sb_node_fresh(node, i))
            node->in[i]->grad_current = false;
    sb_random random = s->random;
    sb_tape inner;
    sb_tape_begin(&inner, SB_RECORD);
    if (s->given)
        sb_tape_random(&inner, s->draws ? &random : NULL);
    sb_tensor *y = s->f(s->context, x);
    bool ok = y && (!tape_wants_grad(tape_open(), y) || sb_backward_from(y, sb_node_dy(node, 0))) &&
              close_gradients(node, x, s->n);
    return (sb_tape_end(&inner) && ok) || sb_fail("%s", sb_error()); /* fails the outer tape too */
}

static bool backward(sb_node *node)
{
    struct segment *s = node->options;
    sb_tensor **x = memory_new((size_t)s->n * sizeof *x);
    bool ok = x != NULL || sb_fail("recompute: out of memory");
    for (int i = 0; ok && i < s->n; i++)
        ok = (x[i] = stand_in(node, i)) != NULL;
    ok = ok && run_again(node, s, x);
    for (int i = 0; x && i < s->n; i++)
        sb_tensor_release(x[i]);
    memory_free(x);
    return ok;
}

/* ---- forward ---- */

struct inputs {
    sb_tensor **tensor;
    int64_t count, room;
};

static bool add_input(struct inputs *in, sb_tensor *t)
{
    if (!memory_room(&in->tensor, in->count, &in->room, sizeof *in->tensor))
        return sb_fail("recompute: out of memory");
    in->tensor[in->count++] = sb_tensor_retain(t);
    return true;
}

static bool is_listed(const struct inputs *in, const sb_tensor *t)
{
    for (int64_t i = 0; i < in->count; i++)
        if (in->tensor[i] == t)
            return true;
    return false;
}

/* Lists the leaves that the open tape's nodes read. */
static bool find_leaves(struct inputs *in)
{
    for (const sb_node *node = tape_open()->last; node; node = node->previous)
        for (int i = 0; i < node->inputs; i++) {
            sb_tensor *t = node->in[i];
            if (!t->requires_grad || is_listed(in, t))
                continue;
            if (t->tape != 0)
                return sb_fail("recompute: its function reads a %s output %s of the outer tape, "
                               "which is not among its inputs",
                               t->origin, tensor_shape(t).text);
            if (!add_input(in, t))
                return false;
        }
    return true;
}

static sb_tensor *run_segment(struct segment *s, size_t bytes, struct inputs *in)
{
    sb_tape inner;
    sb_tape_begin(&inner, SB_NO_RECORD);
    tape_open()->runs_again = true;
    sb_tensor *y = s->f(s->context, in->tensor);
    bool ok = y && find_leaves(in);
    for (int i = 0; ok && i < s->n; i++)
        if (y == in->tensor[i])
            ok = sb_fail("recompute: its function returned input %d as its result", i);
    y = sb_tape_end_keep(&inner, ok ? y : NULL);
    sb_node *node =
        y ? node_new_mixed(&recompute, (int)in->count, in->tensor, 1, s, sizeof *s + bytes) : NULL;
    return node ? node_adopt(node, y) : NULL;
}

static bool list_inputs(struct inputs *in, int n, sb_tensor *const x[])
{
    for (int i = 0; i < n; i++) {
        if (!x[i])
            return fail_null("recompute", "an input");
        if (!tensor_readable("recompute", x[i]) || !add_input(in, x[i]))
            return false;
    }
    return true;
}

sb_tensor *sb_recompute(sb_function f, const void *context, size_t context_bytes, int n,
                        sb_tensor *const x[])
{
    struct open_tape *tape = tape_need("recompute");
    if (!tape)
        return NULL;
    if (!f || !x || (!context && context_bytes > 0))
        return fail_null("recompute", !f ? "f" : !x ? "x" : "context");
    if (n < 1)
        return sb_fail("recompute: n is %d; it needs at least 1 input", n);
    struct inputs in = {0};
    struct segment *s = memory_new(sizeof *s + context_bytes);
    sb_tensor *y = NULL;
    if (!s)
        sb_fail("recompute: out of memory");
    if (s && list_inputs(&in, n, x)) {
        *s = (struct segment){
            .f = f, .n = n, .draws = tape->random != NULL, .given = tape->random_given};
        s->random = tape->random ? *tape->random : s->random;
        if (context_bytes > 0)
            memcpy(s->context, context, context_bytes);
        y = tape->mode == SB_RECORD ? run_segment(s, context_bytes, &in) : f(s->context, in.tensor);
    }
    for (int64_t i = 0; i < in.count; i++)
        sb_tensor_release(in.tensor[i]);
    memory_free(in.tensor);
    memory_free(s);
    return y;
}
