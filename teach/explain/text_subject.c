#include "teach/explain/text_subject.h"
#include "models/classifier_kind.h"
#include "models/data/windows.h"
#include "models/language_kind.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

/* Begin, if asked for, the symbols of the text, end. */
static bool text_subject_encode(struct text_subject *s, const char *text, bool begin)
{
    int64_t n;
    int32_t *ids = sb_vocabulary_encode(s->axis.vocabulary, text, &n, NULL);
    if (ids && n > 0 && (s->ids = memory_new((size_t)(n + 2) * sizeof *s->ids))) {
        s->ids[0] = SB_SYMBOL_BEGIN;
        memcpy(s->ids + begin, ids, (size_t)n * sizeof *ids);
        s->axis.ids = s->ids;
        s->axis.length = n + begin;
        s->ids[s->axis.length] = SB_SYMBOL_END;
    } else if (ids) {
        sb_fail(n > 0 ? "out of memory" : "the text is empty; give one with at least a symbol");
    }
    sb_free(ids);
    return s->ids != NULL;
}

static bool text_subject_of_language(struct text_subject *s, const sb_language_model *m,
                                     const char *text)
{
    const sb_language_model_options *o = sb_language_model_options_of(m);
    s->causal = true;
    s->axis.vocabulary = sb_language_model_vocabulary(m);
    s->choices = sb_vocabulary_size(s->axis.vocabulary);
    s->options = &o->transformer;
    s->layers = o->transformer.decoder_layers;
    if (!text_subject_encode(s, text, !o->running_text))
        return false;
    if (o->context > 0 && s->axis.length > o->context)
        return sb_fail("the text has %lld symbols, the model's context is %lld; give a shorter one",
                       (long long)s->axis.length, (long long)o->context);
    s->batch = sb_window_batch_new(1, (const int32_t *const[]){s->ids}, &s->axis.length);
    return s->batch != NULL;
}

static bool text_subject_of_classifier(struct text_subject *s, const sb_classifier *m,
                                       const char *text)
{
    const sb_classifier_options *o = sb_classifier_options_of(m);
    s->axis.vocabulary = sb_classifier_vocabulary(m);
    s->choices = sb_classifier_labels(m);
    s->options = &o->transformer;
    s->layers = o->transformer.encoder_layers;
    if (!text_subject_encode(s, text, true))
        return false;
    const int64_t n = s->axis.length - 1, label = 0; /* the loss is not looked at */
    s->batch = sb_labelled_batch_new(1, (const int32_t *const[]){s->ids + 1}, &n, &label);
    return s->batch != NULL;
}

bool text_subject_open(struct text_subject *s, const struct checkpoint *c, const char *text)
{
    const sb_model *model = &c->subject;
    *s = (struct text_subject){.checkpoint = c};
    const bool ok = model->kind == &language_model_kind
                        ? text_subject_of_language(s, model->self, text)
                    : model->kind == &classifier_kind
                        ? text_subject_of_classifier(s, model->self, text)
                        : sb_fail("the attention of a model of kind \"%s\" cannot be drawn",
                                  model->kind->name) != NULL;
    if (!ok)
        text_subject_close(s);
    return ok;
}

void text_subject_close(struct text_subject *s)
{
    sb_batch_free(s->batch);
    memory_free(s->ids);
    *s = (struct text_subject){0};
}
