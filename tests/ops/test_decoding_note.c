#include "ops/decoding.h"
#include "tests/support/values.h"

enum { SEQUENCES = 300, STEPS = 4 };

TEST(decoding_note, symbols_go_to_the_next_step_and_to_a_ring_for_the_host)
{
    int32_t best[SEQUENCES];
    float log_p[SEQUENCES];
    for (int b = 0; b < SEQUENCES; b++) {
        best[b] = 7 + b;
        log_p[b] = -0.5f * (float)b;
    }
    sb_tensor *chosen = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(SEQUENCES), best));
    sb_tensor *value = KEPT(sb_tensor_from(SB_F32, SB_SHAPE(SEQUENCES), log_p));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(SEQUENCES)));
    sb_tensor *at = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), 6));
    sb_tensor *lengths = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(SEQUENCES), 7));
    sb_tensor *noted = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(STEPS, SEQUENCES, 2), -1));
    const struct decoding_kernels *k = kernel_row(&decoding_rows, value);
    const struct decoding_note note = {SEQUENCES, STEPS,    chosen->data,  value->data,
                                       ids->data, at->data, lengths->data, noted->data};
    MUST(k && k->note(&note) && k->note(&note)); /* rows 2 and 3 */
    double *rows = numbers_of(noted);
    for (int i = 0; i < STEPS * SEQUENCES; i++) {
        const int b = i % SEQUENCES;
        const bool written = i / SEQUENCES >= 2;
        cr_assert(rows[2 * i] == (written ? best[b] : -1) &&
                      rows[2 * i + 1] == (written ? (double)log_p[b] : -1),
                  "row %d, sequence %d: %g, %g", i / SEQUENCES, b, rows[2 * i], rows[2 * i + 1]);
    }
    for (int b = 0; b < SEQUENCES; b += 43)
        cr_expect(sb_tensor_get(ids, b) == best[b] && sb_tensor_get(lengths, b) == 9);
    cr_expect(sb_tensor_get(at, 0) == 8);
}

/* A step of two beams of 2, with the symbols 2 (end) and 4 to 9, and what it must leave. */
enum { TEXTS = 2, WIDTH = 2, SLOTS = WIDTH + 1, READS = 5, ROWS = TEXTS * SLOTS, BEAM_STEPS = 3 };

static const int32_t best[ROWS * READS] = {0, 2, 4, 5, 6, 4, 2, 1, 7, 8, 4, 5, 6, 7, 8,
                                           2, 4, 0, 5, 6, 9, 8, 7, 6, 5, 9, 8, 7, 6, 5};
static const float log_p[ROWS * READS] = {
    -0.125f, -0.5f,  -1, -1, -4, -0.75f, -1, -1.5f, -2, -3, -0.5f, -0.5f, -1, -2, -3,
    -0.25f,  -0.75f, -1, -2, -3, -0.5f,  -1, -1.5f, -2, -3, -0.5f, -1,    -2, -3, -4};

static const struct {
    double before[ROWS], after[ROWS];
    int32_t greedy_before[TEXTS], greedy_after[TEXTS], from[ROWS], ids[ROWS];
} beams = {
    /* The first text: of equal ones the lower id first; greedy decoding's is not among the best
       two, and 6 not among the first three that are allowed. The second: greedy decoding ends. */
    .before = {-1, -2, -INFINITY, -1, -INFINITY, -INFINITY},
    .after = {-2, -2, -2.75, -1.75, -3, -INFINITY},
    .greedy_before = {1, 0},
    .greedy_after = {2, -1},
    .from = {0, 0, 1, 0, 0, 2},
    .ids = {4, 5, 4, 4, 5, 2},
};

static void expect_ids(const sb_tensor *t, int n, const int32_t *expected)
{
    double numbers[ROWS];
    for (int i = 0; i < n; i++)
        numbers[i] = expected[i];
    expect_numbers(t, n, numbers);
}

