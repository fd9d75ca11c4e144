/* Attention weights as pictures. */
#ifndef SOFTBACK_TEACH_REPORT_MAPS_H
#define SOFTBACK_TEACH_REPORT_MAPS_H

#include "teach/explain/text_subject.h"
#include "teach/report/html.h"

/* The weights (1, H, Lq, Lk) of each layer, by kind, while the subject's pair goes through the
   model. */
struct maps {
    const struct subject *subject;
    sb_tensor **layer[3];
};

typedef void maps_draw(struct html *html, const struct maps *maps);

/* Runs the model on the pair and draws; fails where the texts are too long to be drawn. */
bool maps_of(struct html *html, const struct subject *subject, maps_draw *draw);

/* All of them: cross-attention of each written symbol, as lines between two rows of symbols; then
   all layers and heads, small, by kind; and one decoding step at a time. */
bool maps_add(struct html *html, const struct subject *subject);

/* The attention of a text to itself: all layers and heads, small, and their numbers. */
bool maps_add_text(struct html *html, const struct text_subject *subject);

/* The weight of head h, or the mean over all for h < 0. */
double maps_weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j);

/* Cross-attention of the last layer, mean over its heads, without the picture's end tag: as lines
   from the output up to the text, and as a map with a row for each written symbol. */
maps_draw alignment_picture, attention_picture;

#endif
