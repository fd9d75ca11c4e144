/* What a language model or a classifier attends to in a text. */
#include "autograd/tape.h"
#include "models/classifier_kind.h"
#include "models/data/windows.h"
#include "models/language_kind.h"
#include "program/attend.h"
#include "program/foreign.h"
#include "program/unknown.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

/* The text as the model reads it. */
struct attended {
    sb_vocabulary *vocabulary;
    int32_t *ids; /* begin, unless the model reads running text; the symbols; end, which is not read
                     but predicted */
    int64_t length; /* how many are read */
    sb_batch *batch;
    const sb_transformer_options *options;
    int layers;
};

/* Begin, the symbols of the text, end. */
static bool attend_encode(struct attended *a, const char *text, bool begin)
{
    int64_t n;
    int32_t *ids = sb_vocabulary_encode(a->vocabulary, text, &n, NULL);
    if (ids && n > 0 && (a->ids = memory_new((size_t)(n + 2) * sizeof *a->ids))) {
        a->ids[0] = SB_SYMBOL_BEGIN;
        memcpy(a->ids + begin, ids, (size_t)n * sizeof *ids);
        a->length = n + begin;
        a->ids[a->length] = SB_SYMBOL_END;
    } else if (ids) {
        sb_fail(n > 0 ? "out of memory" : "the text is empty; give one with at least a symbol");
    }
    sb_free(ids);
    return a->ids != NULL;
}

static bool attend_open_language(struct attended *a, const sb_language_model *m, const char *text)
{
    const sb_language_model_options *o = sb_language_model_options_of(m);
    *a = (struct attended){.vocabulary = sb_language_model_vocabulary(m),
                           .options = &o->transformer,
                           .layers = o->transformer.decoder_layers};
    if (!attend_encode(a, text, !o->running_text))
        return false;
    if (o->context > 0 && a->length > o->context)
        return sb_fail("the text has %lld symbols, the model's context is %lld; give a shorter one",
                       (long long)a->length, (long long)o->context);
    a->batch = sb_window_batch_new(1, (const int32_t *const[]){a->ids}, &a->length);
    return a->batch != NULL;
}

static bool attend_open_classifier(struct attended *a, const sb_classifier *m, const char *text)
{
    const sb_classifier_options *o = sb_classifier_options_of(m);
    *a = (struct attended){.vocabulary = sb_classifier_vocabulary(m),
                           .options = &o->transformer,
                           .layers = o->transformer.encoder_layers};
    if (!attend_encode(a, text, true))
        return false;
    const int64_t n = a->length - 1, label = 0; /* the loss is not looked at */
    a->batch = sb_labelled_batch_new(1, (const int32_t *const[]){a->ids + 1}, &n, &label);
    return a->batch != NULL;
}

static void attend_close(struct attended *a)
{
    sb_batch_free(a->batch);
    memory_free(a->ids);
}

static bool attend_check_text(const struct attend_request *r, const struct attended *a)
{
    if (r->kind_given || r->target)
        return sb_fail("--%s is for encoder-decoders; this model has one kind of attention, to its "
                       "own text",
                       r->target ? "target" : "kind");
    if (r->layer > a->layers)
        return sb_fail("--layer: there is no layer %lld; the last one is %d", (long long)r->layer,
                       a->layers);
    return r->head <= a->options->heads ||
           sb_fail("--head: there is no head %lld; the last one is %lld", (long long)r->head,
                   (long long)a->options->heads);
}

static bool attend_run_text(const struct attend_request *r, const sb_model *model,
                            const struct attended *a)
{
    const struct subject_axis axis = {a->vocabulary, a->ids, a->length};
    sb_attentions attentions;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = model->kind->attentions(model->self, a->batch, &attentions);
    if (ok) {
        const int64_t layer = r->layer ? r->layer : a->layers;
        attend_draw(attentions.map[layer - 1].weights, r->head, &axis, &axis, r->numbers);
        sb_free(attentions.map);
    }
    return sb_tape_end(&tape) && ok;
}

bool attend_text(const struct attend_request *r, const struct checkpoint *c)
{
    const bool language = c->subject.kind == &language_model_kind;
    struct attended a = {0};
    if (!language && c->subject.kind != &classifier_kind)
        return sb_fail("%s: the attention of a model of kind \"%s\" cannot be drawn", r->path,
                       c->subject.kind->name);
    bool ok = language ? attend_open_language(&a, c->subject.self, r->text)
                       : attend_open_classifier(&a, c->subject.self, r->text);
    ok = ok && attend_check_text(r, &a);
    if (ok) {
        unknown_note("attend", utf8_quote(r->text).text, a.vocabulary, r->text);
        printf("%s\n\n", foreign(r->text));
        ok = attend_run_text(r, &c->subject, &a);
    }
    if (ok)
        attend_explain(r,
                       language ? "Rows: symbols. Columns: itself and the earlier symbols that it "
                                  "attends to."
                                : "Rows: symbols. Columns: the symbols that they attend to.",
                       language ? "Decoder" : "Encoder", a.layers, a.options->heads);
    attend_close(&a);
    return ok;
}
