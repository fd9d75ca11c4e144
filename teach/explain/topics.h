/* One file each; `write` fills a page. */
#ifndef SOFTBACK_TEACH_EXPLAIN_TOPICS_H
#define SOFTBACK_TEACH_EXPLAIN_TOPICS_H

#include "teach/explain/topic.h"

extern const struct topic topic_softmax, topic_mask, topic_flash, topic_cross_entropy,
    topic_saturation, topic_scaling, topic_saturated_rows, topic_positions, topic_gradcheck,
    topic_hessian, topic_attention, topic_layer_norm, topic_tape, topic_wrong_gradient,
    topic_claims;

#endif
