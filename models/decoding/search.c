#include "models/decoding/search.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"

bool output_room(sb_decoded *output, int64_t *room)
{
    return memory_room(&output->ids, output->length, room, sizeof *output->ids) ||
           sb_fail("decode: out of memory");
}

double search_score(const sb_decoding_options *options, double log_probability, int64_t chosen)
{
    double alpha = options->length_penalty;
    if (options->beam_rule != SB_BEAM_BOUNDED && options->beam_width > 1)
        return log_probability / math_pow((double)chosen, alpha);
    return alpha == 0 ? log_probability
                      : log_probability / math_pow((5 + (double)chosen) / 6, alpha);
}

bool search_fail_values(const struct search_text *text)
{
    return sb_fail("decode: text %lld: no symbol has a probability above 0; check that the "
                   "model's parameters are finite",
                   (long long)text->index);
}
