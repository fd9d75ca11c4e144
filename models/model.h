/*
 * A model for training, evaluation, decoding and files: a kind, which is a table of functions, the
 * model itself, and its weights. A program may define kinds of its own.
 */
#ifndef SOFTBACK_MODELS_MODEL_H
#define SOFTBACK_MODELS_MODEL_H

#include "../nn/parameters.h"
#include "data/source.h"
#include "decoding/decoding.h"
#include "description.h"
#include "example.h"

typedef enum {
    SB_LOSS_MEAN, /* over the targets of the batch */
    SB_LOSS_SUM,  /* the sum of which that is the mean: for gradient accumulation */
    SB_LOSS_COST, /* the sum for evaluation: without label smoothing and the like */
} sb_loss;

/* The weights of one attention of one layer. */
typedef struct {
    sb_tensor *weights;        /* (B, H, Lq, Lk) */
    sb_tensor *queries, *keys; /* (B): how many positions of each item count */
    bool causal;
} sb_attention_map;

/* All attention weights of a forward pass, on the open tape. */
typedef struct {
    sb_tensor *loss; /* the mean cost of the batch */
    int maps;
    sb_attention_map *map; /* an array for sb_free */
} sb_attentions;

/* The results of a model on data that it was not trained on; NAN: not measured. */
typedef struct {
    double loss;  /* the mean cost, in nats a target */
    double error; /* the share of items that it gets wrong */
    double
        unit_error; /* of texts: edits that make them the references, as a share of their units */
    double bleu;    /* of texts: BLEU, in per cent */
    int64_t items;  /* that `error` is a share of; of texts, those of different sources */
} sb_evaluation;

struct generator;

typedef struct {
    const char *name; /* "seq2seq", as in files */

    /* For files. Makes a model and adds its weights to the set; NULL: a failure. The description
       may be untrusted. */
    void *(*build)(sb_parameters *weights, const sb_description *description);
    /* Writes the description that `build` needs. */
    bool (*describe)(const void *self, sb_description *description);
    void (*free)(void *self);

    /* The loss of a batch on the open tape, a tensor of one element. When ranks share batches,
       each gets some of the items, or pieces of their sequences, and the sums of all ranks add up
       to that of the whole batch. On a device with graphs a step is recorded once for each shape of
       the parts and then replayed, so which operations run must not depend on the values in them;
       train a loss that needs this with SB_GRAPHS_OFF. */
    sb_tensor *(*loss)(const void *self, const sb_batch *batch, sb_loss loss);

    /* The rest may be NULL. `held` is the held-out data that the ranks score together; `score` sets
       what it measures. */
    bool (*score)(const void *self, const void *held, sb_communicator *ranks,
                  sb_evaluation *evaluation);
    bool (*attentions)(const void *self, const sb_batch *batch, sb_attentions *attentions);
    /* A text for which `attentions` are drawn, with the names of its rows and columns. `target`,
       for models that write a text, is given or NULL: the model's own. */
    bool (*example)(const void *self, const char *text, const char *target, sb_example *example);
    bool (*generator)(const void *self, struct generator *generator); /* internal */
    const char *splits; /* over ranks: some of "batch heads sequence"; and "threads", if several may
                           call `loss` at the same time (nn/shares.h); NULL: "batch threads" */
} sb_model_kind;

typedef struct {
    const sb_model_kind *kind;
    void *self;
    sb_parameters *weights; /* must outlive the model */
} sb_model;

/* A kind of the library by its name; fails, listing the names, when there is none. */
SB_API const sb_model_kind *sb_model_kind_find(const char *name);

/* Makes a model from its description, in a set of weights. On failure there is nothing to free. */
SB_API bool sb_model_build(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                           const sb_description *description);
SB_API void sb_model_free(sb_model *model); /* not the weights */

/* A description of the model, to be freed. */
SB_API sb_description *sb_model_describe(const sb_model *model);

/* The model's outputs for n texts, sources or prompts, as symbols with their scores, to be freed
   with sb_decoded_free. Options may be NULL: greedy. Fails when the kind has no generator. */
SB_API bool sb_model_decode(const sb_model *model, const char *const *texts, int64_t n,
                            const sb_decoding_options *options, sb_decoded outputs[]);

#endif
