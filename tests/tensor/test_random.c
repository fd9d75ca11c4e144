#include "tensor/philox.h"
#include "tensor/random.h"
#include "tests/support/test.h"

/* Known answers of Philox4x32-10: Random123's kat_vectors, then further counters whose halves
   carry, in cuRAND's layout: key = seed, counter = (block, subsequence), 64 bits each. */
static const struct {
    uint64_t seed, subsequence, block;
    uint32_t word[4];
} known[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0a4093822,
     0x0370734413198a2e,
     0x85a308d3243f6a88,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    {1234, 0, 0, {0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e}},
    {1234, 0, 1, {0x9eeede35, 0x1cbe137c, 0xfa277093, 0x147edd50}},
    {1234, 5, 0, {0xf942741c, 0xb7a11b7a, 0x8b27a0cc, 0xbd95acc8}},
    {1234, 0, 0xffffffff, {0x3d851ed3, 0x6912435b, 0xe251185a, 0x47e5cc47}},
    {1234, 0, 0x100000000, {0x70c51b59, 0x3fbee9a5, 0x3a338d15, 0x56fb64a6}},
    {1234, 0xffffffff, UINT64_MAX, {0x644d04be, 0xf6410f2c, 0x2d07c80f, 0xb3754efc}},
    {42, 1, 3, {0x1e8dc7c5, 0xae3a5abf, 0x36d8462c, 0x080b604b}},
};

CPU_TEST(random, philox_gives_the_known_answers_in_curands_layout)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct philox draw = philox(known[i].seed, known[i].subsequence, known[i].block);
        cr_expect(memcmp(draw.word, known[i].word, sizeof draw.word) == 0, "answer %zu", i);
    }
}

CPU_TEST(random, each_draw_uses_one_position)
{
    sb_random random = sb_random_new(1234, SB_STREAM_INITIAL);
    cr_expect(random.position == 0);
    cr_expect(sb_random_bits(&random) == 0x2090b348 && random.position == 1);
    sb_random_uniform(&random);
    sb_random_normal(&random);
    sb_random_below(&random, 7);
    cr_expect(random.position == 4);
    random.position = 5;
    cr_expect(sb_random_bits(&random) == 0xf942741c);
    random.position = 0;
    uint64_t bits = (uint64_t)0x2090b348 << 32 | 0xda7cf0ab;
    cr_expect(sb_random_uniform(&random) == (double)(bits >> 11) / 9007199254740992.0);
}

CPU_TEST(random, streams_do_not_overlap)
{
    for (uint64_t stream = SB_STREAM_INITIAL; stream <= SB_STREAM_USER; stream++) {
        sb_random random = sb_random_new(7, (sb_stream)stream);
        cr_expect(random.position == stream << 48 && random.seed == 7);
    }
}

CPU_TEST(random, streams_and_seeds_are_independent)
{
    enum { N = 20000 };
    const sb_random start[] = {sb_random_new(7, SB_STREAM_TRAIN),
                               sb_random_new(7, SB_STREAM_DATA),
                               sb_random_new(8, SB_STREAM_TRAIN),
                               {7, sb_random_new(7, SB_STREAM_TRAIN).position + 1}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            sb_random a = start[i], b = start[j];
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += (sb_random_uniform(&a) - 0.5) * (sb_random_uniform(&b) - 0.5);
            /* the deviation of the correlation is 1 / sqrt N = 0.007 */
            cr_expect(fabs(sum / N * 12) < 0.03, "streams %d, %d: %g", i, j, sum / N * 12);
        }
}

CPU_TEST(random, uniform_numbers_have_the_right_moments)
{
    enum { N = 100000 };
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    double sum = 0, square = 0, least = 1, most = 0;
    for (int i = 0; i < N; i++) {
        double u = sb_random_uniform(&random);
        sum += u;
        square += u * u;
        least = fmin(least, u);
        most = fmax(most, u);
    }
    /* deviations of the two means: sqrt(1/12 / N) = 0.0009, sqrt(4/45 / N) = 0.0009 */
    cr_expect(fabs(sum / N - 1 / 2.0) < 0.004 && fabs(square / N - 1 / 3.0) < 0.004);
    cr_expect(least >= 0 && least < 1e-3 && most < 1 && most > 1 - 1e-3);
}

