/*
 * The text model: a transformer over symbols with an encoder or none, a decoder or none, and a head
 * that gives logits of symbols or of labels. Encoder-decoders, language models and classifiers say
 * in a struct text_kind what they have of it. Each begins with a struct text_model, which is the
 * `self` of all functions here.
 */
#ifndef SOFTBACK_MODELS_TEXT_MODEL_H
#define SOFTBACK_MODELS_TEXT_MODEL_H

#include "models/classifier.h"
#include "models/field.h"
#include "models/seq2seq.h"
#include "nn/output_head.h"

struct generator;

/* What a kind of text models has, by the names of the parts of a batch that it reads. */
struct text_kind {
    const sb_model_kind *model;          /* its name begins messages */
    const char *source, *source_lengths; /* of the encoder; NULL: there is none */
    const char *target, *target_lengths; /* of the decoder; NULL: there is none */
    const char *expected;                /* the symbols or labels that the loss is of */
    bool labels;                         /* the head gives labels, else symbols of the target */
};

/* The rows of sb_text_model_options: in sb_transformer_options those of the model itself and of its
   training, then its own. */
extern const struct field transformer_fields[], dropout_fields[], tie_fields[], smoothing_fields[],
    own_fields[], text_fields[];

/* Whether a kind has the given options, and they are in range. */
bool text_options_check(const sb_text_model_options *options, const sb_model_kind *kind);
/* Sets the options that a kind does not have to 0. */
void text_options_of_kind(sb_text_model_options *options, const sb_model_kind *kind);

/* The vocabularies of encoder and decoder, and the labels of the head. */
struct text_words {
    sb_vocabulary *source, *target; /* NULL: it lacks this part */
    const char *const *labels;      /* NULL: the head gives symbols of the target */
    int64_t count;                  /* of labels */
};

struct text_model {
    const struct text_kind *kind;
    sb_text_model_options options; /* with every default filled in */
    sb_parameters *weights;
    sb_vocabulary *source, *target;
    sb_labels *labels;
    sb_encoder *encoder;
    sb_decoder *decoder;
    sb_linear_layer hidden;
    sb_output_head output;
};

/* Makes a model of a kind whose struct has a text model alone; to be freed with text_model_free.
   Its parameters are "encoder...", "decoder...", "hidden...", "output.weight", "output.bias". */
void *text_model_new(const struct text_kind *kind, sb_parameters *weights,
                     const struct text_words *words, const sb_text_model_options *options);

/* The same from a description, for `build`: options that it lacks are those given. */
void *text_model_read(const struct text_kind *kind, sb_parameters *weights,
                      sb_text_model_options options, const sb_description *description);

/* The logits that the batch's inputs lead to; weights may be NULL. */
sb_tensor *text_model_logits(const struct text_model *model, const sb_batch *batch,
                             const sb_seq2seq_weights *weights);

/* Whether a source gives symbols and labels the ids that the model has for them; sources and models
   that are not of texts have none. */
bool text_model_fits(const char *owner, const sb_model *model, const sb_source *source);

/* Functions of their kinds, see model.h. */
void text_model_free(void *self);
bool text_model_describe(const void *self, sb_description *description);
sb_tensor *text_model_loss(const void *self, const sb_batch *batch, sb_loss loss);
bool text_model_attentions(const void *self, const sb_batch *batch, sb_attentions *attentions);
bool text_model_generator(const void *self, struct generator *generator);

/* For a generator. */
sb_tensor *text_model_encode(const void *self, sb_tensor *ids, sb_tensor *lengths);
sb_tensor *text_model_output(const void *self, sb_tensor *y);

void example_free(sb_example *example);

/* A source and what an encoder-decoder writes for it. Takes over `written`, which may be NULL after
   a failure. On failure there is nothing to free. */
bool text_example_of_pair(sb_example *example, const struct text_model *model, const char *text,
                          char *written);

/* A text that a model has either an encoder or a decoder for; of a classifier with this label. */
bool text_example_of_text(sb_example *example, const struct text_model *model, const char *text,
                          int64_t label);

#endif
