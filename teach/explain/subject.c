#include "teach/explain/subject.h"
#include "models/translation.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

static bool encode(struct subject *s, const char *text)
{
    const sb_seq2seq *model = s->model;
    sb_encoded_pair pair = {0};
    s->source = sb_vocabulary_encode(sb_seq2seq_source(model), text, &pair.source_length, NULL);
    int32_t *plain = s->source ? sb_vocabulary_encode(sb_seq2seq_target(model), s->target,
                                                      &pair.target_length, NULL)
                               : NULL;
    const size_t n = (size_t)pair.target_length;
    s->said = plain ? memory_new((n + 1) * sizeof *s->said) : NULL;
    s->heard = s->said ? memory_new((n + 1) * sizeof *s->heard) : NULL;
    if (plain && !s->heard)
        sb_fail("out of memory for %zu symbols", n);
    if (s->heard) {
        memcpy(s->said, plain, n * sizeof *s->said);
        memcpy(s->heard + 1, plain, n * sizeof *s->heard);
        s->said[n] = SB_SYMBOL_END;
        s->heard[0] = SB_SYMBOL_BEGIN;
        pair.source = s->source;
        pair.target = s->said;
        s->batch = sb_batch_new(1, &pair);
        s->pair = pair;
    }
    sb_free(plain);
    return s->batch != NULL;
}

bool subject_begin(struct subject *s, const sb_seq2seq *model, const char *text, const char *target)
{
    *s = (struct subject){.model = model};
    s->target = target ? memory_text(target) : sb_translate(model, text, NULL);
    if (s->target && encode(s, text))
        return true;
    subject_end(s);
    return false;
}

void subject_end(struct subject *s)
{
    sb_batch_free(s->batch);
    sb_free(s->heard);
    sb_free(s->said);
    sb_free(s->source);
    sb_free(s->target);
    *s = (struct subject){0};
}

int subject_layers(const struct subject *s, enum attention_kind kind)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(s->model)->transformer;
    return kind == ENCODER_ATTENTION ? o->encoder_layers : o->decoder_layers;
}

struct subject_axis subject_queries(const struct subject *s, enum attention_kind kind)
{
    const sb_seq2seq *model = s->model;
    if (kind == ENCODER_ATTENTION)
        return (struct subject_axis){sb_seq2seq_source(model), s->source, s->pair.source_length};
    return (struct subject_axis){sb_seq2seq_target(model), s->said, s->pair.target_length + 1};
}

struct subject_axis subject_keys(const struct subject *s, enum attention_kind kind)
{
    const sb_seq2seq *model = s->model;
    if (kind == DECODER_ATTENTION)
        return (struct subject_axis){sb_seq2seq_target(model), s->heard, s->pair.target_length + 1};
    return (struct subject_axis){sb_seq2seq_source(model), s->source, s->pair.source_length};
}

struct subject_label subject_label(const struct subject_axis *axis, int64_t i)
{
    struct subject_label label;
    const int32_t id = axis->ids[i];
    snprintf(label.text, sizeof label.text, "%s",
             id == SB_SYMBOL_UNKNOWN ? "\uFFFD" : sb_vocabulary_symbol(axis->vocabulary, id));
    for (char *at = label.text; *at; at++)
        if (*at == ' ' || *at == '\n' || *at == '\t')
            *at = *at == ' ' ? '_' : '?';
    utf8_disarm(label.text);
    return label;
}
