/* softback explain tape: a small graph as the tape recorded it, and backward through it. */
#include "autograd/tape.h"
#include "autograd/node.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAVES = 4, MOST_NODES = 16 };

static const char *const leaf_names[LEAVES] = {"x", "W_q", "W_k", "W_v"};

/* The nodes of the tape, in the order of recording. */
struct graph {
    sb_tensor *leaf[LEAVES];
    const sb_node *node[MOST_NODES];
    int nodes;
};

static void find_nodes(struct graph *graph)
{
    const struct open_tape *tape = tape_open();
    const sb_node *backwards[MOST_NODES];
    int n = 0;
    for (const sb_node *node = tape->last; node && n < MOST_NODES; node = node->previous)
        if (node->operation && node->outputs > 0)
            backwards[n++] = node;
    for (int i = 0; i < n; i++)
        graph->node[i] = backwards[n - 1 - i];
    graph->nodes = n;
}

/* Self-attention of three words, with the weights in sight, and a loss. */
static sb_tensor *record(struct graph *graph)
{
    enum { L = 3, C = 4 };
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    for (int i = 0; i < LEAVES; i++)
        graph->leaf[i] =
            sb_tensor_requires_grad(normal_numbers(&random, SB_SHAPE(i == 0 ? L : C, C)));
    sb_tensor *x = graph->leaf[0];
    sb_tensor *q = sb_linear(x, graph->leaf[1], NULL);
    sb_tensor *k = sb_linear(x, graph->leaf[2], NULL);
    sb_tensor *v = sb_linear(x, graph->leaf[3], NULL);
    sb_tensor *s = sb_scale(sb_matmul_nt(q, k), 1 / sqrt(C));
    sb_tensor *y = sb_matmul(sb_softmax(s), v);
    return sb_mean_squared_error(y, sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(L, C))),
                                 SB_REDUCE_MEAN);
}

struct names {
    char text[64];
};

/* "x" for a leaf, "#3" for the output of a node, "0" for the constant target. */
static struct names name_of(const struct graph *graph, const sb_tensor *t)
{
    struct names name = {"0"};
    for (int i = 0; i < LEAVES; i++)
        if (graph->leaf[i] == t)
            snprintf(name.text, sizeof name.text, "%s", leaf_names[i]);
    for (int i = 0; i < graph->nodes; i++)
        if (graph->node[i]->out[0] == t)
            snprintf(name.text, sizeof name.text, "#%d", i + 1);
    return name;
}

/* All inputs, or those that have a gradient. */
static struct names inputs_of(const struct graph *graph, const sb_node *node, bool all)
{
    struct names names = {""};
    for (int i = 0, used = 0; i < node->inputs; i++)
        if (all || sb_tensor_needs_grad(node->in[i]))
            used += snprintf(names.text + used, sizeof names.text - (size_t)used, "%s%s",
                             used ? " " : "", name_of(graph, node->in[i]).text);
    return names;
}

static void write_forward(struct page *page, const struct graph *graph)
{
    page_table(page, "recorded", "node | operation | inputs | output");
    for (int i = 0; i < graph->nodes; i++) {
        const sb_node *node = graph->node[i];
        PAGE_ROW(page, cell_word(name_of(graph, node->out[0]).text),
                 cell_word(node->operation->name), cell_word(inputs_of(graph, node, true).text),
                 cell_word(tensor_shape(node->out[0]).text));
    }
}

static double length(const sb_tensor *t)
{
    double sum = 0;
    for (int64_t i = 0; i < sb_tensor_size(t); i++)
        sum += sb_tensor_get(t, i) * sb_tensor_get(t, i);
    return sqrt(sum);
}

static void write_backward(struct page *page, const struct graph *graph, const struct names *inputs)
{
    page_table(page, "backward", "node | operation | |dy| .4 | adds to the gradients of");
    for (int i = graph->nodes - 1; i >= 0; i--) {
        const sb_node *node = graph->node[i];
        PAGE_ROW(page, cell_word(name_of(graph, node->out[0]).text),
                 cell_word(node->operation->name), cell_of(length(sb_tensor_grad(node->out[0]))),
                 cell_word(inputs[i].text));
    }
}

/* Backward frees the nodes' inputs, so their names are noted before. */
static void write_graph(struct page *page, struct graph *graph, sb_tensor *loss)
{
    struct names inputs[MOST_NODES];
    for (int i = 0; i < graph->nodes; i++) {
        sb_keep(graph->node[i]->out[0]);
        inputs[i] = inputs_of(graph, graph->node[i], false);
    }
    page_text(page,
              "FORWARD  Self-attention of three words x, and the mean square of its output as "
              "a loss. Each operation adds a node to the tape: its inputs and its output.");
    write_forward(page, graph);
    bool ok = sb_backward(loss);
    page_need(page, ok);
    if (!ok)
        return;
    page_text(
        page,
        "BACKWARD  The same list from its end; no sorting, no recursion. When a node runs, all "
        "nodes that used its output have added to its dy. The first dy is 1, the gradient "
        "of the loss %.4g with respect to itself.",
        sb_tensor_value(loss));
    write_backward(page, graph, inputs);
    page_text(page, "x is an input three times, for query, key and value, so three nodes add to "
                    "its gradient. Data of intermediates is freed as soon as no node needs it.");
    page_table(page, "leaves", "leaf | shape | |gradient| .4 | #4");
    for (int i = 0; i < LEAVES; i++)
        PAGE_ROW(page, cell_word(leaf_names[i]), cell_word(tensor_shape(graph->leaf[i]).text),
                 cell_of(length(sb_tensor_grad(graph->leaf[i]))));
}

static void write(struct page *page, const struct explain_options *o)
{
    (void)o;
    page_title(page, "a graph as recorded, and backward through it");
    struct graph graph = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = record(&graph);
    page_need(page, loss != NULL);
    if (loss) {
        find_nodes(&graph);
        write_graph(page, &graph, loss);
    }
    page_need(page, sb_tape_end(&tape));
}

const struct topic topic_tape = {"tape", "a small graph as recorded, and backward through it", 0,
                                 NULL, write};
