/* What a language model or a classifier attends to in a text. */
#include "autograd/tape.h"
#include "program/commands/attend.h"
#include "program/screen/foreign.h"
#include "program/screen/unknown.h"
#include "teach/explain/text_subject.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>

static bool attend_check_text(const struct attend_request *r, const struct text_subject *a)
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
                            const struct text_subject *a)
{
    sb_attentions attentions;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = model->kind->attentions(model->self, a->batch, &attentions);
    if (ok) {
        const int64_t layer = r->layer ? r->layer : a->layers;
        attend_draw(attentions.map[layer - 1].weights, r->head, &a->axis, &a->axis, r->numbers);
        sb_free(attentions.map);
    }
    return sb_tape_end(&tape) && ok;
}

bool attend_text(const struct attend_request *r, const struct checkpoint *c)
{
    struct text_subject a;
    if (!text_subject_open(&a, c, r->text))
        return false;
    bool ok = attend_check_text(r, &a);
    if (ok) {
        unknown_note("attend", utf8_quote(r->text).text, a.axis.vocabulary, r->text);
        printf("%s\n\n", foreign(r->text));
        ok = attend_run_text(r, &c->subject, &a);
    }
    if (ok)
        attend_explain(r,
                       a.causal ? "Rows: symbols. Columns: itself and the earlier symbols that it "
                                  "attends to."
                                : "Rows: symbols. Columns: the symbols that they attend to.",
                       a.causal ? "Decoder" : "Encoder", a.layers, a.options->heads);
    text_subject_close(&a);
    return ok;
}
