#include "models/classifier.h"
#include "autograd/tape.h"
#include "models/classifier_kind.h"
#include "models/example_texts.h"
#include "models/text/labels.h"
#include "models/transformer_settings.h"
#include "nn/flat.h"
#include "nn/output_head.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <string.h>

struct sb_classifier {
    sb_classifier_options options;
    sb_parameters *weights;
    sb_vocabulary *vocabulary;
    sb_labels *labels;
    sb_encoder *encoder;
    sb_output_head output;
};

static bool classifier_check(const sb_classifier_options *o)
{
    if ((unsigned)o->pooling > SB_POOLING_FIRST)
        return sb_fail("classifier: there is no pooling %d", (int)o->pooling);
    return (o->label_smoothing >= 0 && o->label_smoothing < 1) ||
           sb_fail("classifier: label_smoothing is %g; it must be in [0, 1)", o->label_smoothing);
}

static bool classifier_build(sb_classifier *m, const char *const *labels, int64_t count)
{
    const sb_transformer_options *o = &m->options.transformer;
    m->labels = sb_labels_new(labels, count);
    if (m->labels && sb_labels_count(m->labels) != count)
        return sb_fail("classifier: of %lld labels only %lld are different", (long long)count,
                       (long long)sb_labels_count(m->labels));
    m->encoder = m->labels
                     ? sb_encoder_new(m->weights, "encoder", sb_vocabulary_size(m->vocabulary), o)
                     : NULL;
    return m->encoder && sb_output_head_init(&m->output, m->weights, "output", o->width, count,
                                             sb_transformer_output_bias(o), NULL);
}

sb_classifier *sb_classifier_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                 const char *const *labels, int64_t count,
                                 const sb_classifier_options *options)
{
    if (!weights || !vocabulary || !labels)
        return fail_null("classifier", !weights ? "weights" : vocabulary ? "labels" : "vocabulary");
    sb_classifier_options o = options ? *options : (sb_classifier_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer) || !classifier_check(&o))
        return NULL;
    sb_classifier *m = memory_new(sizeof *m);
    if (!m)
        return sb_fail("classifier: out of memory");
    *m = (sb_classifier){.options = o, .weights = weights};
    m->vocabulary = sb_vocabulary_retain(vocabulary);
    const struct parameters_mark mark = parameters_mark(weights);
    if (classifier_build(m, labels, count))
        return m;
    sb_classifier_free(m);
    parameters_return(weights, &mark);
    return NULL;
}

void sb_classifier_free(sb_classifier *model)
{
    if (!model)
        return;
    sb_encoder_free(model->encoder);
    sb_labels_free(model->labels);
    sb_vocabulary_release(model->vocabulary);
    memory_free(model);
}

const sb_classifier_options *sb_classifier_options_of(const sb_classifier *model)
{
    return model ? &model->options : NULL;
}

sb_vocabulary *sb_classifier_vocabulary(const sb_classifier *model)
{
    return model ? model->vocabulary : NULL;
}

int64_t sb_classifier_labels(const sb_classifier *model)
{
    return model ? sb_labels_count(model->labels) : 0;
}

const char *sb_classifier_label(const sb_classifier *model, int64_t i)
{
    return model ? sb_labels_text(model->labels, i) : NULL;
}

/* ---- forward ---- */

/* (B, L, C) -> (B, C). The mean is a product with the weights of the positions, (B, 1, L). */
static sb_tensor *classifier_pool(const sb_classifier *m, sb_tensor *y, const sb_batch *batch)
{
    const int64_t B = sb_tensor_dim(y, 0), L = sb_tensor_dim(y, 1), C = sb_tensor_dim(y, 2);
    if (m->options.pooling == SB_POOLING_FIRST)
        return sb_reshape(sb_slice(y, 1, 0, 1), SB_SHAPE(B, C));
    sb_tensor *weights = sb_batch_get(batch, "pooling");
    weights = weights ? sb_cast(weights, sb_tensor_dtype(y)) : NULL;
    weights = weights ? sb_reshape(weights, SB_SHAPE(B, 1, L)) : NULL;
    return weights ? sb_reshape(sb_matmul(weights, y), SB_SHAPE(B, C)) : NULL;
}

static sb_tensor *classifier_pooled(const sb_classifier *m, const sb_batch *batch,
                                    sb_tensor *weights[])
{
    sb_tensor *text = sb_batch_get(batch, "text"),
              *lengths = text ? sb_batch_get(batch, "lengths") : NULL;
    sb_tensor *y = lengths ? sb_encoder_forward(m->encoder, text, lengths, weights) : NULL;
    return y ? classifier_pool(m, y, batch) : NULL;
}

sb_tensor *sb_classifier_logits(const sb_classifier *model, const sb_batch *batch)
{
    if (!model || !batch)
        return fail_null("classifier", model ? "batch" : "model");
    sb_tensor *pooled = classifier_pooled(model, batch, NULL);
    return pooled ? sb_output_head_logits(&model->output, pooled) : NULL;
}

/* Of softmax (V): the largest. */
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
        ok = (ids[i] = sb_vocabulary_encode(m->vocabulary, texts[i], &length[i], NULL)) != NULL;
    sb_batch *batch =
        ok ? sb_labelled_batch_new(n, (const int32_t *const *)ids, length, NULL) : NULL;
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

static const char *const poolings[] = {
    [SB_POOLING_MEAN] = "mean", [SB_POOLING_FIRST] = "first", NULL};

void classifier_add_pooling(struct setting_table *t, sb_pooling *pooling)
{
    t->group = SETTING_OF_MODEL;
    t->kinds = SETTING_FOR_CLASSIFIER;
    setting_add_choice(t, "pooling", pooling, poolings,
                       "classify by the mean of the encoder's outputs, or by the first");
    t->kinds = SETTING_FOR_ALL;
}

