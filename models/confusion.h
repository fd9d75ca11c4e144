/* Which labels a classifier confuses, on texts with known ones. */
#ifndef SOFTBACK_MODELS_CONFUSION_H
#define SOFTBACK_MODELS_CONFUSION_H

#include "models/classifier.h"
#include "models/text/pairs.h"

struct confusion {
    int64_t labels, texts;
    int64_t *cell; /* (labels, labels): texts by label, and by predicted label */
    double f1;     /* macro-F1: the mean over the labels that occur */
};

/* Classifies the sources of pairs, whose targets are labels; fails where the model lacks one. To be
   freed with confusion_free. */
bool confusion_measure(struct confusion *confusion, const sb_classifier *model,
                       const sb_pairs *pairs);
void confusion_free(struct confusion *confusion);

int64_t confusion_at(const struct confusion *confusion, int64_t label, int64_t taken);
double confusion_accuracy(const struct confusion *confusion);

#endif
