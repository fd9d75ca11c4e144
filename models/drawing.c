#include "autograd/node.h"
#include "models/drawing_graph.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- the graph ---- */

static bool drawing_is_output(const sb_node *node, const sb_tensor *t)
{
    for (int i = 0; i < node->made; i++)
        if (node->out[i] == t)
            return true;
    return false;
}

/* Whether a result of this node is the loss or an input of a drawn node. */
static bool drawing_is_used(const sb_node *node, const sb_tensor *loss, sb_node *const *drawn,
                            int64_t count)
{
    if (drawing_is_output(node, loss))
        return true;
    for (int64_t n = 0; n < count; n++)
        for (int i = 0; i < drawn[n]->inputs; i++)
            if (drawn[n]->in[i] && drawing_is_output(node, drawn[n]->in[i]))
                return true;
    return false;
}

static const char *drawing_weight_name(const sb_parameters *weights, const sb_tensor *t)
{
    for (int64_t i = 0; weights && i < sb_parameters_count(weights); i++)
        if (sb_parameters_get(weights, i) == t)
            return sb_parameters_name(weights, i);
    return NULL;
}

/* Which drawn node made a tensor; -1: none. */
static int64_t drawing_maker(sb_node *const *drawn, int64_t count, const sb_tensor *t)
{
    for (int64_t n = 0; n < count; n++)
        if (drawing_is_output(drawn[n], t))
            return n;
    return -1;
}

static void drawing_take_inputs(struct drawn_node *to, const sb_node *node, sb_node *const *drawn,
                                int64_t before, const sb_parameters *weights)
{
    for (int i = 0; i < node->inputs; i++) {
        const int64_t from = node->in[i] ? drawing_maker(drawn, before, node->in[i]) : -1;
        const char *name = node->in[i] ? drawing_weight_name(weights, node->in[i]) : NULL;
        if (from >= 0 && to->inputs < DRAWN_INPUTS)
            to->from[to->inputs++] = from;
        else if (name && to->weights < DRAWN_INPUTS)
            to->weight[to->weights++] = name;
    }
}

/* The nodes that lead to the loss, the last one first. NULL without memory. */
static sb_node **drawing_nodes_of(const struct open_tape *tape, const sb_tensor *loss,
                                  int64_t *count)
{
    int64_t all = 0;
    for (const sb_node *node = tape->last; node; node = node->previous)
        all++;
    sb_node **drawn = memory_new((size_t)(all + 1) * sizeof *drawn);
    *count = 0;
    for (sb_node *node = tape->last; drawn && node; node = node->previous)
        if (node->operation && drawing_is_used(node, loss, drawn, *count))
            drawn[(*count)++] = node;
    return drawn;
}

static bool drawing_take_graph(struct drawing *d, const struct open_tape *tape,
                               const sb_tensor *loss, const sb_parameters *weights)
{
    int64_t count;
    sb_node **drawn = drawing_nodes_of(tape, loss, &count);
    d->node = memory_new((size_t)(count + 1) * sizeof *d->node);
    if (!drawn || !d->node) {
        memory_free(drawn);
        return sb_fail("tape_draw: out of memory");
    }
    for (int64_t n = 0; n < count / 2; n++) { /* the first one first */
        sb_node *other = drawn[n];
        drawn[n] = drawn[count - 1 - n];
        drawn[count - 1 - n] = other;
    }
    for (int64_t n = 0; n < count; n++) {
        struct drawn_node *to = &d->node[n];
        *to = (struct drawn_node){.operation = drawn[n]->operation->name, .y = drawn[n]->out[0]};
        to->shape = shape_text(to->y->rank, to->y->dim);
        drawing_take_inputs(to, drawn[n], drawn, n, weights);
        if (to->y->requires_grad)
            sb_keep(to->y);
    }
    d->count = count;
    memory_free(drawn);
    return true;
}

/* ---- the layout ---- */

static bool drawing_reads_encoder(const struct drawn_node *node)
{
    for (int i = 0; i < node->weights; i++)
        if (strncmp(node->weight[i], "encoder.", 8) == 0)
            return true;
    return false;
}

/* Nodes that read the encoder's weights, and all before these, are in the first column. */
static void drawing_place(struct drawing *d)
{
    int64_t last = -1;
    for (int64_t n = 0; n < d->count; n++)
        last = drawing_reads_encoder(&d->node[n]) ? n : last;
    for (int64_t n = 0; n < d->count; n++)
        d->node[n].column = last >= 0;
    if (last >= 0)
        d->node[last].column = 0;
    for (int64_t n = last; n >= 0; n--)
        for (int i = 0; d->node[n].column == 0 && i < d->node[n].inputs; i++)
            d->node[d->node[n].from[i]].column = 0;
    for (int64_t n = 0; n < d->count; n++)
        d->node[n].row = d->rows[d->node[n].column]++;
}

/* ---- the gradients ---- */

static double drawing_norm_of(const sb_tensor *dy)
{
    const int64_t size = sb_tensor_size(dy);
    double sum = 0, *values = memory_new((size_t)(size + 1) * sizeof *values);
    const bool ok = values && sb_tensor_read(dy, values);
    for (int64_t i = 0; ok && i < size; i++)
        sum += values[i] * values[i];
    memory_free(values);
    return ok ? sqrt(sum) : -1;
}

static void drawing_take_norms(struct drawing *d)
{
    for (int64_t n = 0; n < d->count; n++) {
        const sb_tensor *dy = sb_tensor_grad(d->node[n].y);
        d->node[n].norm = dy ? drawing_norm_of(dy) : -1;
        d->largest = fmax(d->largest, d->node[n].norm);
    }
}

/* ---- the text ---- */

void drawing_print_escaped(struct drawing *d, const char *text, size_t size)
{
    buffer_escape(&d->text, text, size, "&<>\"\\");
}

double drawing_width(const struct drawing *d, double norm)
{
    if (!(norm > 0) || !(d->largest > 0))
        return 1;
    const double decades = math_log(norm / d->largest) / math_log(10);
    return decades < -5 ? 1 : 6 + decades;
}

static char *drawing_drawn(struct drawing *d, drawing_write *write)
{
    drawing_take_norms(d);
    write(d);
    char *text = buffer_take(&d->text);
    return text ? text : sb_fail("tape_draw: out of memory");
}

char *sb_tape_draw(sb_tensor *loss, sb_drawing_format format, const sb_parameters *weights)
{
    if (!loss)
        return fail_null("tape_draw", "loss");
    if (format != SB_DRAW_SVG && format != SB_DRAW_DOT)
        return sb_fail("tape_draw: format %d is neither SB_DRAW_SVG nor SB_DRAW_DOT", (int)format);
    return drawing_of_tape(loss, format == SB_DRAW_SVG ? drawing_svg : drawing_dot, weights, NULL);
}

char *drawing_of_tape(sb_tensor *loss, drawing_write *write, const sb_parameters *weights,
                      drawing_describe *describe)
{
    const struct open_tape *tape = tape_need("tape_draw");
    struct drawing d = {.describe = describe};
    char *text = NULL;
    if (tape && drawing_take_graph(&d, tape, loss, weights)) {
        drawing_place(&d);
        text = sb_backward(loss) ? drawing_drawn(&d, write) : NULL;
    }
    buffer_free(&d.text);
    memory_free(d.node);
    return text;
}
