/* softback explain cross-entropy: softmax and log in two steps, against the fused p - y. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include <stdio.h>

static const double own_logits[] = {0, 60, 120}, calm_logits[] = {2, 1, 0.1};

static bool check(const struct explain_options *o)
{
    int n = o->list[LOGITS].count ? o->list[LOGITS].count : 3;
    if (n < 2)
        return sb_fail("--logits: there is 1 number; at least 2 are needed");
    if (o->target >= n)
        return sb_fail("--class: %lld is not the index of one of %d logits, from 0 to %d",
                       (long long)o->target, n, n - 1);
    return true;
}

struct outcome {
    double loss, dx[EXPLAIN_NUMBERS], p[EXPLAIN_NUMBERS]; /* p: of two steps */
};

/* -ln p_target with p = softmax(x): by the fused operation, or by a log behind a softmax. */
static bool compute(const struct numbers *logits, int64_t target, bool fused,
                    struct outcome *outcome)
{
    int n = logits->count;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = variable_of(SB_F32, SB_SHAPE(1, n), logits->value);
    sb_tensor *id = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1), (double)target));
    sb_tensor *p = fused ? NULL : sb_keep(sb_softmax(x));
    sb_tensor *loss = fused ? sb_cross_entropy(x, id, NULL)
                            : sb_negate(sb_sum(sb_log(sb_gather(p, id)), SB_ALL, false));
    bool ok = sb_backward(loss) && sb_tensor_read(sb_tensor_grad(x), outcome->dx) &&
              (fused || sb_tensor_read(p, outcome->p));
    outcome->loss = ok ? sb_tensor_value(loss) : 0;
    return sb_tape_end(&tape) && ok;
}

static void write_case(struct page *page, const char *name, const struct numbers *logits,
                       int64_t target)
{
    struct outcome two = {0}, fused = {0};
    page_need(page, compute(logits, target, false, &two) && compute(logits, target, true, &fused));
    page_table(page, name, "i .0 | logit ~4 | p ~4 | y .0 | two steps ~4 | fused ~4");
    for (int i = 0; i < logits->count; i++)
        PAGE_NUMBERS(page, NULL, i, logits->value[i], two.p[i], i == target, two.dx[i],
                     fused.dx[i]);
    const struct page_column shown = {"", PAGE_SHORT, 4};
    page_text(page, "Loss in two steps: %s; fused: %s.", page_show(&shown, two.loss).text,
              page_show(&shown, fused.loss).text);
}

static void write(struct page *page, const struct explain_options *o)
{
    struct numbers logits = list_or(&o->list[LOGITS], 3, own_logits);
    struct numbers calm = list_or(&(struct numbers){0}, 3, calm_logits);
    page_title(page, "p - y, in one step and in two");
    page_text(
        page,
        "The loss is -ln p_t with p = softmax(z), here in float32. Two steps: dL/dp_t = "
        "-1 / p_t, then through the softmax, dz_i = p_i (g_i - avg). Fused: dz = p - y, where "
        "y is the one-hot target, and the loss is logsumexp(z) - z_t, which needs no p.");
    write_case(page, "logits", &logits, o->target);
    page_text(page, "Where p_t underflows to 0, ln 0 is -inf, 1/0 is inf, and 0 times inf is NaN. "
                    "The fused form never divides by p. With moderate logits both give the same "
                    "gradient: p - y needs no derivation of its own, the chain rule gives it.");
    write_case(page, "moderate logits", &calm, 0);
}

const struct topic topic_cross_entropy = {
    "cross-entropy", "softmax, then log, with its -inf, against the fused p - y",
    1 << LOGITS | TAKES_TARGET, check, write};
