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
    sb_tensor *chosen = sb_tensor_from(SB_I32, SB_SHAPE(SEQUENCES), best);
    sb_tensor *value = sb_tensor_from(SB_F32, SB_SHAPE(SEQUENCES), log_p);
    sb_tensor *ids = sb_tensor_zeros(SB_I32, SB_SHAPE(SEQUENCES));
    sb_tensor *at = sb_tensor_full(SB_I32, SB_SHAPE(1), 6);
    sb_tensor *lengths = sb_tensor_full(SB_I32, SB_SHAPE(SEQUENCES), 7);
    sb_tensor *noted = sb_tensor_full(SB_F64, SB_SHAPE(STEPS, SEQUENCES, 2), -1);
    const struct decoding_kernels *k = kernel_row(&decoding_rows, value);
    const struct decoding_note note = {SEQUENCES, STEPS,    chosen->data,  value->data,
                                       ids->data, at->data, lengths->data, noted->data};
    cr_assert(k && k->note(&note) && k->note(&note), "%s", sb_error()); /* rows 2 and 3 */
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
    free(rows);
    sb_tensor *all[] = {chosen, value, ids, at, lengths, noted};
    for (int i = 0; i < 6; i++)
        sb_tensor_release(all[i]);
}
