/* Classifiers, trained and evaluated on texts with labels. */
#include "models/kinds.h"
#include "models/score.h"
#include "models/text/labels_parts.h"
#include "models/text/task.h"
#include "program/kinds/pairs.h"
#include "program/run/log.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/stream.h"
#include "tensor/buffer.h"
#include "tensor/error.h"
#include "tensor/random.h"
#include "tensor/utf8.h"
#include <math.h>
#include <string.h>

/* ---- a synthetic task: whether a sequence of letters contains the pattern "abc" ---- */

static const char pattern_task[] = "pattern";

enum { PATTERN_LEAST = 4, PATTERN_MOST = 16, PATTERN_LETTERS = 4 };

/* A text with the pattern, or one without. */
static void pattern_make(sb_random *random, bool with, char text[PATTERN_MOST + 1])
{
    static const char pattern[] = "abc";
    const size_t size = sizeof pattern - 1;
    uint32_t length;
    do {
        length = PATTERN_LEAST + sb_random_below(random, PATTERN_MOST - PATTERN_LEAST + 1);
        for (uint32_t i = 0; i < length; i++)
            text[i] = (char)('a' + sb_random_below(random, PATTERN_LETTERS));
        text[length] = '\0';
    } while (!with && strstr(text, pattern));
    if (with)
        memcpy(text + sb_random_below(random, length - (uint32_t)size + 1), pattern, size);
}

/* `count` texts of 4 to 16 of the letters a to d with the labels "yes" and "no", half of each;
   parts do not share their random streams. */
static sb_pairs *pattern_pairs(uint64_t seed, sb_part part, int64_t count)
{
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    random.position += ((uint64_t)part + 1) << 40;
    sb_pairs *pairs = sb_pairs_new();
    char text[PATTERN_MOST + 1];
    for (int64_t i = 0; pairs && i < count; i++) {
        pattern_make(&random, i % 2 == 0, text);
        if (!sb_pairs_add(pairs, text, i % 2 == 0 ? "yes" : "no")) {
            sb_pairs_free(pairs);
            return NULL;
        }
    }
    return pairs;
}

static sb_pairs *pattern_task_pairs(const char *task, const struct settings *unused, sb_part part,
                                    int64_t count)
{
    (void)unused;
    return strcmp(task, pattern_task) == 0
               ? pattern_pairs(0, part, count)
               : sb_fail("--task %s is for pairs of texts; a classifier is evaluated on --task "
                         "pattern or --data FILE",
                         task);
}

/* ---- training ---- */

/* What it is trained and evaluated on: pairs of text and label. */
struct classifier_data {
    struct pairs_data pairs;
    struct labels_text new_labels; /* those that the model of --from lacked */
    sb_held_labelled scored;
};

enum { PATTERN_TEXTS = 10000, PATTERN_HELD = 1000 };

static bool classifier_open_texts(struct training *t)
{
    const uint64_t seed = t->settings.trainer.seed;
    struct classifier_data *x = t->data;
    if (t->task) {
        x->pairs.train = pattern_pairs(seed, SB_PART_TRAIN, PATTERN_TEXTS);
        x->pairs.held = x->pairs.train ? pattern_pairs(seed, SB_PART_VALID, PATTERN_HELD) : NULL;
    }
    return pairs_open(t);
}

/* Gives the model of --from, which has fewer labels, those of the data, too. */
static bool classifier_add_labels(struct training *t)
{
    struct classifier_data *x = t->data;
    struct checkpoint *c = t->loaded;
    const sb_labels *old = classifier_labels(c->subject.self);
    x->new_labels = labels_text(x->pairs.labels, old);
    if (t->settings.tuning.lora > 0)
        return sb_fail("the data have the labels %s, which the model of --from lacks: it has %s; "
                       "adapters cannot add labels, so train without --lora",
                       x->new_labels.text, labels_text(old, NULL).text);
    sb_parameters *weights =
        sb_parameters_of(sb_parameters_dtype(c->weights), t->settings.trainer.seed);
    sb_classifier *model =
        weights ? classifier_grow(weights, c->subject.self, x->pairs.labels) : NULL;
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
    x->pairs.labels = labels_union(old, sb_pairs_targets(pairs), sb_pairs_count(pairs));
    const bool more = old && sb_labels_count(x->pairs.labels) > sb_labels_count(old);
    if (!x->pairs.labels || (more && !classifier_add_labels(t)))
        return false;
    x->pairs.source =
        t->loaded ? sb_vocabulary_retain(sb_classifier_vocabulary(t->loaded->subject.self))
                  : sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &options);
    return x->pairs.source != NULL;
}

static bool classifier_open_data(struct training *t)
{
    struct classifier_data *x = t->data;
    if (!classifier_learn(t) || !pairs_encode(t))
        return false;
    x->scored.pairs = pairs_to_decode(&x->pairs);
    t->scored = &x->scored;
    t->best = BEST_ACCURACY;
    return true;
}

static sb_model classifier_make(const struct training *t)
{
    const struct classifier_data *x = t->data;
    return sb_classifier_as_model(
        sb_classifier_for(t->weights, x->pairs.source, labels_texts(x->pairs.labels),
                          sb_labels_count(x->pairs.labels), &t->settings.model));
}

