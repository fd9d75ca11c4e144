/* softback explain flash: the online softmax of one row, block by block, and its backward. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/mathematics.h"
#include <stdio.h>

static const double own_scores[] = {1, 2, 5, 0.5, 3, -1}, own_values[] = {1, -1, 2, 0.5, 0, 4};

/* A value for each score; by default 1, 2, 3, ... */
static struct numbers values_of(const struct explain_options *o, int n)
{
    struct numbers v = {.count = n};
    for (int i = 0; i < n; i++)
        v.value[i] = n == 6 && o->list[SCORES].count == 0 ? own_values[i] : i + 1;
    return o->list[VALUES].count > 0 ? o->list[VALUES] : v;
}

static bool check(const struct explain_options *o)
{
    return check_count("values", &o->list[VALUES],
                       o->list[SCORES].count ? o->list[SCORES].count : 6, "scores");
}

enum { STATE = 3 };

/* The state after a block, STATE numbers: the largest score so far, the sum of exp(s - m), and the
 * sum of exp(s - m) v. */
struct state {
    double m, l, o, rescale;
};

/*
 * One block by operations: m' = max(m, max s), rescale = exp(m - m'), l' = l rescale + sum of p,
 * o' = o rescale + sum of p v, with p = exp(s - m').
 */
static bool take_block(struct state *state, bool first, int n, const double s[], const double v[])
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = constant_of(SB_F64, SB_SHAPE(n), s);
    sb_tensor *values = constant_of(SB_F64, SB_SHAPE(n), v);
    double top = sb_tensor_value(sb_max(x, SB_ALL, false)),
           m = first || top > state->m ? top : state->m;
    sb_tensor *p = sb_exp(sb_subtract(x, sb_tape_own(sb_tensor_scalar(SB_F64, m))));
    double l = sb_tensor_value(sb_sum(p, SB_ALL, false));
    double o = sb_tensor_value(sb_sum(sb_multiply(p, values), SB_ALL, false));
    double rescale =
        first ? 0 : sb_tensor_value(sb_exp(sb_tape_own(sb_tensor_scalar(SB_F64, state->m - m))));
    *state = (struct state){m, state->l * rescale + l, state->o * rescale + o, rescale};
    return sb_tape_end(&tape);
}

static struct state write_blocks(struct page *page, const struct numbers *s,
                                 const struct numbers *v, int block)
{
    struct state state = {0};
    page_table(page, "blocks", "block .0 | scores | m ~4 | rescale .4 | l .4 | o / l .4 | held .0");
    for (int b = 0; b * block < s->count; b++) {
        int at = b * block, n = s->count - at < block ? s->count - at : block, used = 0;
        char scores[EXPLAIN_NUMBERS * 16] = "";
        for (int i = 0; i < n && used < 32; i++)
            used += snprintf(scores + used, sizeof scores - (size_t)used, i ? " %.4g" : "%.4g",
                             s->value[at + i]);
        if (used >= 32)
            snprintf(scores + 28, sizeof scores - 28, " ...");
        page_need(page, take_block(&state, b == 0, n, s->value + at, v->value + at));
        PAGE_ROW(page, cell_of(b + 1), cell_word(scores), cell_of(state.m), cell_of(state.rescale),
                 cell_of(state.l), cell_of(state.o / state.l), cell_of(n + STATE));
    }
    return state;
}

static void write_backward(struct page *page, const struct numbers *s, const struct numbers *v,
                           const struct state *end)
{
    struct row row = row_of(s->count, s->value);
    double stored[EXPLAIN_NUMBERS] = {0}, delta = end->o / end->l;
    page_need(page, row_backward(&row, v->value, stored));
    page_table(page, "backward",
               "j .0 | a = exp(s - m)/l .4 | g = dy v .4 | recomputed .5 | stored .5 | check");
    for (int j = 0; j < s->count; j++) {
        double a = math_exp(s->value[j] - end->m) / end->l, g = v->value[j];
        double ds = a * (g - delta);
        bool same = fabs(ds - stored[j]) <= 1e-12 * fmax(1, fabs(ds));
        PAGE_ROW(page, cell_of(j), cell_of(a), cell_of(g), cell_of(ds), cell_of(stored[j]),
                 cell_word(same ? "ok" : "off"));
    }
}

/* This row as attention of one query, whose key j is its score: tiled, or with its weights. */
static double attend(struct page *page, const struct numbers *s, const struct numbers *v,
                     sb_attention_algorithm algorithm)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *q = sb_tape_own(sb_tensor_full(SB_F64, SB_SHAPE(1, 1), 1));
    sb_tensor *k = constant_of(SB_F64, SB_SHAPE(s->count, 1), s->value);
    sb_tensor *values = constant_of(SB_F64, SB_SHAPE(v->count, 1), v->value);
    const sb_attention_options options = {.algorithm = algorithm};
    sb_tensor *y = sb_attention(q, k, values, &options);
    double value = y ? sb_tensor_value(y) : 0;
    page_need(page, sb_tape_end(&tape));
    return value;
}

static void write(struct page *page, const struct explain_options *o)
{
    struct numbers s = list_or(&o->list[SCORES], 6, own_scores), v = values_of(o, s.count);
    int block = o->block > 0 ? (int)o->block : 2;
    page_title(page, "the online softmax: a row in blocks, never stored as a whole");
    page_text(page,
              "One query, its scores s and scalar values v; the result is y = sum of a_j v_j. Each "
              "block knows only the largest score m and the sum l so far. When m grows, the sums "
              "so far are rescaled by exp(m_old - m_new). With p = exp(s - m): l = l rescale + sum "
              "p, o = o rescale + sum p v. \"held\" counts the numbers in use at a time; the "
              "softmax of the whole row holds all weights.");
    struct state end = write_blocks(page, &s, &v, block);
    page_text(page,
              "At the end y = o / l = %.4g. sb_attention gives %.4g with stored weights and %.4g "
              "in its own tiles. Backward needs y, m and l: two numbers a query and the output, "
              "instead of %d weights.",
              end.o / end.l, attend(page, &s, &v, SB_ATTENTION_COMPOSED),
              attend(page, &s, &v, SB_ATTENTION_TILED), s.count);
    page_text(page,
              "BACKWARD, with dy = 1: the weights are recomputed from m and l. The average of g, "
              "which every g is compared with, is delta = dy y = %.4g: it is known before the "
              "first block. ds_j = a_j (g_j - delta); \"stored\" is the backward of a softmax that "
              "kept its weights.",
              end.o / end.l);
    write_backward(page, &s, &v, &end);
}

const struct topic topic_flash = {"flash", "the online softmax block by block, and its backward",
                                  1 << SCORES | 1 << VALUES | TAKES_BLOCK, check, write};
