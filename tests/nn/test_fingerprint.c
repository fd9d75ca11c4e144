/* Fingerprints of tensors change with any bit, but not with the order of parts. */
#include "nn/fingerprint.h"
#include "tests/support/mailbox.h"
#include "tests/support/test.h"

static const int64_t shape[] = {4, 6};

static uint64_t of(const char *name, const char *dtype, int rank, const int64_t *dim,
                   const float *x, int64_t first, int64_t count)
{
    const struct fingerprint_tensor t = fingerprint_tensor(name, dtype, rank, dim);
    return fingerprint_elements(t.key, SB_F32, first, count, x);
}

static uint64_t whole(const float x[24])
{
    return of("w", "F32", 2, shape, x, 0, 24);
}

static void fill(float x[24])
{
    for (int i = 0; i < 24; i++)
        x[i] = 0.25f * (float)(i % 7);
}

CPU_TEST(fingerprint, each_bit_changes_it)
{
    float x[24], y[24];
    fill(x);
    for (int bit = 0; bit < 32 * 24; bit++) {
        uint32_t word;
        memcpy(y, x, sizeof y);
        memcpy(&word, &y[bit / 32], sizeof word);
        word ^= (uint32_t)1 << bit % 32;
        memcpy(&y[bit / 32], &word, sizeof word);
        cr_expect(whole(x) != whole(y), "bit %d", bit);
    }
}

CPU_TEST(fingerprint, names_dtypes_shapes_and_positions_change_it)
{
    static const int64_t turned[] = {6, 4}, flat[] = {24};
    float x[24], y[24];
    fill(x);
    memcpy(y, x, sizeof y);
    y[3] = x[5];
    y[5] = x[3];
    const uint64_t other[] = {
        of("v", "F32", 2, shape, x, 0, 24),  of("w", "F16", 2, shape, x, 0, 24),
        of("w", "F32", 2, turned, x, 0, 24), of("w", "F32", 1, flat, x, 0, 24),
        of("w", "F32", 2, shape, x, 1, 24),  whole(y)};
    for (int i = 0; i < 6; i++)
        cr_expect(other[i] != whole(x), "%d", i);
    const struct fingerprint_tensor a = fingerprint_tensor("a", "F32", 1, (int64_t[]){0}),
                                    b = fingerprint_tensor("b", "F32", 1, (int64_t[]){0});
    cr_expect(a.term != b.term && a.term != 0, "tensors without elements count");
}

CPU_TEST(fingerprint, parts_add_up_to_that_of_the_whole_tensor)
{
    float x[24];
    fill(x);
    uint64_t sum = 0;
    for (int row = 3; row >= 0; row--) /* columns 2 to 5, and then 0 and 1 */
        sum += of("w", "F32", 2, shape, x + 6 * row + 2, 6 * row + 2, 4);
    for (int row = 0; row < 4; row++)
        sum += of("w", "F32", 2, shape, x + 6 * row, 6 * row, 2);
    cr_expect(sum == whole(x));
}

static void add_up(sb_communicator *c, void *sums_)
{
    uint64_t *sums = sums_;
    const int rank = sb_communicator_rank(c);
    uint64_t own = 0xfedcba9876543210u * (uint64_t)(rank + 1);
    sums[rank] = fingerprint_sum(c, &own) ? own : 0;
}

CPU_TEST(fingerprint, ranks_add_up_their_parts_modulo_2_to_the_64)
{
    uint64_t sums[3];
    mailbox_run(3, add_up, sums);
    for (int rank = 0; rank < 3; rank++)
        cr_expect(sums[rank] == 0xfedcba9876543210u * 6, "rank %d", rank);
}

CPU_TEST(fingerprint, its_text_is_16_hexadecimal_digits)
{
    uint64_t back;
    cr_expect_str_eq(fingerprint_text(0x123456789abcdefu).text, "0123456789abcdef");
    cr_expect(fingerprint_parse("fedcba9876543210", &back) && back == 0xfedcba9876543210u);
    static const char *const bad[] = {"",
                                      "0",
                                      "0123456789abcde",
                                      "0123456789abcdef0",
                                      "0123456789ABCDEF",
                                      "0x23456789abcdef",
                                      " 123456789abcdef"};
    for (int i = 0; i < 7; i++)
        cr_expect(!fingerprint_parse(bad[i], &back), "%s", bad[i]);
}
