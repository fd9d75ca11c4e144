#include "teach/explain/subject.h"
#include "models/text_model.h"
#include "tensor/failure.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

bool subject_begin(struct subject *s, const sb_model *model, const char *text, const char *target)
{
    *s = (struct subject){.model = *model};
    if (!model->kind->example || !model->kind->attentions)
        return sb_fail("the attention of a model of kind \"%s\" cannot be drawn",
                       model->kind->name);
    if (!model->kind->example(model->self, text, target, &s->example))
        return false;
    return !target || s->example.target ||
           sb_fail("--target is for encoder-decoders; leave it out for this model");
}

void subject_end(struct subject *s)
{
    example_free(&s->example);
    *s = (struct subject){0};
}

const sb_example_attention *subject_attention(const struct subject *s, const char *name)
{
    const sb_example *e = &s->example;
    if (name && e->attentions == 1)
        return sb_fail("--kind is for encoder-decoders; this model has one kind of attention, to "
                       "its own text");
    for (int i = 0; name && i < e->attentions; i++)
        if (strcmp(e->attention[i].name, name) == 0)
            return &e->attention[i];
    return name ? sb_fail("the model has no attention \"%s\"", name) : &e->attention[0];
}

double subject_weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j)
{
    const int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t n = 0; n < H; n++)
        if (h < 0 || n == h)
            sum += sb_tensor_get(w, (n * Lq + i) * Lk + j);
    return h < 0 ? sum / (double)H : sum;
}

struct subject_label subject_label(const sb_example_axis *axis, int64_t i)
{
    struct subject_label label;
    const int32_t id = axis->ids[i];
    snprintf(label.text, sizeof label.text, "%s",
             id == sb_vocabulary_special(axis->vocabulary, SB_SYMBOL_UNKNOWN)
                 ? "\uFFFD"
                 : sb_vocabulary_symbol(axis->vocabulary, id));
    for (char *at = label.text; *at; at++)
        if (*at == ' ' || *at == '\n' || *at == '\t')
            *at = *at == ' ' ? '_' : '?';
    utf8_disarm(label.text);
    return label;
}
