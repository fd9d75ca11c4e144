/* Cross-entropy, of logits and of the linear layer that makes them. */
#include "ops/loss.h"
#include "tests/support/compare.h"

/* softmax(0, ln 2, ln 4) = (1, 2, 4) / 7; the target's is 2/7. */
TEST(cross_entropy, three_scores_give_the_hand_worked_loss)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(3), (double[]){0, 1 * M_LN2, 2 * M_LN2});
    sb_tensor *y = MUST(sb_cross_entropy(x, owned(SB_I32, SB_SCALAR, (double[]){1}), NULL));
    cr_expect(sb_tensor_rank(y) == 0 && fabs(sb_tensor_value(y) - log(3.5)) < 1e-15);
}

/* dx = softmax(x) - target = (1, 2 - 7, 4) / 7 */
TEST(cross_entropy, backward_gives_the_hand_worked_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(3), NUMBERS(0, 1 * M_LN2, 2 * M_LN2));
    MUST(sb_backward(sb_cross_entropy(x, owned(SB_I32, SB_SCALAR, (double[]){1}), NULL)));
    const double expected[] = {1 / 7.0, -5 / 7.0, 4 / 7.0};
    for (int i = 0; i < 3; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - expected[i]) < 1e-15);
}

/* The values below are PyTorch 2.15's, F.cross_entropy in float64. */
static const double logits[] = {0.5, -1.25, 2, 0, 1.5, 0.25, -0.75, 3, -2, 1, 0.5, 0.125};
static const double class_weights[] = {1, 0.5, 2, 0.25};

static void expect_loss(sb_tensor *targets, sb_tensor *weights, double smoothing,
                        sb_reduction reduction, const double *y, const double *dx)
{
    sb_tensor *x =
        KEPT(sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3, 4), logits)));
    TAPE(SB_RECORD);
    sb_tensor *loss = MUST(
        sb_cross_entropy(x, targets, &(sb_cross_entropy_options){smoothing, weights, reduction}));
    for (int64_t i = 0; i < sb_tensor_size(loss); i++)
        cr_expect(fabs(sb_tensor_get(loss, i) - y[i]) < 1e-14, "%.16g is not %.16g",
                  sb_tensor_get(loss, i), y[i]);
    cr_assert(sb_backward(reduction == SB_REDUCE_NONE ? sb_sum(loss, SB_ALL, false) : loss));
    for (int i = 0; i < 12; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) - dx[i]) < 1e-14,
                  "dx[%d]: %.16g is not %.16g", i, sb_tensor_get(sb_tensor_grad(x), i), dx[i]);
}

TEST(cross_entropy, ids_with_smoothing_and_class_weights_agree_with_the_reference)
{
    sb_tensor *ids = KEPT(sb_tensor_from_doubles(SB_I32, SB_SHAPE(3), (double[]){2, 0, -100}));
    sb_tensor *weights = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(4), class_weights));
    const double dx[] = {0.27741966037330507,
                         0.04005265696001353,
                         -0.49464911344960955,
                         0.17717679611629125,
                         -0.7558105473983037,
                         0.03597358974853579,
                         -0.0321675628917349,
                         0.7520045205415028,
                         0,
                         0,
                         0,
                         0};
    double mean_dx[12];
    for (int i = 0; i < 12; i++)
        mean_dx[i] = dx[i] / 3; /* the weights of the counted targets are 2 and 1 */
    expect_loss(ids, weights, 0.1, SB_REDUCE_NONE,
                (double[]){0.724081747618186, 1.8781511416237935, 0}, dx);
    expect_loss(ids, weights, 0.1, SB_REDUCE_SUM, (double[]){2.6022328892419795}, dx);
    expect_loss(ids, weights, 0.1, SB_REDUCE_MEAN, (double[]){0.8674109630806598}, mean_dx);
}

TEST(cross_entropy, probabilities_agree_with_the_reference)
{
    sb_tensor *t = KEPT(sb_tensor_from_doubles(
        SB_F64, SB_SHAPE(3, 4),
        (double[]){0.1, 0.2, 0.3, 0.4, 0.7, 0.1, 0.1, 0.1, 0.0, 1.0, 0.0, 0.0}));
    sb_tensor *weights = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(4), class_weights));
    const double dx[] = {0.029323045841517837,  -0.07742041519334009, 0.056811017145829895,
                         -0.008713647794007556, -0.48964125198551184, -0.010123925491053705,
                         -0.21257131618475225,  0.7123364936613179,   -0.011941933783460375,
                         -0.20022172886226378,  0.10907981282146012,  0.10308384982426416};
    const double mean_dx[] = {0.014897850010702752,  -0.05908314068910653, 0.1402322792607948,
                              -0.096046988582391,    -0.1615821542635819,  -0.02207384830237794,
                              -0.032351803066410036, 0.2160078056323699,   -0.0003283885262592314,
                              -0.14754971884276705,  0.08918685843461158,  0.058691248934414825};
    expect_loss(t, weights, 0.1, SB_REDUCE_NONE,
                (double[]){1.0004281211405601, 2.2658156440775943, 0.5019079241657336}, dx);
    expect_loss(t, NULL, 0.1, SB_REDUCE_MEAN, (double[]){1.5940579029693709}, mean_dx);
}

