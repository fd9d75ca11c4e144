/* How well a classifier does: accuracy, macro-F1, and which labels it confuses. */
#include "models/classifier_kind.h"
#include "program/evaluate.h"
#include "program/foreign.h"
#include "program/pattern.h"
#include "program/progress.h"
#include "program/unknown.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

struct classifier_evaluation {
    const sb_classifier *model;
    sb_pairs *pairs;
    int64_t labels, unknown; /* labels; texts with symbols that the model does not know */
    int64_t *confusion;      /* (labels, labels): texts by label, and by what they were taken for */
    int64_t right;
    double f1; /* the mean over the labels that occur */
};

static int64_t evaluate_cell(const struct classifier_evaluation *e, int64_t label, int64_t taken)
{
    return e->confusion[label * e->labels + taken];
}

static int64_t evaluate_label(const sb_classifier *model, const char *text)
{
    for (int64_t i = 0; i < sb_classifier_labels(model); i++)
        if (strcmp(sb_classifier_label(model, i), text) == 0)
            return i;
    sb_fail("the label \"%s\" is unknown to the model, which has %lld labels", text,
            (long long)sb_classifier_labels(model));
    return -1;
}

static bool evaluate_count(struct classifier_evaluation *e, const sb_class classes[])
{
    for (int64_t i = 0; i < sb_pairs_count(e->pairs); i++) {
        const int64_t label = evaluate_label(e->model, sb_pairs_target(e->pairs, i));
        if (label < 0)
            return false;
        e->confusion[label * e->labels + classes[i].label]++;
        e->right += classes[i].label == label;
        e->unknown +=
            unknown_count(sb_classifier_vocabulary(e->model), sb_pairs_source(e->pairs, i)) > 0;
    }
    return true;
}

/* F1 = 2 right / (texts of the label + texts taken for it). */
static double evaluate_macro_f1(const struct classifier_evaluation *e)
{
    double sum = 0;
    int64_t occurring = 0;
    for (int64_t k = 0; k < e->labels; k++) {
        int64_t of = 0, taken = 0;
        for (int64_t i = 0; i < e->labels; i++) {
            of += evaluate_cell(e, k, i);
            taken += evaluate_cell(e, i, k);
        }
        occurring += of + taken > 0;
        sum += of + taken > 0 ? 2 * (double)evaluate_cell(e, k, k) / (double)(of + taken) : 0;
    }
    return sum / (double)occurring;
}

static bool evaluate_measure_classes(struct classifier_evaluation *e)
{
    const size_t n = (size_t)sb_pairs_count(e->pairs), cells = (size_t)(e->labels * e->labels);
    sb_class *classes = memory_new(n * sizeof *classes);
    e->confusion = memory_new(cells * sizeof *e->confusion);
    bool ok = (classes && e->confusion) || sb_fail("out of memory for %zu texts", n);
    if (ok)
        memset(e->confusion, 0, cells * sizeof *e->confusion);
    ok = ok && sb_classify(e->model, sb_pairs_sources(e->pairs), (int64_t)n, classes) &&
         evaluate_count(e, classes);
    memory_free(classes);
    e->f1 = ok ? evaluate_macro_f1(e) : 0;
    return ok;
}

static double evaluate_accuracy(const struct classifier_evaluation *e)
{
    return (double)e->right / (double)sb_pairs_count(e->pairs);
}

static void evaluate_classes_json(const struct classifier_evaluation *e)
{
    json_t *labels = json_array(), *rows = json_array();
    for (int64_t k = 0; k < e->labels; k++) {
        json_t *row = json_array();
        for (int64_t i = 0; i < e->labels; i++)
            json_array_append_new(row, json_integer(evaluate_cell(e, k, i)));
        json_array_append_new(labels, json_string(sb_classifier_label(e->model, k)));
        json_array_append_new(rows, row);
    }
    evaluate_print(json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o}", "texts", (json_int_t)sb_pairs_count(e->pairs), "unknown",
        (json_int_t)e->unknown, "accuracy", evaluate_number(evaluate_accuracy(e)), "macro_f1",
        evaluate_number(e->f1), "labels", labels, "confusion", rows));
}

static int evaluate_margin(const struct classifier_evaluation *e)
{
    int most = 7;
    for (int64_t k = 0; k < e->labels; k++) {
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

/* A row for each label, a column for each that texts were taken for. */
static void evaluate_print_confusion(const struct classifier_evaluation *e)
{
    const int margin = evaluate_margin(e);
    printf("\nTexts by label (rows) and by what they were classified as (columns):\n%*s", margin,
           "");
    for (int64_t k = 0; k < e->labels; k++) {
        putchar(' ');
        evaluate_print_padded(sb_classifier_label(e->model, k), margin);
    }
    putchar('\n');
    for (int64_t k = 0; k < e->labels; k++) {
        evaluate_print_padded(sb_classifier_label(e->model, k), margin);
        for (int64_t i = 0; i < e->labels; i++)
            printf(" %*lld", margin, (long long)evaluate_cell(e, k, i));
        putchar('\n');
    }
}

static void evaluate_classes_table(const struct classifier_evaluation *e)
{
    enum { WIDEST_TABLE = 16 };
    printf("texts           %s\n", count_text(sb_pairs_count(e->pairs)).text);
    if (e->unknown > 0)
        printf("unknown         %s texts have symbols that the model does not know\n",
               count_text(e->unknown).text);
    printf("accuracy        %.2f %%\n", 100 * evaluate_accuracy(e));
    printf("macro-F1        %.4f, the mean over %lld labels\n", e->f1, (long long)e->labels);
    if (e->labels <= WIDEST_TABLE)
        evaluate_print_confusion(e);
    else
        printf("The confusion table of %lld labels is in --json.\n", (long long)e->labels);
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
    struct classifier_evaluation e = {.model = c->subject.self,
                                      .labels = sb_classifier_labels(c->subject.self)};
    bool ok =
        r->show == 0 || sb_fail("--show is for encoder-decoders; softback classify shows what "
                                "a classifier answers");
    e.pairs = ok ? evaluate_read_classes(r) : NULL;
    ok = e.pairs && evaluate_measure_classes(&e);
    if (ok)
        (r->json ? evaluate_classes_json : evaluate_classes_table)(&e);
    memory_free(e.confusion);
    sb_pairs_free(e.pairs);
    return ok;
}
