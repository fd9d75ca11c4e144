/* How well a classifier does: accuracy, macro-F1, and which labels it confuses. */
#include "models/confusion.h"
#include "models/kinds.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/pattern.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/unknown.h"
#include "tensor/error.h"
#include "tensor/utf8.h"
#include <string.h>

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

static void evaluate_classes_json(const struct measured_classes *e)
{
    json_t *labels = json_array(), *rows = json_array();
    for (int64_t k = 0; k < e->confusion.labels; k++) {
        json_t *row = json_array();
        for (int64_t i = 0; i < e->confusion.labels; i++)
            json_array_append_new(row, json_integer(confusion_at(&e->confusion, k, i)));
        json_array_append_new(labels, json_string(sb_classifier_label(e->model, k)));
        json_array_append_new(rows, row);
    }
    evaluate_print(json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o}", "texts", (json_int_t)sb_pairs_count(e->pairs), "unknown",
        (json_int_t)e->unknown, "accuracy", evaluate_number(confusion_accuracy(&e->confusion)),
        "macro_f1", evaluate_number(e->confusion.f1), "labels", labels, "confusion", rows));
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

static sb_pairs *evaluate_read_classes(const struct evaluate_request *r)
{
    if (!r->task)
        return sb_pairs_read(r->data, NULL);
    if (strcmp(r->task, pattern_task) == 0)
        return pattern_pairs(0, SB_PART_TEST, r->count);
    return sb_fail("--task %s is for pairs of texts; a classifier is evaluated on --task pattern "
                   "or --data FILE",
                   r->task);
}

bool evaluate_classifier(const struct evaluate_request *r, const struct checkpoint *c)
{
    struct measured_classes e = {.model = c->subject.self};
    bool ok =
        r->show == 0 || sb_fail("--show is for encoder-decoders; softback classify shows what "
                                "a classifier answers");
    e.pairs = ok ? evaluate_read_classes(r) : NULL;
    ok = e.pairs && confusion_measure(&e.confusion, e.model, e.pairs);
    if (ok)
        evaluate_count_unknown(&e);
    if (ok)
        (r->json ? evaluate_classes_json : evaluate_classes_table)(&e);
    confusion_free(&e.confusion);
    sb_pairs_free(e.pairs);
    return ok;
}
