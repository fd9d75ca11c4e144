#include "autograd/node.h"
#include "autograd/dual_tape.h"
#include "autograd/watch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct input_name input_name(const sb_operation *operation, int i)
{
    struct input_name name = {""};
    const char *from = operation->inputs ? operation->inputs : "input";
    for (const char *space; i > 0 && (space = strchr(from, ' ')); i--)
        from = space + 1;
    int size = (int)strcspn(from, " []");
    if (from[size] == '[') /* "x[]": the remaining inputs are an array */
        snprintf(name.text, sizeof name.text, "%.*s[%d]", size, from, i);
    else
        snprintf(name.text, sizeof name.text, "%.*s", size, from);
    return name;
}

/* On a dual tape a f64 tensor is as good as its dual twin. */
static bool agree(sb_dtype a, sb_dtype b)
{
    const bool twins = tape_open()->twins != NULL;
    return a == b || (twins && (a == SB_F64 || b == SB_F64) && (a == SB_DUAL || b == SB_DUAL));
}

static bool check_inputs(const sb_operation *operation, int inputs, sb_tensor *const in[],
                         bool mixed)
{
    const char *who = operation->name;
    int real = -1; /* the first input of a real dtype */
    for (int i = 0; i < inputs; i++) {
        if (!in[i])
            return fail_null(who, input_name(operation, i).text);
        if (!tensor_readable(who, in[i]))
            return false;
        if (in[i]->device != in[0]->device)
            return sb_fail("%s: %s is on %s, %s on %s", who, input_name(operation, 0).text,
                           in[0]->device->name, input_name(operation, i).text, in[i]->device->name);
        if (mixed || !sb_dtype_is_real(in[i]->dtype))
            continue;
        if (real < 0)
            real = i;
        if (!agree(in[i]->dtype, in[real]->dtype))
            return sb_fail("%s: %s is %s, %s is %s: dtypes differ", who,
                           input_name(operation, real).text, sb_dtype_name(in[real]->dtype),
                           input_name(operation, i).text, sb_dtype_name(in[i]->dtype));
    }
    return true;
}

/* One block holds the node, its arrays and a copy of the options. */
static sb_node *allocate(int inputs, int outputs, size_t options_bytes)
{
    size_t arrays = (size_t)(inputs + outputs) * sizeof(sb_tensor *);
    size_t before_options = (sizeof(sb_node) + arrays + 15) / 16 * 16;
    sb_node *node = memory_new(before_options + options_bytes);
    if (!node)
        return NULL;
    node->in = (sb_tensor **)(void *)(node + 1);
    node->out = node->in + inputs;
    node->options = (char *)node + before_options;
    node->outputs = outputs;
    return node;
}

static void push(struct open_tape *tape, sb_node *node)
{
    node->previous = tape->last;
    tape->last = node;
}

/* Retains the inputs; of f64 tensors on a dual tape, their twins. */
static bool take_inputs(sb_node *node, int inputs, sb_tensor *const in[])
{
    for (int i = 0; i < inputs; i++) {
        sb_tensor *t = twin_of(node->operation->name, in[i]);
        if (!t)
            return false;
        if (t->dtype == SB_DUAL && !node->operation->dual)
            return sb_fail("%s: no exact derivative; set `dual` in its sb_operation when it "
                           "computes dual numbers",
                           node->operation->name);
        node->in[node->inputs++] = sb_tensor_retain(t);
    }
    return true;
}

static sb_node *new_node(const sb_operation *operation, int inputs, sb_tensor *const in[],
                         int outputs, const void *options, size_t options_bytes, bool mixed)
{
    if (!operation || (inputs > 0 && !in))
        return fail_null("node_new", operation ? "in" : "operation");
    if (inputs < 0 || outputs < 0)
        return sb_fail("%s: inputs is %d and outputs is %d; both must be at least 0",
                       operation->name, inputs, outputs);
    if (options_bytes > 0 && !options)
        return fail_null(operation->name, "options");
    struct open_tape *tape = tape_need(operation->name);
    if (!tape || !check_inputs(operation, inputs, in, mixed))
        return NULL;
    sb_node *node = allocate(inputs, outputs, options_bytes);
    if (!node)
        return sb_fail("%s: out of memory", operation->name);
    node->operation = operation;
    node->writes = tensor_writes();
    if (!take_inputs(node, inputs, in)) { /* it is not on the tape yet */
        for (int i = 0; i < node->inputs; i++)
            sb_tensor_release(node->in[i]);
        memory_free(node);
        return NULL;
    }
    if (options_bytes > 0)
        memcpy(node->options, options, options_bytes);
    push(tape, node);
    watch_tell(WATCHED_FORWARD, node);
    return node;
}

sb_node *sb_node_new(const sb_operation *operation, int inputs, sb_tensor *const in[], int outputs,
                     const void *options, size_t options_bytes)
{
    return new_node(operation, inputs, in, outputs, options, options_bytes, false);
}

sb_node *node_new_mixed(const sb_operation *operation, int inputs, sb_tensor *const in[],
                        int outputs, const void *options, size_t options_bytes)
{
    return new_node(operation, inputs, in, outputs, options, options_bytes, true);
}

