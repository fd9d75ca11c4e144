/* Backward: visits the nodes from the loss to the leaves. */
#include "autograd/dual_tape.h"
#include "autograd/node.h"
#include "autograd/watch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>

static bool is_repeated(const sb_node *node, int i)
{
    for (int j = 0; j < node->inputs; j++)
        if (j != i && node_target(node, j) == node_target(node, i))
            return true;
    return false;
}

/* The gradients of outputs in one block: views of another such block. */
static bool new_gradients_in_block(sb_tensor *x)
{
    const sb_tensor *values = x->base;
    const int64_t bytes = (int64_t)sb_dtype_bytes(x->dtype);
    sb_tensor *block = tensor_new("backward", x->device, x->dtype, values->rank, values->dim);
    bool ok = block != NULL;
    for (sb_tensor *t = x; ok && !t->grad; t = t->neighbour) {
        const int64_t offset = ((char *)t->data - (char *)values->data) / bytes;
        t->grad = tensor_view("backward", block, offset, t->rank, t->dim);
        ok = t->grad != NULL;
    }
    sb_tensor_release(block);
    return ok;
}

/*
 * Makes sure that input i has a gradient to add to. A new gradient is zeroed, unless the operation
 * can write a fresh one. When a tensor is two inputs of the operation it is always zeroed, since
 * the second part must add to the first.
 */
static bool open_gradient(sb_node *node, int i)
{
    sb_tensor *x = node_target(node, i);
    if (!tape_wants_grad(tape_open(), x) || x->grad_current)
        return true;
    if (!x->grad && x->neighbour && !new_gradients_in_block(x))
        return false;
    if (!x->grad)
        x->grad = tensor_new("backward", x->device, x->dtype, x->rank, x->dim);
    if (!x->grad)
        return false;
    x->grad_current = true;
    if (node->operation->writes_fresh && i < 64 && !is_repeated(node, i))
        node->fresh |= (uint64_t)1 << i;
    else
        return tensor_zero(x->grad);
    return true;
}

static bool has_gradient(const sb_node *node)
{
    for (int i = 0; i < node->made; i++)
        if (node->out[i]->grad_current)
            return true;
    return false;
}

/* Whether a leaf that this node rounds has a gradient, to which readers of the copy may have added
   (node_writes_f32). */
static bool leaf_has_gradient(const sb_node *node)
{
    for (int i = 0; i < node->made; i++)
        if (node->out[i]->rounds && node->out[i]->rounds->grad_current)
            return true;
    return false;
}

/* Backward reads the inputs again: they must be those that forward read. Of some, only the bf16
   values are stored (ops/call.h). */
static bool inputs_ready(const sb_node *node)
{
    for (int i = 0; i < node->inputs; i++) {
        if (tensor_written(node->in[i]) > node->writes)
            return sb_fail("backward: %s: its input %s %s was written after forward had read it; "
                           "write it before forward or after backward",
                           node->operation->name, input_name(node->operation, i).text,
                           tensor_shape(node->in[i]).text);
        if (!tensor_restore(node->in[i]))
            return false;
    }
    return true;
}

static bool step_back(sb_node *node)
{
    if (!node->operation || !node->operation->backward || !has_gradient(node))
        return !leaf_has_gradient(node) || inputs_ready(node);
    if (!inputs_ready(node))
        return false;
    watch_tell(WATCHED_BACKWARD, node);
    for (int i = 0; i < node->inputs; i++)
        if (!open_gradient(node, i))
            return false;
    const struct open_tape *tape = tape_open();
    bool ok = node->operation->backward(node);
    if (!ok || tape->failed || tape_open() != tape) /* also when it ignored a failure */
        return sb_fail("%s: backward failed", node->operation->name);
    return true;
}

/* All operations that read these outputs come later on the tape and are done. A rounded copy goes
   while its original, which earlier nodes may read, is made again. */
static bool free_data(sb_node *node, const sb_tensor *loss)
{
    if (node->inputs == 1 && node->made == 1 && node->in[0]->rounded == node->out[0] &&
        !tensor_restore(node->in[0]))
        return false;
    for (int i = 0; i < node->made; i++) {
        sb_tensor *y = node->out[i];
        if (y->keep)
            continue;
        tensor_drop_grad(y);
        if (y != loss)
            tensor_free_data(y);
    }
    node_free_data(node);
    return true;
}

