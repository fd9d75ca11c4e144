/* The tagger: an encoder that gives each symbol of a text a tag, one of the target's symbols. */
#ifndef SOFTBACK_MODELS_TAGGER_H
#define SOFTBACK_MODELS_TAGGER_H

#include "models/text_model.h"

extern const sb_model_kind tagger_kind;

/* As sb_data_new, of pairs of a text and its tags, one for each symbol; but `target_out` is
   (B, Ls), the tags and then -1. The kind's score is on an epoch of them, an sb_source. */
sb_data *tagger_data_new(const sb_pairs *pairs, sb_vocabulary *source, sb_vocabulary *target,
                         const sb_data_options *options);

#endif
