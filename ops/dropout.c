#include "ops/dropout.h"
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include <math.h>

KERNEL_ROWS(dropout);

bool dropout_check(const char *who, double p)
{
    return check_share(who, "the probability to drop", p);
}

/* A training step that has forgotten the stream would train without dropout. */
static bool dropout_check_stream(const char *who, double p)
{
    const struct open_tape *tape = tape_open();
    return p == 0 || tape->random || tape->random_given || tape_evaluates() ||
           sb_fail("%s: the probability to drop is %g, but the tape records and has no random "
                   "stream; give it one (C: sb_tape_random(&tape, &random), or NULL to drop "
                   "nothing; Python: random=), or set dropout to 0",
                   who, p);
}

bool dropout_next(const char *who, double p, const struct place *place, struct dropout *dropout)
{
    sb_random *random = tape_open()->random;
    const struct plugin_graphs *graphs = sb_device_in_use()->graphs;
    *dropout = (struct dropout){.scale = 1};
    if (!dropout_check_stream(who, p))
        return false;
    if (p > 0 && random)
        *dropout = (struct dropout){random->seed,
                                    random->position++,
                                    (uint32_t)ceil(p * 65536),
                                    1 / (1 - p),
                                    graphs ? graphs->offset : NULL,
                                    *place};
    return true;
}

static bool dropout_backward(sb_node *node)
{
    const sb_tensor *dy = sb_node_dy(node, 0);
    sb_tensor *dx = sb_node_dx(node, 0), *dresidual = sb_node_dx(node, 1);
    const struct dropout_kernels *k = kernel_row(&dropout_rows, dy);
    return k && k->backward(sb_node_options(node), tensor_size(dy), dy->data, dx ? dx->data : NULL,
                            sb_node_fresh(node, 0), dresidual ? dresidual->data : NULL,
                            sb_node_fresh(node, 1));
}

/* In both operations input 0 is the tensor that dropout applies to. */
static const sb_operation dropout = {"dropout", "x", dropout_backward, true, true};
static const sb_operation residual_dropout = {"residual_dropout", "branch x", dropout_backward,
                                              true, true};

/* With two inputs, the kernel adds in[1] to the result of dropout on in[0]. */
static sb_tensor *run(const sb_operation *operation, int inputs, sb_tensor *const in[], double p,
                      sb_sequence along)
{
    const char *who = operation->name;
    struct dropout call = {0};
    struct place place;
    sb_node *node = call_begin(operation, &dropout_rows, inputs, in, 1, &call, sizeof call);
    if (!node || !check_real(who, inputs == 2 ? "branch" : "x", in[0]) || !dropout_check(who, p))
        return NULL;
    if (inputs == 2 && (!check_real(who, "x", in[1]) ||
                        !shape_equal(in[0]->rank, in[0]->dim, in[1]->rank, in[1]->dim)))
        return sb_fail("%s: x is %s, branch is %s: shapes differ", who, tensor_shape(in[1]).text,
                       tensor_shape(in[0]).text);
    if (!place_of_units(who, in[0], along, &place))
        return NULL;
    in = node->in;
    const struct dropout_kernels *k = kernel_row(&dropout_rows, in[0]);
    sb_tensor *y = k ? sb_node_output(node, in[0]->dtype, in[0]->rank, in[0]->dim) : NULL;
    if (!y || !dropout_next(who, p, &place, &call))
        return NULL;
    *(struct dropout *)node->options = call;
    const void *residual = inputs == 2 ? in[1]->data : NULL;
    return call_end(node, k->forward(&call, tensor_size(y), in[0]->data, residual, y->data));
}

sb_tensor *dropout_along(sb_tensor *x, double p, sb_sequence along)
{
    if (!tape_need("dropout"))
        return NULL;
    if ((p > 0 && tape_open()->random) || !x)
        return run(&dropout, 1, &x, p, along);
    bool ok = tensor_readable("dropout", x) && check_real("dropout", "x", x) &&
              dropout_check("dropout", p) && dropout_check_stream("dropout", p);
    return ok ? x : NULL;
}

sb_tensor *sb_dropout(sb_tensor *x, double p)
{
    return dropout_along(x, p, SB_SEQUENCE_SOURCE);
}

sb_tensor *residual_dropout_along(sb_tensor *x, sb_tensor *branch, double p, sb_sequence along)
{
    return run(&residual_dropout, 2, (sb_tensor *[]){branch, x}, p, along);
}

sb_tensor *sb_residual_dropout(sb_tensor *x, sb_tensor *branch, double p)
{
    return residual_dropout_along(x, branch, p, SB_SEQUENCE_SOURCE);
}

/* Examples use the gradient check's random stream if there is one. */
EXAMPLE(example_dropout, sb_dropout(x[0], 0.4))
EXAMPLE(example_residual, sb_residual_dropout(x[0], x[1], 0.25))

OPERATION(dropout, {"dropout", example_dropout, {".", "1", "2", "7", "3x5", "2x3x4", "2x1x3x65"}},
          {"residual_dropout",
           example_residual,
           {". .", "7 7", "3x5 3x5", "=64 64", "63 =63", "2x1x3x65 2x1x3x65"}});
