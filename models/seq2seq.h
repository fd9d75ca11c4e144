/* The encoder-decoder transformer of "Attention Is All You Need" (Vaswani et al. 2017). */
#ifndef SOFTBACK_MODELS_SEQ2SEQ_H
#define SOFTBACK_MODELS_SEQ2SEQ_H

#include "../nn/stack.h"
#include "data/data.h"
#include "model.h"
#include "text/vocabulary.h"
#include "text_options.h"

typedef sb_text_model_options sb_seq2seq_options;

typedef struct sb_seq2seq sb_seq2seq;

/*
 * A model for the vocabularies of the data, or for two given ones, which it retains. It adds its
 * weights to the set: "encoder...", "decoder...", "output.weight", "output.bias". The set must
 * outlive the model. Options may be NULL.
 */
SB_API sb_seq2seq *sb_seq2seq_new(sb_parameters *weights, const sb_data *data,
                                  const sb_seq2seq_options *options);
SB_API sb_seq2seq *sb_seq2seq_for(sb_parameters *weights, sb_vocabulary *source,
                                  sb_vocabulary *target, const sb_seq2seq_options *options);
SB_API void sb_seq2seq_free(sb_seq2seq *model);

/*
 * Writes the model to a safetensors file: its weights under their names, options and vocabularies
 * in the metadata. An existing file is replaced atomically. The program reads such files, and
 * sb_seq2seq_load reads those of `softback train`; it checks everything, as files may be untrusted.
 * The model is made in an empty set of weights, which can only be freed after a failure. All ranks
 * that hold parts of a model save it together.
 */
SB_API bool sb_seq2seq_save(const sb_seq2seq *model, const char *path);
SB_API sb_seq2seq *sb_seq2seq_load(sb_parameters *weights, const char *path);

/* The options with every default filled in, and the model's vocabularies and parameters. */
SB_API const sb_seq2seq_options *sb_seq2seq_options_of(const sb_seq2seq *model);
SB_API sb_vocabulary *sb_seq2seq_source(const sb_seq2seq *model);
SB_API sb_vocabulary *sb_seq2seq_target(const sb_seq2seq *model);
SB_API sb_parameters *sb_seq2seq_parameters(const sb_seq2seq *model);

/* The model for training and files, of the kind "seq2seq". */
SB_API sb_model sb_seq2seq_as_model(sb_seq2seq *model);

/* The mean cross entropy, in nats a symbol, of the batch's targets. */
SB_API sb_tensor *sb_seq2seq_loss(const sb_seq2seq *model, const sb_batch *batch);
/* The sum of what sb_seq2seq_loss is the mean of: for gradient accumulation. */
SB_API sb_tensor *sb_seq2seq_loss_sum(const sb_seq2seq *model, const sb_batch *batch);
/* The sum of the cross entropies without label smoothing: for evaluation. */
SB_API sb_tensor *sb_seq2seq_cost(const sb_seq2seq *model, const sb_batch *batch);

/* Arrays for the attention weights of a forward pass; NULL: they are not kept. */
typedef struct {
    sb_tensor **encoder;        /* (B, H, Ls, Ls) for each encoder layer */
    sb_decoder_weights decoder; /* for each decoder layer */
} sb_seq2seq_weights;

/* The logits (B, Lt, V) of the symbol after each one of target_in. */
SB_API sb_tensor *sb_seq2seq_logits(const sb_seq2seq *model, const sb_batch *batch,
                                    const sb_seq2seq_weights *weights);

/* For decoding. ids (B, Ls), lengths (B) -> memory (B, Ls, C). */
SB_API sb_tensor *sb_seq2seq_encode(const sb_seq2seq *model, sb_tensor *ids, sb_tensor *lengths);
SB_API sb_decoder *sb_seq2seq_decoder(const sb_seq2seq *model);
/* y (..., C) of the decoder -> logits (..., V). */
SB_API sb_tensor *sb_seq2seq_output(const sb_seq2seq *model, sb_tensor *y);

#endif
