#include "program/bench/words.h"
#include "program/bench/job.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>

bool words_transformer(const char *line, sb_transformer_options *options)
{
    int64_t layers;
    if (!job_whole(line, "width", &options->width) || !job_whole(line, "heads", &options->heads) ||
        !job_whole(line, "feed_forward", &options->feed_forward) ||
        !job_whole(line, "layers", &layers) || !job_number(line, "dropout", &options->dropout))
        return false;
    options->encoder_layers = options->decoder_layers = (int)layers;
    options->precision = job_flag(line, "bf16")   ? SB_PRECISION_BF16
                         : job_flag(line, "tf32") ? SB_PRECISION_TF32
                                                  : SB_PRECISION_F32;
    return true;
}

sb_vocabulary *words_vocabulary(const char *line)
{
    enum { WORD = 16 };
    int64_t symbols;
    if (!job_whole(line, "symbols", &symbols))
        return NULL;
    if (symbols <= SB_SPECIAL_SYMBOLS)
        return sb_fail("bench: symbols is %lld, not above %d", (long long)symbols,
                       SB_SPECIAL_SYMBOLS);
    char *text = memory_new((size_t)symbols * WORD);
    if (!text)
        return sb_fail("bench: out of memory");
    int64_t used = 0;
    for (int64_t i = 0; i < symbols - SB_SPECIAL_SYMBOLS; i++)
        used += snprintf(text + used, WORD, i ? " w%lld" : "w%lld", (long long)i);
    const char *texts[] = {text};
    sb_vocabulary *words =
        sb_vocabulary_new(texts, 1, &(sb_vocabulary_options){.units = SB_UNITS_WORDS});
    memory_free(text);
    return words;
}