FUNCTION(fused, sb_cross_entropy(x[0], x[1],
                                 &(sb_cross_entropy_options){.label_smoothing = 0.2,
                                                             .class_weight = x[2]}))

/* Any targets as rows of probabilities. */
static sb_tensor *distribution(sb_tensor *x, sb_tensor *targets)
{
    if (sb_tensor_dtype(targets) != SB_I32)
        return sb_detach(targets);
    int64_t V = sb_tensor_dim(x, -1), rows = sb_tensor_size(targets);
    sb_tensor *t = sb_tape_own(sb_tensor_zeros(SB_F64, sb_tensor_rank(x), x->dim));
    for (int64_t r = 0; r < rows; r++)
        sb_tensor_set(t, r * V + (int64_t)sb_tensor_get(targets, r), 1);
    return t;
}

FUNCTION_HEAD(composed)
{
    sb_tensor *t = distribution(x[0], x[1]), *weight = sb_detach(x[2]);
    const double rows = (double)(sb_tensor_size(t) / sb_tensor_dim(t, -1));
    sb_tensor *counted = sb_tensor_dtype(x[1]) == SB_I32
                             ? sb_sum(sb_multiply(weight, t), SB_ALL, false)
                             : sb_tape_own(sb_tensor_scalar(SB_F64, rows));
    sb_tensor *spread =
        sb_tape_own(sb_tensor_scalar(SB_F64, 0.2 / (double)sb_tensor_dim(x[0], -1)));
    sb_tensor *smooth = sb_add(sb_scale(t, 0.8), spread);
    sb_tensor *terms = sb_multiply(sb_multiply(weight, smooth), sb_log_softmax(x[0]));
    return sb_divide(sb_scale(sb_sum(terms, SB_ALL, false), -1), counted);
}

TEST(cross_entropy, it_is_the_composition_of_its_steps)
{
    EXPECT_SAME_FUNCTION(fused, composed, "3x5 i5:3 =+5", "2x3x4 =+2x3x4 =+4", "2 i2:. =+2",
                         "3x63 i63:3 =+63", "64 =+64 =+64", "2x1x65 i65:2x1 =+65",
                         "200x7 =+200x7 =+7");
}

TEST(cross_entropy, targets_and_class_weights_get_no_gradient)
{
    const struct inputs in = inputs_new("3x5 +3x5 +5", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    MUST(sb_backward(fused(NULL, x)));
    cr_expect(sb_tensor_grad(x[0]) && !sb_tensor_grad(x[1]) && !sb_tensor_grad(x[2]));
}

/* A padded position may have any value, NaN too. */
TEST(cross_entropy, the_data_of_an_ignored_row_have_no_effect)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F32, SB_SHAPE(2, 2), (double[]){NAN, INFINITY, 0, 0})));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2), (double[]){-1, 1});
    sb_tensor *loss = sb_cross_entropy(x, ids, NULL);
    cr_expect(fabs(sb_tensor_value(loss) - M_LN2) < 1e-7);
    MUST(sb_backward(loss));
    expect_exact_numbers(sb_tensor_grad(x), NUMBERS(0, 0, 0.5, -0.5));
}

TEST(cross_entropy, a_nan_in_a_counted_row_propagates)
{
    TAPE(SB_NO_RECORD);
    for (int place = 0; place < 40; place++) {
        double values[40] = {0}, target[40] = {1};
        values[place] = NAN;
        sb_tensor *x = owned(SB_F32, SB_SHAPE(40), values);
        cr_expect(isnan(
            sb_tensor_value(sb_cross_entropy(x, owned(SB_I32, SB_SCALAR, (double[]){5}), NULL))));
        cr_expect(
            isnan(sb_tensor_value(sb_cross_entropy(x, owned(SB_F32, SB_SHAPE(40), target), NULL))));
    }
}

/* A class with logit -infinity has probability 0, and 0 log 0 is 0. */
TEST(cross_entropy, classes_of_probability_zero_do_not_count)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(3), (double[]){0, 0, -INFINITY});
    sb_tensor *id = owned(SB_I32, SB_SCALAR, (double[]){0});
    sb_tensor *t = owned(SB_F64, SB_SHAPE(3), (double[]){0.5, 0.5, 0});
    cr_expect(fabs(sb_tensor_value(sb_cross_entropy(x, id, NULL)) - M_LN2) < 1e-15);
    cr_expect(fabs(sb_tensor_value(sb_cross_entropy(x, t, NULL)) - M_LN2) < 1e-15);
}

