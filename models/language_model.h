/* The language model: a decoder without an encoder, which predicts each symbol from those before
   it (Radford et al. 2018). */
#ifndef SOFTBACK_MODELS_LANGUAGE_MODEL_H
#define SOFTBACK_MODELS_LANGUAGE_MODEL_H

#include "../nn/stack.h"
#include "data/data.h"
#include "decoding/decoding.h"
#include "model.h"
#include "text/vocabulary.h"
#include "text_options.h"

typedef sb_text_model_options sb_language_model_options;

typedef struct sb_language_model sb_language_model;

/*
 * A model for a vocabulary, which it retains, or for that of the data's targets. It adds its
 * weights to the set: "decoder...", "output.weight", "output.bias". The set must outlive the
 * model. Options may be NULL.
 */
SB_API sb_language_model *sb_language_model_new(sb_parameters *weights, const sb_data *data,
                                                const sb_language_model_options *options);
SB_API sb_language_model *sb_language_model_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                                const sb_language_model_options *options);
SB_API void sb_language_model_free(sb_language_model *model);

/* The options with every default filled in, and the model's vocabulary and parameters. */
SB_API const sb_language_model_options *
sb_language_model_options_of(const sb_language_model *model);
SB_API sb_vocabulary *sb_language_model_vocabulary(const sb_language_model *model);
SB_API sb_parameters *sb_language_model_parameters(const sb_language_model *model);

/*
 * ids (B, L) of i32 hold a text in each row, with SB_SYMBOL_END where it ends, and negative ids
 * after it: as `target_out` of a batch. Each symbol is predicted from those before it, the first
 * from "begin".
 *
 * loss: the mean cross entropy, in nats a symbol, of the ids that are not negative.
 * logits: (B, L, V); those at position t are of symbol t.
 */
SB_API sb_tensor *sb_language_model_loss(const sb_language_model *model, sb_tensor *ids);
SB_API sb_tensor *sb_language_model_logits(const sb_language_model *model, sb_tensor *ids);

/*
 * Loss and logits of windows of text (data/windows.h), with nothing put before them: input (B, L)
 * of i32 is what is read, and targets (B, L) what follows at each place; negative ones do not
 * count. The logits at position t, (B, L, V), are of the symbol that follows input t.
 */
SB_API sb_tensor *sb_language_model_window_loss(const sb_language_model *model, sb_tensor *input,
                                                sb_tensor *targets);
SB_API sb_tensor *sb_language_model_window_logits(const sb_language_model *model, sb_tensor *input);

/* For loops of your own: y (B, L, C) of the decoder for what it reads, and y (..., C) -> logits
   (..., V). */
SB_API sb_decoder *sb_language_model_decoder(const sb_language_model *model);
SB_API sb_tensor *sb_language_model_output(const sb_language_model *model, sb_tensor *y);

/* Writes the model to a file, and reads one that may come from anywhere into an empty set of
   weights, which after a failure can only be freed; as sb_model_save and sb_model_load do. */
SB_API bool sb_language_model_save(const sb_language_model *model, const char *path);
SB_API sb_language_model *sb_language_model_load(sb_parameters *weights, const char *path);

/* The model for training and files, of the kind "language_model". It learns windows of text, or the
   targets of sentence pairs, and ignores their sources. */
SB_API sb_model sb_language_model_as_model(sb_language_model *model);

/* The model's continuation of a prompt (which may be empty), without the prompt, to be freed with
   sb_free. Options as in decoding.h, where "source" is the prompt. */
SB_API char *sb_continue(const sb_language_model *model, const char *prompt,
                         const sb_decoding_options *options);

/* The continuations of n prompts, as symbols with their scores, to be freed with sb_decoded_free.
 */
SB_API bool sb_continue_texts(const sb_language_model *model, const char *const *prompts, int64_t n,
                              const sb_decoding_options *options, sb_decoded outputs[]);

#endif
