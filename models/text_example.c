#include "models/text_example.h"
#include "models/data/windows.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

void example_free(sb_example *e)
{
    sb_batch_free(e->batch);
    memory_free(e->ids);
    sb_free(e->target);
    *e = (sb_example){0};
}

static bool example_is_complete(sb_example *e)
{
    if (!e->batch)
        example_free(e);
    return e->batch != NULL;
}

/* ---- pairs ---- */

/* One block: the source; the target and end; begin and the target. */
static bool example_encode_pair(sb_example *e, sb_vocabulary *source, sb_vocabulary *target,
                                const char *text, sb_encoded_pair *pair)
{
    int64_t n = 0, m = 0;
    int32_t *read = sb_vocabulary_encode(source, text, &n, NULL);
    int32_t *written = read ? sb_vocabulary_encode(target, e->target, &m, NULL) : NULL;
    e->ids = written ? memory_new((size_t)(n + 2 * m + 2) * sizeof *e->ids) : NULL;
    if (written && !e->ids)
        sb_fail("out of memory for %lld symbols", (long long)(n + m));
    if (e->ids) {
        memcpy(e->ids, read, (size_t)n * sizeof *e->ids);
        memcpy(e->ids + n, written, (size_t)m * sizeof *e->ids);
        memcpy(e->ids + n + m + 2, written, (size_t)m * sizeof *e->ids);
        e->ids[n + m] = sb_vocabulary_special(target, SB_SYMBOL_END);
        e->ids[n + m + 1] = sb_vocabulary_special(target, SB_SYMBOL_BEGIN);
        *pair = (sb_encoded_pair){e->ids, e->ids + n, n, m, target};
    }
    sb_free(written);
    sb_free(read);
    return e->ids != NULL;
}

bool text_example_of_pair(sb_example *e, const struct text_model *m, const char *text,
                          char *written)
{
    const sb_transformer_options *o = &m->options.common.transformer;
    sb_encoded_pair pair;
    *e = (sb_example){.target = written, .heads = o->heads};
    if (written && example_encode_pair(e, m->source, m->target, text, &pair)) {
        const int E = o->encoder_layers, D = o->decoder_layers;
        const sb_example_axis source = {m->source, pair.source, pair.source_length},
                              output = {m->target, pair.target, pair.target_length + 1},
                              decoder_input = {m->target, output.ids + output.length,
                                               output.length};
        e->batch = sb_batch_new(1, &pair);
        e->choices = sb_vocabulary_size(m->target);
        e->attentions = 3;
        e->attention[0] = (sb_example_attention){
            "cross", "output symbols", "the source symbols that they attend to",
            output,  source,           E + D,
            D,       .causal = false,  .self = false};
        e->attention[1] = (sb_example_attention){
            "encoder", "source symbols", "the source symbols that they attend to",
            source,    source,           0,
            E,         .causal = false,  .self = true};
        e->attention[2] = (sb_example_attention){
            "decoder", "output symbols", "the earlier symbols that they attend to",
            output,    decoder_input,    E,
            D,         .causal = true,   .self = true};
    }
    return example_is_complete(e);
}

/* ---- texts ---- */

/* Begin, unless it is bare; the symbols of the text; end, which is not on the axis. */
static bool example_encode_text(sb_example *e, sb_vocabulary *vocabulary, const char *text,
                                bool bare, sb_example_axis *axis)
{
    int64_t n;
    int32_t *ids = sb_vocabulary_encode(vocabulary, text, &n, NULL);
    if (ids && n > 0 && (e->ids = memory_new((size_t)(n + 2) * sizeof *e->ids))) {
        e->ids[0] = sb_vocabulary_special(vocabulary, SB_SYMBOL_BEGIN);
        memcpy(e->ids + !bare, ids, (size_t)n * sizeof *ids);
        *axis = (sb_example_axis){vocabulary, e->ids, n + !bare};
        e->ids[axis->length] = sb_vocabulary_special(vocabulary, SB_SYMBOL_END);
    } else if (ids) {
        sb_fail(n > 0 ? "out of memory" : "the text is empty; give one with at least a symbol");
    }
    sb_free(ids);
    return e->ids != NULL;
}

static sb_batch *example_batch_of_decoder(const struct text_model *m, const int32_t *ids,
                                          int64_t length)
{
    const int64_t context = m->options.own.context;
    if (context > 0 && length > context)
        return sb_fail("the text has %lld symbols, the model's context is %lld; give a shorter one",
                       (long long)length, (long long)context);
    return sb_window_batch_new(1, &ids, &length);
}

static sb_batch *example_batch_of_encoder(const struct text_model *m, const int32_t *ids,
                                          int64_t length, int64_t label)
{
    const bool begin = sb_vocabulary_units(m->source) != SB_UNITS_IDS;
    const int32_t *const text = ids + begin; /* the batch adds begin */
    length -= begin;
    return sb_labelled_batch_new(1, &text, &length, &label, m->source);
}

bool text_example_of_text(sb_example *e, const struct text_model *m, const char *text,
                          int64_t label)
{
    const sb_transformer_options *o = &m->options.common.transformer;
    sb_vocabulary *vocabulary = m->decoder ? m->target : m->source;
    sb_example_axis axis;
    *e = (sb_example){.choices =
                          m->labels ? sb_labels_count(m->labels) : sb_vocabulary_size(vocabulary),
                      .heads = o->heads};
    const bool bare =
        m->decoder ? m->options.own.running_text : sb_vocabulary_units(vocabulary) == SB_UNITS_IDS;
    if (!example_encode_text(e, vocabulary, text, bare, &axis))
        return false;
    e->attentions = 1;
    e->attention[0] =
        (sb_example_attention){m->decoder ? "decoder" : "encoder",
                               "symbols",
                               m->decoder ? "itself and the earlier symbols that it attends to"
                                          : "the symbols that they attend to",
                               axis,
                               axis,
                               0,
                               m->decoder ? o->decoder_layers : o->encoder_layers,
                               .causal = m->decoder,
                               .self = true};
    e->batch = m->decoder ? example_batch_of_decoder(m, e->ids, axis.length)
                          : example_batch_of_encoder(m, e->ids, axis.length, label);
    return example_is_complete(e);
}
