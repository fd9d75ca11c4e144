/*
 * A drawing of the tape: the graph that backward traverses, from the loss to the weights.
 *
 * Each operation that leads to the loss is a box with its shape, the weights that it reads, and the
 * norm of the gradient that arrived at its result; a line leads from each result to the
 * operations that read it, and is wider for a larger gradient.
 */
#ifndef SOFTBACK_MODELS_DRAWING_H
#define SOFTBACK_MODELS_DRAWING_H

#include "../nn/parameters.h"

typedef enum {
    SB_DRAW_SVG, /* in columns: the encoder, then the rest; opens in a browser */
    SB_DRAW_DOT, /* for Graphviz */
} sb_drawing_format;

/*
 * Runs backward from the loss, as sb_backward does, and draws the open tape. The weights, which may
 * be NULL, give their names; those that begin with "encoder." make the first column.
 *
 * Returns a text to be freed with sb_free; NULL, with a message, when backward fails.
 */
SB_API char *sb_tape_draw(sb_tensor *loss, sb_drawing_format format, const sb_parameters *weights);

/*
 * The numbers of a tensor as SVG: a cell for each, as opaque as the number is large, red where it
 * is negative, with the number as a tooltip, and written in it where there are at most 256 numbers
 * in at most 12 columns. The last two axes are rows and columns, with their indices at the edge;
 * all others count maps, such as the heads of attention weights.
 *
 * Returns a text to be freed with sb_free. Fails above 4,096 numbers, and when backward has freed
 * the data.
 */
SB_API char *sb_tensor_draw(const sb_tensor *t);

#endif
