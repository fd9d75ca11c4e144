/* Options for which 0 stands for the default. */
#ifndef SOFTBACK_TENSOR_OPTION_H
#define SOFTBACK_TENSOR_OPTION_H

#include <math.h>
#include <stdbool.h>

/*
 * The number 0 itself, for an option whose default is not 0:
 *
 *     sb_layer_norm(x, gain, bias, SB_ZERO)                    without an epsilon
 *     (sb_optimiser_options){.beta1 = SB_ZERO}                 Adam without a mean of gradients
 *
 * It is the negative zero of IEEE 754, which equals 0 and differs from it in the sign alone.
 */
#define SB_ZERO (-0.0)

/* Whether a value is not the 0 that stands for the default. */
static inline bool sb_option_given(double value)
{
    return value != 0 || copysign(1, value) < 0;
}

/* What a value stands for: 0 for the default, SB_ZERO for 0. */
static inline double sb_option(double value, double usual)
{
    return !sb_option_given(value) ? usual : value != 0 ? value : 0;
}

#endif