CPU_TEST(random, normal_numbers_have_the_right_moments)
{
    enum { N = 200000 };
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    double moment[5] = {0};
    int beyond_two = 0;
    for (int i = 0; i < N; i++) {
        double z = sb_random_normal(&random), power = 1;
        for (int k = 0; k < 5; k++, power *= z)
            moment[k] += power / N;
        beyond_two += fabs(z) > 2;
    }
    /* the deviations of the first four are sqrt((1, 2, 15, 96) / N) = 0.0022, 0.0032, 0.0087,
       0.022 */
    cr_expect(fabs(moment[1]) < 0.009 && fabs(moment[2] - 1) < 0.013);
    cr_expect(fabs(moment[3]) < 0.035 && fabs(moment[4] - 3) < 0.09);
    cr_expect(fabs((double)beyond_two / N - 0.0455) < 0.002);
}

CPU_TEST(random, normal_numbers_follow_box_and_muller)
{
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    for (int i = 0; i < 1000; i++) {
        struct philox draw = philox(3, random.position, 0);
        uint64_t a = (uint64_t)draw.word[0] << 32 | draw.word[1];
        uint64_t b = (uint64_t)draw.word[2] << 32 | draw.word[3];
        double u = (double)(a >> 11) * 0x1p-53, angle = 2 * M_PI * ((double)(b >> 11) * 0x1p-53);
        double expected = sqrt(-2 * log1p(-u)) * cos(angle);
        cr_expect(fabs(sb_random_normal(&random) - expected) < 1e-14);
    }
}

/* Without rejection of the remainder of 2^32, multiples of 3 would occur half of the time. */
CPU_TEST(random, below_is_without_bias)
{
    enum { N = 30000 };
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    int multiples = 0, count[7] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t value = sb_random_below(&random, 3221225472u); /* 3/4 of 2^32 */
        cr_expect(value < 3221225472u);
        multiples += value % 3 == 0;
        count[sb_random_below(&random, 7)]++;
    }
    cr_expect(fabs(multiples / (double)N - 1 / 3.0) < 0.011); /* four deviations */
    double chi_square = 0;
    for (int i = 0; i < 7; i++)
        chi_square += (count[i] - N / 7.0) * (count[i] - N / 7.0) / (N / 7.0);
    cr_expect(chi_square < 22.5, "chi square %g", chi_square); /* six degrees: 0.1 % */
}

CPU_TEST(random, below_one_is_zero_and_below_zero_is_refused)
{
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    for (int i = 0; i < 10; i++)
        cr_expect(sb_random_below(&random, 1) == 0);
    cr_expect(sb_random_below(&random, 0) == 0);
    EXPECT_ERROR("random_below: the limit is 0, not at least 1");
}

CPU_TEST(random, a_shuffle_is_a_permutation)
{
    sb_random random = sb_random_new(9, SB_STREAM_DATA);
    for (int64_t n = 0; n <= 100; n++) {
        int64_t order[101];
        bool seen[101] = {false};
        order[n] = -77;
        sb_random_shuffle(&random, n, order);
        for (int64_t i = 0; i < n; i++) {
            cr_assert(order[i] >= 0 && order[i] < n && !seen[order[i]]);
            seen[order[i]] = true;
        }
        cr_expect(order[n] == -77);
    }
}

CPU_TEST(random, every_order_is_equally_likely)
{
    enum { N = 24000 };
    sb_random random = sb_random_new(9, SB_STREAM_DATA);
    int count[64] = {0};
    for (int i = 0; i < N; i++) {
        int64_t order[3];
        sb_random_shuffle(&random, 3, order);
        count[order[0] * 16 + order[1] * 4 + order[2]]++;
    }
    double chi_square = 0;
    int orders = 0;
    for (int i = 0; i < 64; i++)
        if (count[i]) {
            chi_square += (count[i] - N / 6.0) * (count[i] - N / 6.0) / (N / 6.0);
            orders++;
        }
    cr_expect(orders == 6 && chi_square < 20.5, "chi square %g", chi_square); /* 5 degrees: 0.1 % */
}
