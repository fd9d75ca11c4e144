/* Claims about masks. Naive ways are written here on purpose. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/claims.h"
#include "teach/explain/row.h"
#include <math.h>

enum { N = 4 };

static sb_tensor *constant(const double values[N])
{
    return constant_of(SB_F32, SB_SHAPE(1, N), values);
}

static int count_nan(const double a[N])
{
    int n = 0;
    for (int i = 0; i < N; i++)
        n += isnan(a[i]);
    return n;
}

/* The sum scores + (1 - M)(-inf), before any softmax. */
static bool product(struct measured *m)
{
    double s[N] = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *kept = constant((const double[]){1, 1, 0, 0});
    sb_tensor *blocked = sb_subtract(constant((const double[]){1, 1, 1, 1}), kept);
    sb_tensor *y = sb_add(constant((const double[]){2, 1, 0.1, -1}), sb_scale(blocked, -INFINITY));
    bool ok = y && sb_tensor_read(y, s);
    ok = sb_tape_end(&tape) && ok;
    return conclude(
        m, ok, count_nan(s) == 0, false,
        "Of 2 kept and 2 blocked scores, %d become NaN: the kept ones, where 1 - M is 0 and "
        "0 (-inf) is NaN.",
        count_nan(s));
}

static bool weights_with(double blocked, bool any, double a[N])
{
    const double bias[N] = {any ? 0 : blocked, any ? 0 : blocked, blocked, blocked};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = naive_softmax(sb_add(constant((const double[]){2, 1, 0.1, -1}), constant(bias)));
    bool ok = y && sb_tensor_read(y, a);
    return sb_tape_end(&tape) && ok;
}

static bool large_number(struct measured *m)
{
    double finite[N], infinite[N], empty[N];
    if (!weights_with(-1e9, true, finite) || !weights_with(-INFINITY, true, infinite) ||
        !weights_with(-1e9, false, empty))
        return false;
    bool same = memcmp(finite, infinite, sizeof finite) == 0;
    return conclude(
        m, true, same && empty[0] == 0, same,
        "In a row with kept keys, %s. In a fully masked row every weight is %.2f: in float32, "
        "2 - 1e9 = -1e9 absorbs the score.",
        same ? "the weights are the same to the bit" : "the weights differ", empty[0]);
}

/* What nan_to_num does: zero in the place of each NaN. */
static sb_tensor *without_nan(sb_tensor *x)
{
    double values[N] = {0};
    if (x)
        sb_tensor_read(x, values);
    for (int i = 0; i < N; i++)
        values[i] = isnan(values[i]) ? 0 : values[i];
    return constant(values);
}

static bool nan_to_num(struct measured *m)
{
    double empty[N] = {0}, broken[N] = {0}, honest[N] = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double none[N] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, bad[N] = {2, NAN, 1, 0};
    sb_tensor *mended = without_nan(naive_softmax(constant(none)));
    sb_tensor *hidden = without_nan(naive_softmax(constant(bad)));
    sb_tensor *shown = sb_masked_softmax(constant(bad), sb_mask_window(N, N), 1);
    bool ok = shown && sb_tensor_read(mended, empty) && sb_tensor_read(hidden, broken) &&
              sb_tensor_read(shown, honest);
    ok = sb_tape_end(&tape) && ok;
    return conclude(
        m, ok, count_nan(empty) == 0 && count_nan(broken) > 0, count_nan(empty) == 0,
        "A fully masked row becomes %.0f. But so does a row with a NaN in its data: %d NaN "
        "are left of it, where sb_masked_softmax shows %d.",
        empty[0], count_nan(broken), count_nan(honest));
}

const struct claim claims_of_masks[] = {{"S + (1 - M)(-inf) masks", product},
                                        {"adding -1e9 equals adding -inf", large_number},
                                        {"nan_to_num repairs fully masked rows", nan_to_num},
                                        {NULL, NULL}};