/* Its settings, bound to options. */
static struct setting_table classifier_settings(sb_classifier_options *o)
{
    struct setting_table t = {.count = 0};
    setting_add_transformer(&t, &o->transformer, SETTING_FOR_CLASSIFIER);
    classifier_add_pooling(&t, &o->pooling);
    setting_add_dropout(&t, &o->transformer);
    setting_add_smoothing(&t, &o->label_smoothing);
    return t;
}

static void *classifier_from(sb_parameters *weights, const sb_description *d)
{
    sb_classifier_options o = {.transformer = {.ranks = sb_description_ranks(d)}};
    const struct setting_table table = classifier_settings(&o);
    sb_vocabulary *vocabulary = sb_description_vocabulary(d, "text");
    int64_t n = 0;
    while (sb_description_label(d, n))
        n++;
    const char **labels = memory_new((size_t)(n + 1) * sizeof *labels);
    for (int64_t i = 0; labels && i < n; i++)
        labels[i] = sb_description_label(d, i);
    void *model = !labels ? sb_fail("classifier: out of memory")
                  : vocabulary && settings_take(&table, d)
                      ? sb_classifier_for(weights, vocabulary, labels, n, &o)
                      : NULL;
    memory_free(labels);
    return model;
}

static bool classifier_describe(const void *self, sb_description *d)
{
    const sb_classifier *m = self;
    sb_classifier_options o = m->options; /* a copy, as settings can be written to */
    const struct setting_table table = classifier_settings(&o);
    bool ok =
        settings_describe(&table, d) && sb_description_add_vocabulary(d, "text", m->vocabulary);
    for (int64_t i = 0; ok && i < sb_classifier_labels(m); i++)
        ok = sb_description_add_label(d, sb_classifier_label(m, i));
    return ok;
}

static void classifier_release(void *self)
{
    sb_classifier_free(self);
}

static sb_tensor *classifier_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    const sb_classifier *m = self;
    sb_tensor *label = sb_batch_get(batch, "label"),
              *pooled = label ? classifier_pooled(m, batch, NULL) : NULL;
    const sb_cross_entropy_options options = {
        .label_smoothing = loss == SB_LOSS_COST ? 0 : m->options.label_smoothing,
        .reduction = loss == SB_LOSS_MEAN ? SB_REDUCE_MEAN : SB_REDUCE_SUM};
    return pooled ? sb_output_head_loss(&m->output, pooled, label, &options) : NULL;
}

/* Ranks share the texts. */
static bool classifier_score(const void *self, const void *held_, sb_communicator *ranks,
                             sb_evaluation *evaluation)
{
    const sb_classifier *m = self;
    const sb_pairs *pairs = ((const sb_held_labelled *)held_)->pairs;
    const int64_t n = sb_pairs_count(pairs), P = sb_communicator_size(ranks),
                  first = n * sb_communicator_rank(ranks) / P,
                  count = n * (sb_communicator_rank(ranks) + 1) / P - first;
    sb_class *classes = memory_new((size_t)(count + 1) * sizeof *classes);
    bool ok = classes ? sb_classify(m, sb_pairs_sources(pairs) + first, count, classes)
                      : sb_fail("classifier: out of memory") != NULL;
    double wrong = 0;
    for (int64_t i = 0; ok && i < count; i++) {
        const char *label = sb_classifier_label(m, classes[i].label);
        wrong += strcmp(label, sb_pairs_target(pairs, first + i)) != 0;
    }
    ok = ok && sb_communicator_sum(ranks, SB_F64, 1, &wrong);
    evaluation->error = wrong / (double)n;
    memory_free(classes);
    return ok;
}

static bool classifier_attentions(const void *self, const sb_batch *batch, sb_attentions *a)
{
    const sb_classifier *m = self;
    const int layers = sb_encoder_layers(m->encoder);
    sb_tensor *lengths = sb_batch_get(batch, "lengths"), *label = sb_batch_get(batch, "label");
    *a = (sb_attentions){.maps = layers, .map = memory_new((size_t)layers * sizeof *a->map)};
    sb_tensor **weights = memory_new((size_t)layers * sizeof *weights);
    if (!a->map || !weights)
        sb_fail("classifier: out of memory");
    sb_tensor *pooled =
        a->map && weights && label && lengths ? classifier_pooled(m, batch, weights) : NULL;
    if (pooled)
        a->loss = sb_output_head_loss(&m->output, pooled, label, NULL);
    for (int i = 0; a->loss && i < layers; i++)
        a->map[i] = (sb_attention_map){weights[i], lengths, lengths, false};
    memory_free(weights);
    if (!a->loss)
        memory_free(a->map);
    return a->loss != NULL;
}

static bool classifier_example(const void *self, const char *text, const char *target,
                               sb_example *e)
{
    const sb_classifier *m = self;
    sb_class predicted;
    (void)target;
    return sb_classify(m, &text, 1, &predicted) &&
           example_of_encoder(e, m->vocabulary, &m->options.transformer, text,
                              sb_classifier_labels(m), predicted.label);
}

const sb_model_kind classifier_kind = {.name = "classifier",
                                       .build = classifier_from,
                                       .describe = classifier_describe,
                                       .free = classifier_release,
                                       .loss = classifier_loss,
                                       .score = classifier_score,
                                       .attentions = classifier_attentions,
                                       .example = classifier_example,
                                       .splits = "batch heads"};

sb_model sb_classifier_as_model(sb_classifier *model)
{
    return (sb_model){&classifier_kind, model, model ? model->weights : NULL};
}
