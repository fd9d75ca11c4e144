#include "models/classifier.h"
#include "autograd/tape.h"
#include "models/kinds.h"
#include "models/text/labels_parts.h"
#include "models/text_model.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <string.h>

struct sb_classifier {
    struct text_model text;
};

static const struct text_kind classifier_text = {.model = &classifier_kind,
                                                 .source = "text",
                                                 .source_lengths = "lengths",
                                                 .expected = "label",
                                                 .labels = true};

sb_classifier *sb_classifier_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                 const char *const *labels, int64_t count,
                                 const sb_classifier_options *options)
{
    if (!weights || !vocabulary || !labels)
        return fail_null("classifier", !weights ? "weights" : vocabulary ? "labels" : "vocabulary");
    const struct text_words words = {.source = vocabulary, .labels = labels, .count = count};
    return text_model_new(&classifier_text, weights, &words, options);
}

void sb_classifier_free(sb_classifier *model)
{
    text_model_free(model);
}

const sb_classifier_options *sb_classifier_options_of(const sb_classifier *model)
{
    return model ? &model->text.options : NULL;
}

sb_vocabulary *sb_classifier_vocabulary(const sb_classifier *model)
{
    return model ? model->text.source : NULL;
}

sb_encoder *sb_classifier_encoder(const sb_classifier *model)
{
    return model ? model->text.encoder : NULL;
}

int64_t sb_classifier_labels(const sb_classifier *model)
{
    return model ? sb_labels_count(model->text.labels) : 0;
}

const char *sb_classifier_label(const sb_classifier *model, int64_t i)
{
    return model ? sb_labels_text(model->text.labels, i) : NULL;
}

sb_tensor *sb_classifier_logits(const sb_classifier *model, const sb_batch *batch)
{
    return model && batch ? text_model_logits(&model->text, batch, NULL)
                          : fail_null("classifier", model ? "batch" : "model");
}

/* ---- labels of other data ---- */

const sb_labels *classifier_labels(const sb_classifier *model)
{
    return model->text.labels;
}

/* Copies a parameter; of the head, which has a row for each label, the rows of the old labels. */
static bool classifier_take(const sb_labels *labels, sb_tensor *to, const sb_labels *old,
                            const sb_tensor *from)
{
    const bool whole = shape_equal(to->rank, to->dim, from->rank, from->dim);
    const int64_t rows = whole ? 1 : sb_labels_count(old);
    const size_t bytes = tensor_bytes(from) / (size_t)rows;
    bool ok = true;
    tensor_note_write(to);
    for (int64_t i = 0; ok && i < rows; i++) {
        const int64_t row = whole ? 0 : sb_labels_find(labels, sb_labels_text(old, i));
        ok = to->device->copy((char *)to->data + (size_t)row * bytes,
                              (const char *)from->data + (size_t)i * bytes, bytes);
    }
    return ok;
}

sb_classifier *classifier_grow(sb_parameters *weights, const sb_classifier *from,
                               const sb_labels *labels)
{
    sb_classifier *m = sb_classifier_for(weights, from->text.source, labels_texts(labels),
                                         sb_labels_count(labels), &from->text.options);
    bool ok = m != NULL;
    for (int64_t i = 0; ok && i < sb_parameters_count(weights); i++)
        ok =
            classifier_take(labels, sb_parameters_get(weights, i), from->text.labels,
                            sb_parameters_find(from->text.weights, sb_parameters_name(weights, i)));
    if (ok)
        return m;
    sb_classifier_free(m);
    return NULL;
}

/* ---- classification ---- */

/* The class with the largest probability, of the softmax of n logits. */
static sb_class classifier_best(const double *logits, int64_t n)
{
    sb_class best = {0};
    double sum = 0;
    for (int64_t i = 1; i < n; i++)
        best.label = logits[i] > logits[best.label] ? i : best.label;
    for (int64_t i = 0; i < n; i++)
        sum += math_exp(logits[i] - logits[best.label]);
    best.probability = 1 / sum;
    return best;
}

