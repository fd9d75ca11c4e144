#include "models/translation.h"
#include "models/decoding/generator.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

bool sb_decode_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                     const sb_decoding_options *options, sb_decoded outputs[])
{
    if (!model)
        return fail_null("decode", "model");
    const sb_model subject = sb_seq2seq_as_model((sb_seq2seq *)(uintptr_t)model);
    return sb_model_decode(&subject, texts, n, options, outputs);
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