TEST(cross_entropy, large_scores_keep_their_digits)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(2), (double[]){30000, 30000.5});
    double loss =
        sb_tensor_value(sb_cross_entropy(x, owned(SB_I32, SB_SCALAR, (double[]){1}), NULL));
    cr_expect(fabs(loss - log1p(exp(-0.5))) < 1e-7);
}

static sb_tensor *losses(sb_tensor *x)
{
    int64_t rows = sb_tensor_dim(x, 0);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(rows)));
    return sb_cross_entropy(x, ids, &(sb_cross_entropy_options){.reduction = SB_REDUCE_NONE});
}

TEST(cross_entropy, a_row_has_the_same_bits_at_any_position)
{
    expect_row_function(losses);
}

TEST(cross_entropy, the_sum_over_no_rows_is_zero)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3)));
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(0)));
    cr_expect(sb_tensor_value(sb_cross_entropy(
                  x, ids, &(sb_cross_entropy_options){.reduction = SB_REDUCE_SUM})) == 0);
    cr_expect(sb_tensor_size(sb_cross_entropy(
                  x, ids, &(sb_cross_entropy_options){.reduction = SB_REDUCE_NONE})) == 0);
}

CPU_TEST(cross_entropy, ids_that_change_before_backward_are_found)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3))));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(2)));
    sb_tensor *loss = sb_cross_entropy(x, ids, NULL);
    ((int32_t *)sb_tensor_data(ids))[1] = 300; /* unnoticed */
    REFUSED("cross_entropy: id 300 at (1)", sb_backward(loss));
}

CPU_TEST(cross_entropy, a_sum_over_ignored_targets_alone_is_0)
{
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)));
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2), (double[]){-1, -1});
    sb_tensor *sum =
        sb_cross_entropy(x, ids, &(sb_cross_entropy_options){.reduction = SB_REDUCE_SUM});
    cr_expect(sb_tensor_value(sum) == 0);
}

/* ---- linear cross entropy ---- */

FUNCTION(linear_cross_entropy_fused, sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL))
FUNCTION(linear_cross_entropy_composed, sb_cross_entropy(sb_linear(x[0], x[1], x[2]), x[3], NULL))

/* 1500 rows are two chunks and a part of one (see fused_loss_rows_of_chunk). */
TEST(linear_cross_entropy, it_is_linear_and_cross_entropy)
{
    EXPECT_SAME_FUNCTION(linear_cross_entropy_fused, linear_cross_entropy_composed, "1 1x1 1 i1:.",
                         "3 7x3 7 i7:.", "3x2 5x2 5 i5:3", "2x3x4 5x4 5 i5:2x3",
                         "63x7 65x7 65 i65:63", "1500x2 3x2 3 i3:1500", "=3x2 5x2 5 i5:3",
                         "3x2 =5x2 5 i5:3", "3x2 5x2 =5 i5:3", "2048x1 2x1 2 i2:2048");
}

/* A device's chunks are large; here they have one slab of rows. */
TEST(linear_cross_entropy, small_chunks_on_a_device_give_the_same)
{
    const int64_t usual = linear_cross_entropy_logits;
    linear_cross_entropy_logits = 1;
    expect_same_function(linear_cross_entropy_fused, linear_cross_entropy_composed,
                         "1x7 65x7 65 i65:1");
    expect_same_function(linear_cross_entropy_fused, linear_cross_entropy_composed,
                         "130x7 65x7 65 i65:130");
    expect_same_function(linear_cross_entropy_fused, linear_cross_entropy_composed,
                         "192x2 3x2 3 i3:192");
    linear_cross_entropy_logits = usual;
}

static sb_cross_entropy_options options;

FUNCTION_HEAD(with_options)
{
    options.class_weight = x[3];
    return sb_linear_cross_entropy(x[0], x[1], NULL, x[2], &options);
}

FUNCTION_HEAD(with_options_composed)
{
    options.class_weight = x[3];
    return sb_cross_entropy(sb_linear(x[0], x[1], NULL), x[2], &options);
}

TEST(linear_cross_entropy, every_option_gives_the_same_as_in_cross_entropy)
{
    for (sb_reduction reduction = SB_REDUCE_MEAN; reduction <= SB_REDUCE_NONE; reduction++)
        for (int smooth = 0; smooth < 2; smooth++) {
            options = (sb_cross_entropy_options){smooth * 0.1, NULL, reduction};
            expect_same_function(with_options, with_options_composed, "7x3 5x3 i5:7 =+5");
            expect_same_function(with_options, with_options_composed, "1100x2 4x2 i4:1100 =+4");
        }
}

