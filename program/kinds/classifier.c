/* Training classifiers, on texts with labels. */
#include "models/classifier_kind.h"
#include "models/text/buffer.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/pairs.h"
#include "program/kinds/pattern.h"
#include "program/run/kind.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/failure.h"
#include <math.h>
#include <string.h>

/* What it is trained and evaluated on: pairs of text and label. */
struct classifier_data {
    struct divided_pairs pairs;
    sb_vocabulary *vocabulary;
    sb_labels *labels;
    sb_labelled *train, *held;
    sb_held_labelled scored;
};

enum { PATTERN_TEXTS = 10000, PATTERN_HELD = 1000 };

static bool classifier_open_texts(struct training *t, const struct training_request *r)
{
    const uint64_t seed = t->settings.trainer.seed;
    struct classifier_data *x = t->data;
    if (t->task) {
        x->pairs.train = pattern_pairs(seed, SB_PART_TRAIN, PATTERN_TEXTS);
        x->pairs.held = pattern_pairs(seed, SB_PART_VALID, PATTERN_HELD);
    } else if (!pairs_open(&x->pairs, r)) {
        return false;
    }
    if (!pairs_to_train(&x->pairs) || !x->pairs.held)
        return false;
    x->scored.pairs = t->held_pairs = x->pairs.held;
    t->progress.data_hash = pairs_mark(&x->pairs);
    return true;
}

/* The labels of the model that is resumed are those of the data, whose hash is the same. */
static bool classifier_learn(struct training *t)
{
    struct classifier_data *x = t->data;
    const sb_pairs *pairs = pairs_to_train(&x->pairs);
    const struct settings *s = &t->settings;
    const sb_vocabulary_options options = {.units = s->units, .size = s->vocabulary};
    const sb_classifier *model = t->loaded ? t->loaded->subject.self : NULL;
    x->labels = sb_labels_new(sb_pairs_targets(pairs), sb_pairs_count(pairs));
    if (x->labels)
        x->vocabulary =
            model ? sb_vocabulary_retain(sb_classifier_vocabulary(model))
                  : sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &options);
    return x->vocabulary != NULL;
}

static bool classifier_open_data(struct training *t)
{
    struct classifier_data *x = t->data;
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    if (!classifier_learn(t))
        return false;
    x->train = sb_labelled_new(pairs_to_train(&x->pairs), x->vocabulary, x->labels, &options);
    x->held = x->train ? sb_labelled_new(x->pairs.held, x->vocabulary, x->labels, &options) : NULL;
    if (!x->held)
        return false;
    t->source = sb_labelled_as_source(x->train);
    t->held_source = sb_labelled_as_source(x->held);
    t->scored = &x->scored;
    t->epoch_items = sb_labelled_count(x->train);
    t->usual_best = BEST_ACCURACY;
    return true;
}

static bool classifier_add_words(const struct training *t, sb_description *d)
{
    const struct classifier_data *x = t->data;
    bool ok = sb_description_add_vocabulary(d, "text", x->vocabulary);
    for (int64_t i = 0; ok && i < sb_labels_count(x->labels); i++)
        ok = sb_description_add_label(d, sb_labels_text(x->labels, i));
    return ok;
}

static void classifier_close(struct training *t)
{
    struct classifier_data *x = t->data;
    sb_labelled_free(x->train);
    sb_labelled_free(x->held);
    sb_vocabulary_release(x->vocabulary);
    sb_labels_free(x->labels);
    pairs_close(&x->pairs);
}

static void classifier_describe(const struct training *t, const struct training_request *r,
                                FILE *out)
{
    const struct classifier_data *x = t->data;
    const int64_t left_out = sb_labelled_left_out(x->train), n = sb_labels_count(x->labels);
    if (t->task)
        fprintf(out, "task       %s; %s texts, %s held out\n", t->task,
                count_text(sb_pairs_count(x->pairs.train)).text,
                count_text(sb_pairs_count(x->pairs.held)).text);
    else
        pairs_describe(&x->pairs, r, 0, 0, out);
    if (left_out > 0)
        fprintf(out, "left out   %s texts of more than %s symbols\n", count_text(left_out).text,
                count_text(t->settings.data.longest).text);
    fprintf(out, "text       %s, %s symbols\n",
            sb_units_description(sb_vocabulary_units(x->vocabulary)),
            count_text(sb_vocabulary_symbols(x->vocabulary)).text);
    fprintf(out, "labels     %s: ", count_text(n).text);
    for (int64_t i = 0; i < n && i < 8; i++)
        fprintf(out, i ? ", %s" : "%s", foreign(sb_labels_text(x->labels, i)));
    fputs(n > 8 ? ", ...\n" : "\n", out);
}

static void classifier_measure(const struct training *t, const sb_evaluation *e, int digits,
                               char *text, size_t size)
{
    (void)t;
    snprintf(text, size, digits > 1 ? ", accuracy %.*f %%" : "  accuracy %.*f %%", digits,
             100 * (1 - e->error));
    if (isnan(e->error))
        text[0] = '\0';
}

/* A text and its label. */
static bool classifier_add_item(struct buffer *buffer, const struct training *t,
                                const sb_batch *batch, int64_t item)
{
    const sb_classifier *model = t->subject.self;
    const int64_t label = (int64_t)sb_tensor_get(sb_batch_get(batch, "label"), item);
    return bad_batch_add_text(buffer, sb_classifier_vocabulary(model), batch, "text", "lengths",
                              item) &&
           buffer_add_text(buffer, "\t") &&
           buffer_add_text(buffer, sb_classifier_label(model, label));
}

static bool classifier_watch(struct training *t)
{
    const struct classifier_data *x = t->data;
    int64_t index[MOST_WATCHED], length[MOST_WATCHED];
    int32_t *ids[MOST_WATCHED] = {NULL};
    const int64_t n = pairs_short(&x->pairs, MOST_WATCHED, index);
    int64_t label[MOST_WATCHED];
    bool ok = n == 0 || pairs_choose_drawn(&x->pairs, index[0], t);
    for (int64_t i = 0; ok && i < n; i++) {
        label[i] = sb_labels_find(x->labels, sb_pairs_target(x->pairs.held, index[i]));
        ids[i] = sb_vocabulary_encode(x->vocabulary, sb_pairs_source(x->pairs.held, index[i]),
                                      &length[i], NULL);
        ok = ids[i] != NULL;
    }
    t->watched = ok && n > 0 ? sb_labelled_batch_new(n, (const int32_t *const *)ids, length, label,
                                                     x->vocabulary)
                             : NULL;
    for (int64_t i = 0; i < n; i++)
        sb_free(ids[i]);
    return ok && (n == 0 || t->watched);
}

const struct training_kind training_classifier = {.title = "a classifier",
                                                  .trained = "on texts with labels",
                                                  .file = "lines of text, tab, label",
                                                  .items = "texts",
                                                  .model = &classifier_kind,
                                                  .task = pattern_task,
                                                  .data_size = sizeof(struct classifier_data),
                                                  .open_texts = classifier_open_texts,
                                                  .open_data = classifier_open_data,
                                                  .add_words = classifier_add_words,
                                                  .close = classifier_close,
                                                  .describe = classifier_describe,
                                                  .scores = 1 << BEST_LOSS | 1 << BEST_ACCURACY,
                                                  .measure = classifier_measure,
                                                  .add_item = classifier_add_item,
                                                  .evaluate = evaluate_classifier,
                                                  .watch = classifier_watch,
                                                  .report = &report_classifier};