static sb_tensor *attach_output(sb_node *node, sb_tensor *y)
{
    if (!y)
        return NULL;
    const struct open_tape *tape = tape_open();
    y->origin = node->operation->name;
    y->tape = tape->serial;
    for (int i = 0; i < node->inputs && node->operation->backward; i++)
        y->requires_grad |= tape_wants_grad(tape, node->in[i]);
    y->requires_grad &= sb_dtype_is_real(y->dtype);
    node->out[node->made++] = y;
    return y;
}

sb_tensor *sb_node_output(sb_node *node, sb_dtype dtype, int rank, const int64_t *dim)
{
    if (!node)
        return fail_null("node_output", "node");
    if (node->made == node->outputs)
        return sb_fail("%s: it has %d outputs already", node->operation->name, node->made);
    const sb_device *device = node->inputs > 0 ? node->in[0]->device : sb_device_in_use();
    return attach_output(node, tensor_new(node->operation->name, device, dtype, rank, dim));
}

sb_tensor *node_view(sb_node *node, int64_t offset, int rank, const int64_t *dim)
{
    return attach_output(node, tensor_view(node->operation->name, node->in[0], offset, rank, dim));
}

sb_tensor *node_block_output(sb_node *node, sb_tensor *block, int64_t offset, int rank,
                             const int64_t *dim)
{
    sb_tensor *last = node->made > 0 ? node->out[node->made - 1] : NULL;
    sb_tensor *y = tensor_view(node->operation->name, block, offset, rank, dim);
    if (!attach_output(node, y))
        return NULL;
    y->neighbour = last ? last->neighbour : y;
    if (last)
        last->neighbour = y;
    return y;
}

void node_block_close(sb_tensor *block)
{
    if (block)
        tensor_free_data(block);
    sb_tensor_release(block);
}

bool node_forward_gradient(sb_node *node)
{
    sb_tensor *x = node->in[0], *y = node->out[0];
    if (!sb_node_fresh(node, 0) || x->tape == 0 || y->keep || !y->grad || y->grad->base)
        return false;
    sb_tensor_release(x->grad);
    x->grad = y->grad;
    x->grad->rank = x->rank;
    memcpy(x->grad->dim, x->dim, sizeof x->dim);
    y->grad = NULL;
    y->grad_current = false;
    return true;
}

sb_tensor *node_adopt(sb_node *node, sb_tensor *y)
{
    return attach_output(node, sb_tensor_retain(y));
}

sb_tensor *sb_node_save(sb_node *node, sb_tensor *t)
{
    if (!node || !t)
        return fail_null("node_save", node ? "t" : "node");
    if (node->saves == NODE_SAVED) {
        sb_tensor_release(t);
        return sb_fail("%s: it saves more than %d tensors", node->operation->name, NODE_SAVED);
    }
    return node->saved[node->saves++] = t;
}

void *tape_own_object(void *object, void (*release)(void *object), const char *who)
{
    if (!object)
        return NULL;
    struct open_tape *tape = tape_need(who);
    sb_node *node = tape ? allocate(0, 0, 0) : NULL;
    if (!node) {
        if (tape)
            sb_fail("%s: out of memory", who);
        release(object);
        return NULL;
    }
    node->release = release;
    node->object = object;
    push(tape, node);
    return object;
}

static void release_tensor(void *t)
{
    sb_tensor_release(t);
}

sb_tensor *sb_tape_own(sb_tensor *t)
{
    return t ? tape_own_object(t, release_tensor, "tape_own") : fail_null("tape_own", "t");
}

void node_free_data(sb_node *node)
{
    int leaves = 0;
    for (int i = 0; i < node->inputs; i++) {
        sb_tensor *x = node->in[i];
        if (x->tape == 0 && x->requires_grad)
            node->in[leaves++] = x;
        else
            sb_tensor_release(x);
    }
    for (int i = 0; i < node->saves; i++)
        sb_tensor_release(node->saved[i]);
    node->inputs = leaves;
    node->saves = 0;
}

sb_tensor *sb_node_input(const sb_node *node, int i)
{
    return node && i >= 0 && i < node->inputs ? node->in[i] : NULL;
}

sb_tensor *sb_node_result(const sb_node *node, int i)
{
    return node && i >= 0 && i < node->made ? node->out[i] : NULL;
}

sb_tensor *sb_node_saved(const sb_node *node, int i)
{
    return node && i >= 0 && i < node->saves ? node->saved[i] : NULL;
}

const void *sb_node_options(const sb_node *node)
{
    return node ? node->options : NULL;
}

sb_tensor *sb_node_dy(const sb_node *node, int i)
{
    return sb_tensor_grad(sb_node_result(node, i));
}

void node_writes_f32(sb_node *node, int first)
{
    node->f32 = ~(uint64_t)0 << first;
}

sb_tensor *node_target(const sb_node *node, int i)
{
    sb_tensor *x = node->in[i];
    const bool copy = i < 64 && node->f32 >> i & 1 && x->rounds && !x->keep;
    return copy && tape_wants_grad(tape_open(), x) && tape_wants_grad(tape_open(), x->rounds)
               ? x->rounds
               : x;
}

sb_tensor *sb_node_dx(const sb_node *node, int i)
{
    sb_tensor *x = sb_node_input(node, i) ? node_target(node, i) : NULL;
    return x && tape_wants_grad(tape_open(), x) ? sb_tensor_grad(x) : NULL;
}

bool sb_node_fresh(const sb_node *node, int i)
{
    return node && i >= 0 && i < 64 && (node->fresh >> i & 1);
}