static void classifier_describe(const struct training *t, FILE *out)
{
    const struct training_request *r = t->request;
    const struct classifier_data *x = t->data;
    const int64_t left_out = sb_data_left_out(x->pairs.data), n = sb_labels_count(x->pairs.labels);
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
        fprintf(out, i ? ", %s" : "%s", foreign(sb_labels_text(x->pairs.labels, i)));
    fputs(n > 8 ? ", ...\n" : "\n", out);
}

static void classifier_describe_unknown(const struct training *t, FILE *out)
{
    const struct classifier_data *x = t->data;
    const sb_pairs *pairs = pairs_to_train(&x->pairs);
    const int64_t unknown =
        pairs_unknown(x->pairs.source, sb_pairs_sources(pairs), sb_pairs_count(pairs));
    if (x->new_labels.text[0])
        fprintf(out, "new labels %s; the head gets new rows for them\n",
                foreign(x->new_labels.text));
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

/* ---- evaluation: accuracy, macro-F1, and which labels it confuses ---- */

struct measured_classes {
    const sb_classifier *model;
    sb_pairs *pairs;
    int64_t unknown; /* texts with symbols that the model does not know */
    struct confusion confusion;
};

static void evaluate_count_unknown(struct measured_classes *e)
{
    const sb_vocabulary *vocabulary = sb_classifier_vocabulary(e->model);
    for (int64_t i = 0; i < sb_pairs_count(e->pairs); i++)
        e->unknown += unknown_count(vocabulary, sb_pairs_source(e->pairs, i)) > 0;
}

static json_t *evaluate_classes_json(const struct measured_classes *e)
{
    json_t *labels = json_array();
    for (int64_t k = 0; k < e->confusion.labels; k++)
        json_array_append_new(labels, json_string(sb_classifier_label(e->model, k)));
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "texts",
                     (json_int_t)sb_pairs_count(e->pairs), "unknown", (json_int_t)e->unknown,
                     "accuracy", log_number(confusion_accuracy(&e->confusion)), "macro_f1",
                     log_number(e->confusion.f1), "labels", labels, "confusion",
                     log_table(e->confusion.labels, e->confusion.labels, e->confusion.cell));
}

static int evaluate_margin(const struct measured_classes *e)
{
    int most = 7;
    for (int64_t k = 0; k < e->confusion.labels; k++) {
        const int n = utf8_columns(sb_classifier_label(e->model, k));
        most = n > most ? n : most;
    }
    return most;
}

static void evaluate_print_padded(const char *text, int width)
{
    const int spare = width - utf8_columns(foreign(text));
    printf("%*s%s", spare > 0 ? spare : 0, "", foreign(text));
}

/* A row for each label, a column for each predicted one. */
static void evaluate_print_confusion(const struct measured_classes *e)
{
    const int margin = evaluate_margin(e);
    printf("\nTexts by label (rows) and by what they were classified as (columns):\n%*s", margin,
           "");
    for (int64_t k = 0; k < e->confusion.labels; k++) {
        putchar(' ');
        evaluate_print_padded(sb_classifier_label(e->model, k), margin);
    }
    putchar('\n');
    for (int64_t k = 0; k < e->confusion.labels; k++) {
        evaluate_print_padded(sb_classifier_label(e->model, k), margin);
        for (int64_t i = 0; i < e->confusion.labels; i++)
            printf(" %*lld", margin, (long long)confusion_at(&e->confusion, k, i));
        putchar('\n');
    }
}

static void evaluate_classes_table(const struct measured_classes *e)
{
    enum { WIDEST_TABLE = 16 };
    printf("texts           %s\n", count_text(sb_pairs_count(e->pairs)).text);
    if (e->unknown > 0)
        printf("unknown         %s texts have symbols that the model does not know\n",
               count_text(e->unknown).text);
    printf("accuracy        %.2f %%\n", 100 * confusion_accuracy(&e->confusion));
    printf("macro-F1        %.4f, the mean over %lld labels\n", e->confusion.f1,
           (long long)e->confusion.labels);
    if (e->confusion.labels <= WIDEST_TABLE)
        evaluate_print_confusion(e);
    else
        printf("The confusion table of %lld labels is in --json.\n",
               (long long)e->confusion.labels);
}

static bool evaluate_classifier(const struct evaluate_request *r, const struct checkpoint *c,
                                json_t **json)
{
    struct measured_classes e = {.model = c->subject.self};
    bool ok =
        r->show == 0 || sb_fail("--show is for encoder-decoders; softback classify shows what "
                                "a classifier answers");
    if (ok)
        e.pairs = r->task ? pattern_task_pairs(r->task, NULL, SB_PART_TEST, r->count)
                          : sb_pairs_read(r->data, NULL);
    ok = e.pairs && confusion_measure(&e.confusion, e.model, e.pairs);
    if (ok)
        evaluate_count_unknown(&e);
    if (ok && r->json)
        *json = evaluate_classes_json(&e);
    else if (ok)
        evaluate_classes_table(&e);
    confusion_free(&e.confusion);
    sb_pairs_free(e.pairs);
    return ok;
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
                                                  .make = classifier_make,
                                                  .close = pairs_close,
                                                  .describe = classifier_describe,
                                                  .describe_unknown = classifier_describe_unknown,
                                                  .scores = 1 << BEST_LOSS | 1 << BEST_ACCURACY,
                                                  .measure = classifier_measure,
                                                  .add_item = classifier_add_item,
                                                  .evaluate = evaluate_classifier,
                                                  .task_pairs = pattern_task_pairs,
                                                  .watch = pairs_watch,
                                                  .report = &report_classifier};
