#include "models/translation.h"
#include "models/decoding/generator.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static sb_tensor *encode(const void *model, sb_tensor *ids, sb_tensor *lengths)
{
    return sb_seq2seq_encode(model, ids, lengths);
}

static sb_tensor *output(const void *model, sb_tensor *y)
{
    return sb_seq2seq_output(model, y);
}

static struct generator generator_of(const sb_seq2seq *model)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    return (struct generator){
        .model = model,
        .vocabulary = sb_seq2seq_source(model),
        .symbols = sb_vocabulary_size(sb_seq2seq_target(model)),
        .decoder = sb_seq2seq_decoder(model),
        .positions = o->positions == SB_POSITIONS_LEARNED ? o->longest : 0,
        .encode = encode,
        .output = output,
    };
}

bool sb_decode_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                     const sb_decoding_options *options, sb_decoded outputs[])
{
    if (!model)
        return fail_null("decode", "model");
    struct generator generator = generator_of(model);
    return generator_decode(&generator, texts, n, options, outputs);
}

bool sb_translate_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                        const sb_decoding_options *options, char *outputs[])
{
    if (!model || (n > 0 && !outputs))
        return fail_null("translate", model ? "outputs" : "model");
    for (int64_t i = 0; i < n; i++)
        outputs[i] = NULL;
    sb_decoded *decoded = memory_new((size_t)(n > 0 ? n : 1) * sizeof *decoded);
    if (!decoded)
        return sb_fail("translate: out of memory for %lld texts", (long long)n);
    bool ok = sb_decode_texts(model, texts, n, options, decoded) &&
              generator_texts(sb_seq2seq_target(model), n, decoded, outputs);
    sb_decoded_free(n, decoded);
    memory_free(decoded);
    return ok;
}

char *sb_translate(const sb_seq2seq *model, const char *text, const sb_decoding_options *options)
{
    char *translation = NULL;
    return sb_translate_texts(model, &text, 1, options, &translation) ? translation : NULL;
}
