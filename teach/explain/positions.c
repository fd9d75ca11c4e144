/* softback explain positions: positional encodings, their aliasing, and the terms of a score. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <stdio.h>

enum { FARTHEST = 2000, SHOWN = 12 };

static const double own_periods[] = {5, 7}, pi = 3.14159265358979323846;

static bool check(const struct explain_options *o)
{
    const struct numbers *periods = &o->list[PERIODS];
    if (periods->count > 8)
        return sb_fail("--periods: there are %d numbers, at most 8 can be shown", periods->count);
    for (int i = 0; i < periods->count; i++)
        if (!(periods->value[i] >= 2))
            return sb_fail(
                "--periods: %g is below 2, the shortest period that positions can represent",
                periods->value[i]);
    return true;
}

/* p(t) for t = 0 .. n-1: the sine and cosine of each wave, (n, 2 waves). */
static sb_tensor *waves(const struct numbers *periods, int64_t n)
{
    int64_t C = 2 * periods->count;
    sb_tensor *p = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(n, C)));
    for (int64_t i = 0; p && i < n * C; i++) {
        double angle = 2 * pi * (double)(i / C) / periods->value[i % C / 2];
        sb_tensor_set(p, i, i % 2 ? math_cos(angle) : math_sin(angle));
    }
    return p;
}

static bool is_worth_showing(const struct numbers *periods, int t, int alias)
{
    bool shown = t < 4 || t == alias || t + 1 == alias || t == 2 * alias;
    for (int i = 0; i < periods->count; i++)
        shown |= t == (int)periods->value[i];
    return shown;
}

static void write_waves(struct page *page, const struct numbers *periods)
{
    double dot[FARTHEST] = {0}; /* p(0) . p(t) for every t */
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *p = waves(periods, FARTHEST), *all = sb_matmul_nt(p, sb_slice(p, 0, 0, 1));
    page_need(page, all && sb_tensor_read(all, dot));
    page_need(page, sb_tape_end(&tape));
    int alias = 1;
    while (alias < FARTHEST && dot[alias] < dot[0] - 1e-9)
        alias++;
    page_table(page, "distances", "distance .0 | p(0) p(t) .4 | #4");
    for (int t = 0; t < FARTHEST && t <= 2 * alias; t++)
        if (is_worth_showing(periods, t, alias))
            PAGE_NUMBERS(page, NULL, t, dot[t]);
    if (alias < FARTHEST)
        page_text(
            page,
            "At a distance of %d all waves are in phase again: positions 0 and %d have the same "
            "encoding. Aliasing begins there, at the least common multiple of the periods.",
            alias, alias);
    else
        page_text(page, "The waves are not in phase again within %d positions.", FARTHEST);
}

/* The four parts of (x_q + p_q) . (x_k + p_k), each by a matrix product. */
static void write_terms(struct page *page, const struct numbers *periods)
{
    enum { KEYS = 8 };
    int64_t C = 2 * periods->count;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    sb_tensor *x = normal_numbers(&random, SB_SHAPE(1, C)), *p = waves(periods, KEYS);
    sb_tensor *content = sb_expand(x, 2, (const int64_t[]){KEYS, C}); /* one word everywhere */
    sb_tensor *at = sb_slice(p, 0, 2, 1), *both = sb_add(content, p), *query = sb_add(x, at);
    sb_tensor *terms[] = {sb_matmul_nt(x, content), sb_matmul_nt(x, p), sb_matmul_nt(at, content),
                          sb_matmul_nt(at, p), sb_matmul_nt(query, both)};
    page_table(page, "terms", "key at .0 | x x .3 | x p_k .3 | p_2 x .3 | p_2 p_k .3 | score .3");
    for (int t = 0; t < KEYS; t++) {
        struct page_cell cells[6] = {cell_of(t)};
        for (int i = 0; i < 5; i++)
            cells[1 + i] = cell_of(terms[i] ? sb_tensor_get(terms[i], t) : 0);
        page_row(page, cells);
    }
    page_need(page, sb_tape_end(&tape));
}

/* q . k after both are rotated by their positions, from `start` on; q is `behind` further. */
static double rotary_score(struct page *page, int64_t start, int64_t behind)
{
    static const double q[] = {1, 2, 0.5, -1}, k[] = {0.5, 1, -1, 2};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *tq = constant_of(SB_F64, SB_SHAPE(1, 1, 1, 4), q);
    sb_tensor *tk = constant_of(SB_F64, SB_SHAPE(1, 1, 1, 4), k);
    sb_tensor *turned = sb_rotary(tq, start + behind, 0), *other = sb_rotary(tk, start, 0);
    sb_tensor *product = sb_sum(sb_multiply(turned, other), SB_ALL, false);
    double score = product ? sb_tensor_value(product) : 0;
    page_need(page, sb_tape_end(&tape));
    return score;
}

static void write(struct page *page, const struct explain_options *o)
{
    struct numbers periods = list_or(&o->list[PERIODS], 2, own_periods);
    char list[160] = "";
    for (int i = 0, used = 0; i < periods.count; i++)
        used += snprintf(list + used, sizeof list - (size_t)used, i ? ", %.4g" : "%.4g",
                         periods.value[i]);
    page_title(page, "what positional encodings add to a score");
    page_text(
        page,
        "Position t is encoded by sin and cos of waves with periods %s. The dot product of two "
        "encodings is the sum of cos(2 pi distance / period): it depends on the distance alone.",
        list);
    write_waves(page, &periods);
    page_text(
        page,
        "Encodings are added to a word x, here the same at every key. The score of position 2 with "
        "key k, (x + p_2)(x + p_k), has four terms. Content with content is the same for all keys; "
        "position with position prefers near keys; W_q and W_k learn to use the mixed terms.");
    write_terms(page, &periods);
    page_text(
        page,
        "Rotary encodings rotate q and k instead of adding to them: 3 apart, the score is %.4g "
        "at the beginning and %.4g after 1000 positions; 4 apart it is %.4g. It depends on "
        "the distance alone.",
        rotary_score(page, 0, 3), rotary_score(page, 1000, 3), rotary_score(page, 0, 4));
}

const struct topic topic_positions = {"positions",
                                      "positional encodings: waves, aliasing, the terms of a score",
                                      1 << PERIODS, check, write};
