/* What a drawing shows: the operations that lead to a loss, in the order in which they ran. */
#ifndef SOFTBACK_MODELS_DRAWING_GRAPH_H
#define SOFTBACK_MODELS_DRAWING_GRAPH_H

#include "models/drawing.h"
#include "tensor/buffer.h"
#include "tensor/shape.h"

enum { DRAWN_INPUTS = 8, DRAWN_COLUMNS = 2 };

struct drawn_node {
    const char *operation;
    sb_tensor *y; /* its first result; kept, so that its gradient can be read */
    struct shape_text shape;
    int inputs, weights;
    int64_t from[DRAWN_INPUTS]; /* the nodes whose results it takes */
    const char *weight[DRAWN_INPUTS];
    int column, row;
    double norm; /* of the gradient that arrived at y; negative: none */
};

struct drawing;

/* Prints a description of an operation, such as its formulas. */
typedef void drawing_describe(struct drawing *d, const char *operation);

struct drawing {
    drawing_describe *describe; /* or NULL */
    int64_t count;
    struct drawn_node *node;
    int rows[DRAWN_COLUMNS];
    double largest; /* of the norms */
    struct buffer text;
    bool in_page; /* drawing_svg omits its CSS rules, which the page has */
};

/* Prints the drawing: drawing_svg, drawing_dot, or a function that calls one of these. */
typedef void drawing_write(struct drawing *d);

/* sb_tape_draw, with descriptions of operations in tooltips. */
char *drawing_of_tape(sb_tensor *loss, drawing_write *write, const sb_parameters *weights,
                      drawing_describe *describe);

/* Appends a text, escaped for XML and Graphviz. */
void drawing_print_escaped(struct drawing *d, const char *text, size_t size);

/* The width of a line: six for the largest gradient, one less for each power of ten below, one at
   least. */
double drawing_width(const struct drawing *d, double norm);

void drawing_svg(struct drawing *d);
extern const char drawing_svg_rules[]; /* CSS */
void drawing_dot(struct drawing *d);

#endif
