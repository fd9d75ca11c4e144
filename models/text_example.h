/* Examples of the kinds of text models. */
#ifndef SOFTBACK_MODELS_TEXT_EXAMPLE_H
#define SOFTBACK_MODELS_TEXT_EXAMPLE_H

#include "models/text_model.h"

void example_free(sb_example *example);

/* A source and what an encoder-decoder writes for it. Takes over `written`, which may be NULL after
   a failure. On failure there is nothing to free. */
bool text_example_of_pair(sb_example *example, const struct text_model *model, const char *text,
                          char *written);

/* A text that a model has either an encoder or a decoder for; of a classifier with this label. */
bool text_example_of_text(sb_example *example, const struct text_model *model, const char *text,
                          int64_t label);

#endif
