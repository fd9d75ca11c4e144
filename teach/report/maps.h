/* Attention weights as pictures. */
#ifndef SOFTBACK_TEACH_REPORT_MAPS_H
#define SOFTBACK_TEACH_REPORT_MAPS_H

#include "teach/explain/model.h"
#include "teach/report/html.h"

/* The weights (1, H, Lq, Lk) of each layer, while the subject's text goes through the model. */
struct maps {
    const struct subject *subject;
    const sb_attentions *found;
    const double *evenness; /* of each head of all maps */
};

/* Those of a layer, from 0, of one of the subject's attentions. */
const sb_tensor *maps_layer(const struct maps *maps, const sb_example_attention *at, int layer);

typedef void maps_draw(struct html *html, const struct maps *maps);

/* Runs the model on the text and draws; fails where the texts are too long to be drawn. */
bool maps_of(struct html *html, const struct subject *subject, maps_draw *draw);

/* Whether the text, and what is written for it, are short enough. */
bool maps_have_room(const sb_example_axis *symbols);

/* All layers and heads, small, by attention; cross-attention of each written symbol also as lines
   between two rows of symbols, and one decoding step at a time. */
maps_draw maps_all;

/* Cross-attention of the last layer, mean over its heads, without the picture's end tag: as lines
   from the output up to the text, and as a map with a row for each written symbol. */
maps_draw alignment_picture, attention_picture;

#endif
