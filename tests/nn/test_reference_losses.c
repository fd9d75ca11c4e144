/* Losses and their gradients agree with PyTorch's: see losses in
   tests/golden/references/operations.py. */
#include "tests/support/reference.h"

/* "probabilities_sum_smoothed_weighted" and the like: ids and probabilities differ only in x[1]. */
#define LOSS(...) sb_cross_entropy(x[0], x[1], &(sb_cross_entropy_options){__VA_ARGS__})

FUNCTION(mean, sb_cross_entropy(x[0], x[1], NULL))
FUNCTION(mean_smoothed, LOSS(.label_smoothing = 0.1))
FUNCTION(mean_weighted, LOSS(.class_weight = x[2]))
FUNCTION(mean_smoothed_weighted, LOSS(.class_weight = x[2], .label_smoothing = 0.3))
FUNCTION(sum, LOSS(.reduction = SB_REDUCE_SUM))
FUNCTION(sum_smoothed, LOSS(.reduction = SB_REDUCE_SUM, .label_smoothing = 0.1))
FUNCTION(sum_weighted, LOSS(.reduction = SB_REDUCE_SUM, .class_weight = x[2]))
FUNCTION(sum_smoothed_weighted,
         LOSS(.reduction = SB_REDUCE_SUM, .class_weight = x[2], .label_smoothing = 0.3))
FUNCTION(none, LOSS(.reduction = SB_REDUCE_NONE))
FUNCTION(none_smoothed, LOSS(.reduction = SB_REDUCE_NONE, .label_smoothing = 0.1))
FUNCTION(none_weighted, LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[2]))
FUNCTION(none_smoothed_weighted,
         LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[2], .label_smoothing = 0.3))

#define LINEAR_LOSS(...)                                                                           \
    sb_linear_cross_entropy(x[0], x[1], x[2], x[3], &(sb_cross_entropy_options){__VA_ARGS__})

FUNCTION(linear, sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL))
FUNCTION(linear_sum_smoothed, LINEAR_LOSS(.reduction = SB_REDUCE_SUM, .label_smoothing = 0.1))
FUNCTION(linear_none_weighted, LINEAR_LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[4]))
FUNCTION(linear_smoothed_weighted, LINEAR_LOSS(.label_smoothing = 0.1, .class_weight = x[4]))

FUNCTION(squared_mean, sb_mean_squared_error(x[0], x[1], SB_REDUCE_MEAN))
FUNCTION(squared_sum, sb_mean_squared_error(x[0], x[1], SB_REDUCE_SUM))
FUNCTION(squared_none, sb_mean_squared_error(x[0], x[1], SB_REDUCE_NONE))

#define BOTH(loss)                                                                                 \
    {"ids_" #loss, loss},                                                                          \
    {                                                                                              \
        "probabilities_" #loss, loss                                                               \
    }

TEST(reference_losses, losses_are_as_in_pytorch)
{
    static const struct reference_case cases[] = {BOTH(mean),
                                                  BOTH(mean_smoothed),
                                                  BOTH(mean_weighted),
                                                  BOTH(mean_smoothed_weighted),
                                                  BOTH(sum),
                                                  BOTH(sum_smoothed),
                                                  BOTH(sum_weighted),
                                                  BOTH(sum_smoothed_weighted),
                                                  BOTH(none),
                                                  BOTH(none_smoothed),
                                                  BOTH(none_weighted),
                                                  BOTH(none_smoothed_weighted),
                                                  CASE(linear),
                                                  CASE(linear_sum_smoothed),
                                                  CASE(linear_none_weighted),
                                                  CASE(linear_smoothed_weighted),
                                                  CASE(squared_mean),
                                                  CASE(squared_sum),
                                                  CASE(squared_none)};
    COMPARE("operations", "losses", cases);
}