TEST(linear_cross_entropy, negative_ids_are_ignored)
{
    sb_tensor *df[4], *dg[4];
    const struct inputs in = inputs_new("1100x2 3x2 3 i3:1100", SB_F64, 1);
    sb_tensor *const *x = in.x;
    for (int i = 0; i < 1100; i += 3)
        sb_tensor_set(x[3], i, -1 - i);
    sb_tensor *yf = run_with_gradients(linear_cross_entropy_fused, x, 4, df),
              *yg = run_with_gradients(linear_cross_entropy_composed, x, 4, dg);
    cr_expect(test_relative(yf, yg) < 1e-12);
    cr_expect(sb_tensor_get(df[0], 0) == 0 && sb_tensor_get(df[0], 1) == 0 &&
              sb_tensor_get(df[0], 2) != 0);
    for (int i = 0; i < 4; i++)
        cr_expect(i == 3 || test_relative(df[i], dg[i]) < 1e-12);
}

/* 4096 logits of 1000 classes in f32 are 16 MB. */
TEST(linear_cross_entropy, the_logits_are_never_all_in_memory, MANY_CASES)
{
    const int64_t usual = linear_cross_entropy_logits;
    linear_cross_entropy_logits = 1 << 20;
    sb_tensor *dx[4];
    const struct inputs in = inputs_new("4096x2 1000x2 1000 i1000:4096", SB_F32, 1);
    sb_tensor *const *x = in.x;
    sb_device_reset_peak(sb_device_in_use());
    int64_t before = memory_in_use().peak_bytes;
    run_with_gradients(linear_cross_entropy_fused, x, 4, dx);
    int64_t taken = memory_in_use().peak_bytes - before;
    linear_cross_entropy_logits = usual;
    cr_expect(taken < 6 << 20, "it took %lld bytes", (long long)taken);
}

TEST(linear_cross_entropy, no_rows_give_zero_and_zero_gradients)
{
    const struct inputs in = inputs_new("0x2 3x2 i3:0", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_linear_cross_entropy(
        x[0], x[1], NULL, x[2], &(sb_cross_entropy_options){.reduction = SB_REDUCE_SUM});
    cr_expect(sb_tensor_value(loss) == 0);
    MUST(sb_backward(loss));
    cr_expect(largest_of(sb_tensor_grad(x[1])) == 0);
}

/* Forward computes the gradients for dy = 1; backward scales them and adds to existing ones. */
TEST(linear_cross_entropy, gradients_are_proportional_to_dy)
{
    double grad[2][6];
    for (int i = 0; i < 2; i++) {
        TAPE(SB_RECORD);
        struct inputs in = inputs_new("3x2 4x2 i4:3", SB_F64, 1);
        sb_tensor *x = in.x[0];
        sb_tensor *loss = sb_linear_cross_entropy(x, in.x[1], NULL, in.x[2], NULL);
        sb_tensor *more = sb_sum(sb_scale(x, 5), SB_ALL, false);
        MUST(sb_backward(i ? sb_add(sb_scale(loss, -3), more) : loss));
        cr_assert(sb_tensor_read(sb_tensor_grad(x), grad[i]));
    }
    for (int e = 0; e < 6; e++)
        cr_expect(fabs(grad[1][e] - (5 - 3 * grad[0][e])) < 1e-14, "%g, %g", grad[1][e],
                  grad[0][e]);
}

/* Forward computes the gradients, but requires_grad counts when backward runs. */
TEST(linear_cross_entropy, requires_grad_may_change_between_forward_and_backward)
{
    double grad[2][8];
    for (int late = 0; late < 2; late++) {
        struct inputs in = inputs_new(late ? "3x2 =4x2 i4:3" : "3x2 4x2 i4:3", SB_F64, 1);
        TAPE(SB_RECORD);
        sb_tensor *loss = sb_linear_cross_entropy(in.x[0], in.x[1], NULL, in.x[2], NULL);
        in.x[1]->requires_grad = true;
        in.x[0]->requires_grad = !late;
        MUST(sb_backward(loss));
        cr_assert(sb_tensor_read(sb_tensor_grad(in.x[1]), grad[late]));
        cr_expect(!late || !sb_tensor_grad(in.x[0]));
    }
    for (int e = 0; e < 8; e++)
        cr_expect(fabs(grad[1][e] - grad[0][e]) < 1e-14, "%g, %g", grad[1][e], grad[0][e]);
}

TEST(linear_cross_entropy, a_gradient_that_is_no_longer_wanted_is_left_out)
{
    struct inputs in = inputs_new("3x2 4x2 i4:3", SB_F64, 1);
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_linear_cross_entropy(in.x[0], in.x[1], NULL, in.x[2], NULL);
    in.x[0]->requires_grad = false;
    MUST(sb_backward(loss));
    cr_expect(!sb_tensor_grad(in.x[0]) && sb_tensor_grad(in.x[1]));
}
