#include "models/kinds.h"
#include "models/score.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

int64_t confusion_at(const struct confusion *c, int64_t label, int64_t taken)
{
    return c->cell[label * c->labels + taken];
}

double confusion_accuracy(const struct confusion *c)
{
    int64_t right = 0;
    for (int64_t k = 0; k < c->labels; k++)
        right += confusion_at(c, k, k);
    return (double)right / (double)c->texts;
}

static bool confusion_count(struct confusion *c, const sb_classifier *model, const sb_pairs *pairs,
                            const sb_class classes[])
{
    for (int64_t i = 0; i < c->texts; i++) {
        const char *text = sb_pairs_target(pairs, i);
        const int64_t label = sb_labels_find(classifier_labels(model), text);
        if (label < 0)
            return sb_fail("the label \"%s\" is unknown to the model, which has %lld labels", text,
                           (long long)c->labels);
        c->cell[label * c->labels + classes[i].label]++;
    }
    return true;
}

/* F1 = 2 right / (texts of the label + texts predicted as it). */
static double confusion_f1(const struct confusion *c)
{
    double sum = 0;
    int64_t occurring = 0;
    for (int64_t k = 0; k < c->labels; k++) {
        int64_t of = 0, taken = 0;
        for (int64_t i = 0; i < c->labels; i++) {
            of += confusion_at(c, k, i);
            taken += confusion_at(c, i, k);
        }
        occurring += of + taken > 0;
        sum += of + taken > 0 ? 2 * (double)confusion_at(c, k, k) / (double)(of + taken) : 0;
    }
    return sum / (double)occurring;
}

bool confusion_measure(struct confusion *c, const sb_classifier *model, const sb_pairs *pairs)
{
    *c = (struct confusion){.labels = sb_classifier_labels(model), .texts = sb_pairs_count(pairs)};
    sb_class *classes = memory_new((size_t)c->texts * sizeof *classes);
    c->cell = memory_new((size_t)(c->labels * c->labels) * sizeof *c->cell);
    bool ok = (classes && c->cell) || sb_fail("out of memory for %lld texts", (long long)c->texts);
    ok = ok && sb_classify(model, sb_pairs_sources(pairs), c->texts, classes) &&
         confusion_count(c, model, pairs, classes);
    memory_free(classes);
    if (ok)
        c->f1 = confusion_f1(c);
    else
        confusion_free(c);
    return ok;
}

void confusion_free(struct confusion *c)
{
    memory_free(c->cell);
    *c = (struct confusion){0};
}
