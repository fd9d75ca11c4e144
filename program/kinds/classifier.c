/* Training classifiers, on texts with labels. */
#include "models/data/data_source.h"
#include "models/kinds.h"
#include "models/text/buffer.h"
#include "models/text/labels_parts.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/pairs.h"
#include "program/kinds/pattern.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/unknown.h"
#include "tensor/failure.h"
#include <math.h>
#include <string.h>

/* What it is trained and evaluated on: pairs of text and label. */
struct classifier_data {
    struct pairs_data pairs;
    sb_labels *labels;
    struct labels_text new_labels; /* those that the model of --from lacked */
    sb_held_labelled scored;
};

enum { PATTERN_TEXTS = 10000, PATTERN_HELD = 1000 };

static bool classifier_open_texts(struct training *t, const struct training_request *r)
{
    const uint64_t seed = t->settings.trainer.seed;
    struct classifier_data *x = t->data;
    if (t->task) {
        x->pairs.train = pattern_pairs(seed, SB_PART_TRAIN, PATTERN_TEXTS);
        x->pairs.held = x->pairs.train ? pattern_pairs(seed, SB_PART_VALID, PATTERN_HELD) : NULL;
    }
    return pairs_open(t, r);
}

/* Gives the model of --from, which has fewer labels, those of the data, too. */
static bool classifier_add_labels(struct training *t)
{
    struct classifier_data *x = t->data;
    struct checkpoint *c = t->loaded;
    const sb_labels *old = classifier_labels(c->subject.self);
    x->new_labels = labels_text(x->labels, old);
    if (t->settings.tuning.lora > 0)
        return sb_fail("the data have the labels %s, which the model of --from lacks: it has %s; "
                       "adapters cannot add labels, so train without --lora",
                       x->new_labels.text, labels_text(old, NULL).text);
    sb_parameters *weights =
        sb_parameters_of(sb_parameters_dtype(c->weights), t->settings.trainer.seed);
    sb_classifier *model = weights ? classifier_grow(weights, c->subject.self, x->labels) : NULL;
    if (!model) {
        sb_parameters_free(weights);
        return false;
    }
    sb_model_free(&c->subject);
    sb_parameters_free(c->weights);
    c->subject = sb_classifier_as_model(model);
    c->weights = weights;
    return true;
}

/* Labels are matched by name: those of a loaded model, and those of the data. A resumed run has the
   data of its model, and so no others. */
static bool classifier_learn(struct training *t)
{
    struct classifier_data *x = t->data;
    const sb_pairs *pairs = pairs_to_train(&x->pairs);
    const struct settings *s = &t->settings;
    const sb_vocabulary_options options = {.units = s->units, .size = s->vocabulary};
    const sb_labels *old = t->loaded ? classifier_labels(t->loaded->subject.self) : NULL;
    x->labels = labels_union(old, sb_pairs_targets(pairs), sb_pairs_count(pairs));
    const bool more = old && sb_labels_count(x->labels) > sb_labels_count(old);
    if (!x->labels || (more && !classifier_add_labels(t)))
        return false;
    x->pairs.source =
        t->loaded ? sb_vocabulary_retain(sb_classifier_vocabulary(t->loaded->subject.self))
                  : sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &options);
    return x->pairs.source != NULL;
}

static sb_data *classifier_encode(const struct training *t, const sb_pairs *pairs,
                                  const sb_data_options *options)
{
    const struct classifier_data *x = t->data;
    return labelled_data(sb_labelled_new(pairs, x->pairs.source, x->labels, options));
}

static bool classifier_open_data(struct training *t)
{
    struct classifier_data *x = t->data;
    if (!classifier_learn(t) || !pairs_encode(t))
        return false;
    x->scored.pairs = pairs_to_decode(&x->pairs);
    t->scored = &x->scored;
    t->usual_best = BEST_ACCURACY;
    return true;
}

static bool classifier_add_words(const struct training *t, sb_description *d)
{
    const struct classifier_data *x = t->data;
    bool ok = sb_description_add_vocabulary(d, "text", x->pairs.source);
    for (int64_t i = 0; ok && i < sb_labels_count(x->labels); i++)
        ok = sb_description_add_label(d, sb_labels_text(x->labels, i));
    return ok;
}

static void classifier_close(struct training *t)
{
    struct classifier_data *x = t->data;
    sb_labels_free(x->labels);
    pairs_close(t);
}

static void classifier_describe(const struct training *t, const struct training_request *r,
                                FILE *out)
{
    const struct classifier_data *x = t->data;
    const int64_t left_out = sb_data_left_out(x->pairs.data), n = sb_labels_count(x->labels);
    if (t->task)
        fprintf(out, "task       %s; %s texts, %s held out\n", t->task,
                count_text(sb_pairs_count(x->pairs.train)).text,
                count_text(sb_pairs_count(x->pairs.held)).text);
    else
        pairs_describe_files(&x->pairs, r, 0, 0, out);
    if (left_out > 0)
        fprintf(out, "left out   %s texts of more than %s symbols\n", count_text(left_out).text,
                count_text(pairs_longest(t)).text);
    fprintf(out, "text       %s, %s symbols\n",
            sb_units_description(sb_vocabulary_units(x->pairs.source)),
            count_text(sb_vocabulary_symbols(x->pairs.source)).text);
    fprintf(out, "labels     %s: ", count_text(n).text);
    for (int64_t i = 0; i < n && i < 8; i++)
        fprintf(out, i ? ", %s" : "%s", foreign(sb_labels_text(x->labels, i)));
    fputs(n > 8 ? ", ...\n" : "\n", out);
}

static void classifier_describe_unknown(const struct training *t, FILE *out)
{
    const struct classifier_data *x = t->data;
    const sb_pairs *pairs = pairs_to_train(&x->pairs);
    int64_t unknown = 0;
    if (x->new_labels.text[0])
        fprintf(out, "new labels %s; the head gets new rows for them\n",
                foreign(x->new_labels.text));
    for (int64_t i = 0; i < sb_pairs_count(pairs); i++)
        unknown += unknown_count(x->pairs.source, sb_pairs_source(pairs, i));
    if (unknown > 0)
        fprintf(out,
                "warning    %s symbols of the data are unknown to its vocabulary, and the model "
                "cannot learn them\n",
                count_text(unknown).text);
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
                                                  .describe_unknown = classifier_describe_unknown,
                                                  .scores = 1 << BEST_LOSS | 1 << BEST_ACCURACY,
                                                  .measure = classifier_measure,
                                                  .add_item = classifier_add_item,
                                                  .evaluate = evaluate_classifier,
                                                  .encode = classifier_encode,
                                                  .watch = pairs_watch,
                                                  .report = &report_classifier};