static void expect_noted(sb_tensor *noted, int64_t step)
{
    double *all = numbers_of(noted), *rows = all + step * ROWS * (2 + 2 * READS);
    for (int r = 0; r < ROWS; r++, rows += 2 + 2 * READS) {
        cr_expect(rows[0] == beams.from[r] && rows[1] == beams.ids[r], "row %d: %g, %g", r, rows[0],
                  rows[1]);
        for (int i = 0; i < READS; i++)
            cr_expect(rows[2 + 2 * i] == best[r * READS + i] &&
                          rows[3 + 2 * i] == (double)log_p[r * READS + i],
                      "row %d, symbol %d: %g, %g", r, i, rows[2 + 2 * i], rows[3 + 2 * i]);
    }
}

TEST(decoding_note, a_beam_keeps_its_most_probable_hypotheses_and_that_of_greedy_decoding)
{
    sb_tensor *t[] = {KEPT(sb_tensor_from(SB_I32, SB_SHAPE(ROWS, READS), best)),
                      KEPT(sb_tensor_from(SB_F32, SB_SHAPE(ROWS, READS), log_p)),
                      KEPT(sb_tensor_from(SB_F64, SB_SHAPE(ROWS), beams.before)),
                      KEPT(sb_tensor_from(SB_I32, SB_SHAPE(TEXTS), beams.greedy_before)),
                      KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(ROWS))),
                      KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(ROWS))),
                      KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), 4)),
                      KEPT(sb_tensor_full(SB_I32, SB_SHAPE(ROWS), 5)),
                      KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(BEAM_STEPS, ROWS, 2 + 2 * READS)))};
    const struct decoding_kernels *k = kernel_row(&decoding_rows, t[1]);
    const struct decoding_beam beam = {TEXTS,      WIDTH,      READS,      BEAM_STEPS, 2,
                                       4,          t[0]->data, t[1]->data, t[2]->data, t[3]->data,
                                       t[4]->data, t[5]->data, t[6]->data, t[7]->data, t[8]->data};
    MUST(k && k->extend(&beam));
    expect_numbers(t[2], ROWS, beams.after);
    expect_ids(t[3], TEXTS, beams.greedy_after);
    expect_ids(t[4], ROWS, beams.from);
    expect_ids(t[5], ROWS, beams.ids);
    expect_noted(t[8], 1); /* position 4 of a ring of 3 */
    cr_expect(sb_tensor_get(t[6], 0) == 5 && sb_tensor_get(t[7], ROWS - 1) == 6);
}

/* Caches whose positions have 3 and 8 numbers, so that most blocks are not aligned. */
TEST(decoding_note, caches_are_rearranged_in_place)
{
    enum { ROOM = 5, FILLED = 4 };
    static const int32_t from[ROWS] = {1, 2, 1, 0, 1, 0};
    static const int64_t sizes[] = {3, 8};
    sb_tensor *there = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(TEXTS, SLOTS), from));
    sb_tensor *filled = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), FILLED)), *cache[2];
    struct decoding_caches caches = {TEXTS, SLOTS, there->data, filled->data, 2, {{0}}};
    for (int c = 0; c < 2; c++) {
        int32_t numbers[ROWS * ROOM * 8];
        for (int32_t i = 0; i < ROWS * ROOM * sizes[c]; i++)
            numbers[i] = i;
        cache[c] = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(ROWS, ROOM, sizes[c]), numbers));
        caches.cache[c] =
            (struct decoding_cache){cache[c]->data, ROOM * sizes[c] * 4, sizes[c] * 4};
    }
    const struct decoding_kernels *k = kernel_row(&decoding_rows, there);
    MUST(k && k->rearrange(&caches));
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0, of_row = ROOM * sizes[c]; i < ROWS * of_row; i++) {
            const int64_t row = i / of_row, inside = i % of_row,
                          was = row - row % SLOTS + from[row],
                          expected = inside < FILLED * sizes[c] ? was * of_row + inside : i;
            cr_expect(sb_tensor_get(cache[c], i) == (double)expected, "cache %d, %d: %g, not %d", c,
                      (int)i, sb_tensor_get(cache[c], i), (int)expected);
        }
}