/* After a failure: clears the gradients of all leaves that the tape reaches, which may be
   incomplete. */
static void forget_gradients(const struct open_tape *tape)
{
    for (sb_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->inputs; i++)
            if (tape_wants_grad(tape, node->in[i]))
                tensor_drop_grad(node->in[i]);
}

static bool may_run(const struct open_tape *tape, const sb_tensor *y)
{
    if (tape->mode != SB_RECORD)
        return sb_fail("backward: the open tape does not record; open it with SB_RECORD");
    if (tape->backward_ran)
        return sb_fail("backward: it ran already on this tape; open a new one for the next step");
    if (!tensor_readable("backward", y))
        return false;
    if (!y->requires_grad)
        return sb_fail("backward: the argument, of shape %s, depends on nothing that requires a "
                       "gradient",
                       tensor_shape(y).text);
    if (!tape_wants_grad(tape, y))
        return sb_fail("backward: the argument, of shape %s, was made on another tape",
                       tensor_shape(y).text);
    return true;
}

enum { AT_ONCE = 1024 }; /* elements that are read or written together: a device is far away */

/* grad = dy (NULL: ones), or grad += dy. */
static bool seed_elements(sb_tensor *grad, const sb_tensor *dy, bool add)
{
    double sum[AT_ONCE], part[AT_ONCE];
    for (int64_t i = 0, n = tensor_size(grad); i < n; i += AT_ONCE) {
        const int64_t count = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (int64_t k = 0; k < count; k++) {
            sum[k] = 0;
            part[k] = 1;
        }
        if ((add && !tensor_read_part(grad, i, count, sum)) ||
            (dy && !tensor_read_part(dy, i, count, part)))
            return false;
        for (int64_t k = 0; k < count; k++)
            sum[k] += part[k];
        if (!tensor_write_part(grad, i, count, sum))
            return false;
    }
    return true;
}

/* Sets y's gradient to dy (NULL: ones); the gradient of a leaf is added to. Shares dy instead of a
   copy when no other reader or writer exists. */
static bool seed(sb_tensor *y, sb_tensor *dy)
{
    bool add = y->grad_current;
    const bool lent = dy && !y->grad && !y->keep && y->tape != 0;
    if (lent)
        y->grad = tensor_view("backward", dy, 0, dy->rank, dy->dim);
    else if (!y->grad)
        y->grad = tensor_new("backward", y->device, y->dtype, y->rank, y->dim);
    if (!y->grad)
        return false;
    y->grad_current = true;
    if (lent)
        return true;
    if (dy && !add)
        return y->device->copy(y->grad->data, dy->data, tensor_bytes(y));
    return seed_elements(y->grad, dy, add);
}

/* Announces the nodes that add to leaves to the listener. */
static void announce(const struct open_tape *tape, const struct listener *listener)
{
    for (const sb_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->inputs; i++)
            if (node->in[i]->tape == 0 && tape_wants_grad(tape, node->in[i]))
                listener->adds(listener->context, node->in[i], node);
}

/* ---- claims: while backward runs, its leaves belong to its thread; the additions of two threads
   to one gradient would mix ---- */

static bool claims_leaf(const struct open_tape *tape, sb_tensor *x)
{
    uint64_t holder = 0;
    if (x->tape != 0 || !tape_wants_grad(tape, x) ||
        atomic_compare_exchange_strong(&x->claimed, &holder, tape->serial) ||
        tape_is_of_thread(holder))
        return true;
    return sb_fail("backward: another thread computes the gradient of a leaf %s; run one backward "
                   "after the other, or give each thread leaves of its own",
                   tensor_shape(x).text);
}

static void claims_return_leaf(const struct open_tape *tape, sb_tensor *x)
{
    uint64_t own = tape->serial;
    atomic_compare_exchange_strong(&x->claimed, &own, 0);
}

static void claims_return(const struct open_tape *tape, sb_tensor *y)
{
    claims_return_leaf(tape, y);
    for (sb_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->inputs; i++)
            claims_return_leaf(tape, node->in[i]);
}

/* Claims all leaves whose gradient backward from y may add to. Fails, and claims none, when another
   thread has one of them. Backward on an inner tape of the same thread shares those of the outer
   one. */
static bool claims_take(struct open_tape *tape, sb_tensor *y)
{
    bool ok = claims_leaf(tape, y);
    for (sb_node *node = tape->last; node && ok; node = node->previous)
        for (int i = 0; i < node->inputs && ok; i++)
            ok = claims_leaf(tape, node->in[i]);
    if (!ok)
        claims_return(tape, y);
    return ok;
}