static bool classifier_classify_batch(const sb_classifier *m, const sb_batch *batch, double *logits,
                                      sb_class classes[])
{
    const int64_t n = sb_classifier_labels(m);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *y = sb_classifier_logits(m, batch);
    bool ok = y && sb_tensor_read(y, logits);
    ok = sb_tape_end(&tape) && ok;
    for (int64_t i = 0; ok && i < batch->items; i++)
        classes[i] = classifier_best(logits + i * n, n);
    return ok;
}

enum { CLASSIFIED_TOGETHER = 32 };

static bool classifier_classify_some(const sb_classifier *m, const char *const *texts, int64_t n,
                                     double *logits, sb_class classes[])
{
    int32_t *ids[CLASSIFIED_TOGETHER] = {NULL};
    int64_t length[CLASSIFIED_TOGETHER];
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++)
        ok = (ids[i] = sb_vocabulary_encode(m->text.source, texts[i], &length[i], NULL)) != NULL;
    sb_batch *batch =
        ok ? sb_labelled_batch_new(n, (const int32_t *const *)ids, length, NULL, m->text.source)
           : NULL;
    ok = batch && classifier_classify_batch(m, batch, logits, classes);
    sb_batch_free(batch);
    for (int64_t i = 0; i < n; i++)
        sb_free(ids[i]);
    return ok;
}

bool sb_classify(const sb_classifier *model, const char *const *texts, int64_t n,
                 sb_class classes[])
{
    if (!model || (n > 0 && (!texts || !classes)))
        return fail_null("classify", !model ? "model" : texts ? "classes" : "texts");
    double *logits =
        memory_new(CLASSIFIED_TOGETHER * (size_t)sb_classifier_labels(model) * sizeof *logits);
    bool ok = logits || sb_fail("classify: out of memory");
    for (int64_t i = 0; ok && i < n; i += CLASSIFIED_TOGETHER) {
        const int64_t more = n - i < CLASSIFIED_TOGETHER ? n - i : CLASSIFIED_TOGETHER;
        ok = classifier_classify_some(model, texts + i, more, logits, classes + i);
    }
    memory_free(logits);
    return ok;
}

/* ---- the kind ---- */

static void *classifier_build(sb_parameters *weights, const sb_description *d)
{
    return text_model_read(&classifier_text, weights, (sb_text_model_options){0}, d);
}

/* Ranks share the texts. */
static bool classifier_score(const void *self, const void *held_, sb_communicator *ranks,
                             sb_evaluation *evaluation)
{
    const sb_classifier *m = self;
    const sb_pairs *pairs = ((const sb_held_labelled *)held_)->pairs;
    const int rank = sb_communicator_rank(ranks);
    const int64_t n = sb_pairs_count(pairs), first = communicator_share(ranks, rank, n),
                  count = communicator_share(ranks, rank + 1, n) - first;
    sb_class *classes = memory_new((size_t)(count + 1) * sizeof *classes);
    bool ok = classes ? sb_classify(m, sb_pairs_sources(pairs) + first, count, classes)
                      : sb_fail("classifier: out of memory") != NULL;
    double wrong = 0;
    for (int64_t i = 0; ok && i < count; i++) {
        const char *label = sb_classifier_label(m, classes[i].label);
        wrong += strcmp(label, sb_pairs_target(pairs, first + i)) != 0;
    }
    ok = ok && sb_communicator_sum(ranks, SB_F64, 1, &wrong);
    evaluation->items = n;
    evaluation->error = wrong / (double)n;
    memory_free(classes);
    return ok;
}

/* With the label that the model gives the text. */
static bool classifier_example(const void *self, const char *text, const char *target,
                               sb_example *e)
{
    sb_class predicted;
    (void)target;
    return sb_classify(self, &text, 1, &predicted) &&
           text_example_of_text(e, self, text, predicted.label);
}

const sb_model_kind classifier_kind = {.name = "classifier",
                                       .build = classifier_build,
                                       .describe = text_model_describe,
                                       .free = text_model_free,
                                       .loss = text_model_loss,
                                       .score = classifier_score,
                                       .attentions = text_model_attentions,
                                       .example = classifier_example,
                                       .splits = "batch threads heads"};

sb_model sb_classifier_as_model(sb_classifier *model)
{
    return (sb_model){&classifier_kind, model, model ? model->text.weights : NULL};
}
