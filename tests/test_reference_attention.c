/* Attention agrees with PyTorch's in value and gradients: tests/golden/references/attention.py has
   the same cases, with inputs (batch, heads, length, size) unless said otherwise. */
#include "tests/reference.h"

#define ATTEND(...)                                                                                \
    sb_attention(x[0], x[1], x[2], &(sb_attention_options){.layout = SB_HEADS_FIRST, __VA_ARGS__})

FUNCTION(plain, ATTEND(.mask = NULL))
FUNCTION(one_head, sb_attention(x[0], x[1], x[2], NULL))
FUNCTION(length_first, sb_attention(x[0], x[1], x[2], NULL))
FUNCTION(scale, ATTEND(.scale = 0.3))
FUNCTION(temperature, ATTEND(.temperature = 1.7)) /* D is 4, so the scale 1/2 */
FUNCTION(causal, ATTEND(.mask = sb_mask_causal()))
FUNCTION(causal_last, ATTEND(.mask = sb_mask_causal_last()))
FUNCTION(window, ATTEND(.mask = sb_mask_window(1, 3)))
FUNCTION(lengths, ATTEND(.mask = sb_mask_lengths(x[3])))
FUNCTION(lengths_and_causal, ATTEND(.mask = sb_mask_and(sb_mask_lengths(x[3]), sb_mask_causal())))
FUNCTION(allowed, ATTEND(.mask = sb_mask_allow(x[3])))
FUNCTION(blocked, ATTEND(.mask = sb_mask_block(x[3])))
FUNCTION(bias, ATTEND(.bias = x[3]))
FUNCTION(bias_and_causal, ATTEND(.bias = x[3], .mask = sb_mask_causal()))
FUNCTION(log_temperature, ATTEND(.log_temperature = x[3]))
FUNCTION(balanced, ATTEND(.score = SB_BALANCED))
FUNCTION(cosine, ATTEND(.score = SB_COSINE))
FUNCTION(cosine_scale, ATTEND(.score = SB_COSINE, .scale = 8))

static sb_tensor *weights(sb_tensor *const x[])
{
    sb_tensor *found = NULL;
    return ATTEND(.mask = sb_mask_causal(), .weights = &found) ? found : NULL;
}

CLAIM(reference_attention, attention_is_as_in_pytorch)
{
    static const struct reference_case cases[] = {CASE(plain),
                                                  CASE(one_head),
                                                  CASE(length_first),
                                                  {"long", plain},
                                                  CASE(scale),
                                                  CASE(temperature),
                                                  {"groups", plain},
                                                  {"one_group", causal},
                                                  CASE(causal),
                                                  CASE(causal_last),
                                                  CASE(window),
                                                  CASE(lengths),
                                                  CASE(lengths_and_causal),
                                                  CASE(allowed),
                                                  CASE(blocked),
                                                  CASE(bias),
                                                  {"bias_broadcast", bias},
                                                  CASE(bias_and_causal),
                                                  CASE(log_temperature),
                                                  {"log_temperatures", log_temperature},
                                                  CASE(balanced),
                                                  CASE(cosine),
                                                  CASE(cosine_scale),
                                                  CASE(weights)};
    COMPARE("attention", "attention", cases);
}