/* ---- running it ---- */

/* Visits the nodes, which may add to the leaves. */
static bool run_claimed(struct open_tape *tape, sb_tensor *y, sb_tensor *dy,
                        const struct listener *listener)
{
    if (!seed(y, dy))
        return false;
    if (listener && listener->adds)
        announce(tape, listener);
    for (sb_node *node = tape->last; node; node = node->previous) {
        if (listener && listener->begins && has_gradient(node))
            listener->begins(listener->context, node);
        const bool ok = step_back(node) && free_data(node, y);
        if (!ok || (listener && listener->done && !listener->done(listener->context, node))) {
            forget_gradients(tape);
            return false;
        }
    }
    watch_tell(WATCHED_DONE, NULL);
    return true;
}

static bool run(struct open_tape *tape, sb_tensor *y, sb_tensor *dy,
                const struct listener *listener)
{
    tape->backward_ran = true;
    if (!claims_take(tape, y))
        return false;
    tape->visited = true;
    const bool ok = run_claimed(tape, y, dy, listener);
    tape->visited = false;
    claims_return(tape, y);
    return ok;
}

bool backward_heard(sb_tensor *loss, const struct listener *listener)
{
    struct open_tape *tape = tape_need("backward");
    if (!tape)
        return false;
    if (!loss)
        return fail_null("backward", "loss");
    if (tensor_size(loss) != 1)
        return sb_fail("backward: the loss is %s, not one number", tensor_shape(loss).text);
    return may_run(tape, loss) && run(tape, loss, NULL, listener);
}

bool sb_backward(sb_tensor *loss)
{
    return backward_heard(loss, NULL);
}

bool sb_backward_from(sb_tensor *y, sb_tensor *dy)
{
    return backward_from_heard(y, dy, NULL);
}

bool backward_from_heard(sb_tensor *y, sb_tensor *dy, const struct listener *listener)
{
    struct open_tape *tape = tape_need("backward_from");
    if (!tape)
        return false;
    if (!y || !dy)
        return fail_null("backward_from", y ? "dy" : "y");
    dy = y->dtype == SB_DUAL ? twin_of("backward_from", dy) : dy;
    if (!dy || !tensor_readable("backward_from", dy))
        return false;
    if (!shape_equal(y->rank, y->dim, dy->rank, dy->dim) || y->dtype != dy->dtype ||
        y->device != dy->device)
        return sb_fail("backward_from: y is %s of %s on %s, dy is %s of %s on %s; shape, dtype "
                       "and device must be equal",
                       tensor_shape(y).text, sb_dtype_name(y->dtype), y->device->name,
                       tensor_shape(dy).text, sb_dtype_name(dy->dtype), dy->device->name);
    return may_run(tape, y) && run(tape, y, dy, listener);
}

static bool is_finite(const sb_tensor *t)
{
    if (t->data_gone || !sb_dtype_is_real(t->dtype))
        return true;
    double x[AT_ONCE];
    for (int64_t i = 0, n = tensor_size(t); i < n; i += AT_ONCE) {
        const int64_t count = n - i < AT_ONCE ? n - i : AT_ONCE;
        if (!tensor_read_part(t, i, count, x))
            return false;
        for (int64_t k = 0; k < count; k++)
            if (!isfinite(x[k]))
                return false;
    }
    return true;
}

char *sb_tape_find_nonfinite(void)
{
    const struct open_tape *tape = tape_open();
    if (!tape || tape->backward_ran)
        return NULL;
    const sb_node *first = NULL; /* nodes are linked from last to first */
    const sb_tensor *output = NULL;
    for (const sb_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->made; i++)
            if (!is_finite(node->out[i])) {
                first = node;
                output = node->out[i];
            }
    if (!first)
        return NULL;
    char *text = NULL;
    for (int i = 0; i < first->inputs && !text; i++)
        if (!is_finite(first->in[i]))
            text = memory_format("%s input %s %s", output->origin,
                                 input_name(first->operation, i).text,
                                 tensor_shape(first->in[i]).text);
    if (!text)
        text = memory_format("%s output %s", output->origin, tensor_shape(output).text);
    return text ? text : sb_fail("tape_find_nonfinite: out of memory");
}
