/* Training classifiers, on texts with labels. */
#include "models/classifier_kind.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/labelled.h"
#include "program/kinds/pattern.h"
#include "program/run/kind.h"
#include "tensor/memory.h"

struct learned {
    struct learned_labels labels;
    sb_held_labelled scored;
};

enum { PATTERN_TEXTS = 10000, PATTERN_HELD = 1000 };

static bool classifier_open_texts(struct training *t, const struct training_request *r)
{
    const uint64_t seed = t->settings.trainer.seed;
    struct learned *x = t->learned;
    if (t->task) {
        x->labels.pairs.rest = pattern_pairs(seed, SB_PART_TRAIN, PATTERN_TEXTS);
        x->labels.pairs.held = pattern_pairs(seed, SB_PART_VALID, PATTERN_HELD);
        if (!x->labels.pairs.rest || !x->labels.pairs.held)
            return false;
    }
    if (!labelled_open_texts(t, r))
        return false;
    x->scored.pairs = x->labels.pairs.held;
    t->scored = &x->scored;
    return true;
}

static bool classifier_open_data(struct training *t)
{
    return labelled_open_data(t, false);
}

static bool classifier_open_model(struct training *t)
{
    const struct settings *s = &t->settings;
    const struct learned_labels *x = t->learned;
    const sb_classifier_options options = {.transformer = s->model.transformer,
                                           .pooling = s->pooling,
                                           .hidden = s->hidden,
                                           .label_smoothing = s->model.label_smoothing};
    const char **texts = labelled_texts(t);
    sb_classifier *model = texts ? sb_classifier_for(t->weights, x->vocabulary, texts,
                                                     sb_labels_count(x->labels), &options)
                                 : NULL;
    t->subject = sb_classifier_as_model(model);
    memory_free(texts);
    return model != NULL;
}

static bool classifier_watch(struct training *t)
{
    const struct learned_labels *x = t->learned;
    int64_t index[MOST_WATCHED], length[MOST_WATCHED];
    int32_t *ids[MOST_WATCHED] = {NULL};
    const int64_t n = pairs_short(&x->pairs, MOST_WATCHED, index);
    bool ok = n > 0 || training_fail_watch();
    int64_t label[MOST_WATCHED];
    for (int64_t i = 0; ok && i < n; i++) {
        label[i] = sb_labels_find(x->labels, sb_pairs_target(x->pairs.held, index[i]));
        ids[i] = sb_vocabulary_encode(x->vocabulary, sb_pairs_source(x->pairs.held, index[i]),
                                      &length[i], NULL);
        ok = ids[i] != NULL;
    }
    t->watched =
        ok ? sb_labelled_batch_new(n, (const int32_t *const *)ids, length, label, x->vocabulary)
           : NULL;
    for (int64_t i = 0; i < n; i++)
        sb_free(ids[i]);
    return t->watched != NULL;
}

static const sb_pairs *classifier_held(const struct training *t)
{
    const struct learned_labels *x = t->learned;
    return x->pairs.held;
}

const struct training_kind training_classifier = {.title = "a classifier",
                                                  .trained = "on texts with labels",
                                                  .items = "texts",
                                                  .model = &classifier_kind,
                                                  .task = pattern_task,
                                                  .learned = sizeof(struct learned),
                                                  .open_texts = classifier_open_texts,
                                                  .open_data = classifier_open_data,
                                                  .open_model = classifier_open_model,
                                                  .close = labelled_close,
                                                  .batch_items = labelled_batch_items,
                                                  .epoch_batches = labelled_epoch_batches,
                                                  .describe = labelled_describe,
                                                  .scores = 1 << BEST_LOSS | 1 << BEST_ACCURACY,
                                                  .best = labelled_best,
                                                  .measure = labelled_measure,
                                                  .batch_text = labelled_batch_text,
                                                  .evaluate = evaluate_classifier,
                                                  .watch = classifier_watch,
                                                  .report_text = labelled_report_text,
                                                  .held = classifier_held,
                                                  .report = &report_classifier};
