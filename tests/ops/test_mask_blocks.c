#include "tests/support/test.h"

static void expect_picture(const sb_mask *mask, int64_t Lq, int64_t Lk, const char *picture)
{
    MUST(mask);
    char *text = KEPT(sb_mask_text(mask, 0, 0, Lq, Lk));
    cr_expect_str_eq(text, picture);
}

TEST(mask_blocks, patterns_are_as_documented)
{
    TAPE(SB_RECORD);
    expect_picture(sb_mask_local(5, 5, 2, 0), 5, 5,
                   "##...\n"
                   "##...\n"
                   "..##.\n"
                   "..##.\n"
                   "....#\n");
    expect_picture(sb_mask_local(4, 6, 1, 1), 4, 6,
                   "##....\n"
                   "###...\n"
                   ".###..\n"
                   "..###.\n");
    expect_picture(sb_mask_strided(6, 6, 1, 0, 3), 6, 6,
                   "#.#..#\n"
                   ".##..#\n"
                   "..#..#\n"
                   "..##.#\n"
                   "..#.##\n"
                   "..#..#\n");
    expect_picture(sb_mask_global(5, 5, 1, 0, 1), 5, 5,
                   "#####\n"
                   "##...\n"
                   "#.#..\n"
                   "#..#.\n"
                   "#...#\n");
    const int64_t blocks[][2] = {{0, 1}, {1, 0}, {1, 2}};
    expect_picture(sb_mask_block_list(3, 5, 2, 3, blocks), 3, 5,
                   "..##.\n"
                   "..##.\n"
                   "##..#\n");
    expect_picture(sb_mask_and(sb_mask_local(4, 4, 2, 0), sb_mask_causal()), 4, 4,
                   "#...\n"
                   "##..\n"
                   "..#.\n"
                   "..##\n");
}

/* Different blocks for each head and sequence, compared with a dense mask of the same pairs. */
static void expect_like_pairs(int64_t size, int64_t L, sb_attention_algorithm algorithm)
{
    enum { B = 2, H = 2, D = 4 };
    int64_t n = (L + size - 1) / size;
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(B, L, H, D));
    sb_tensor *kept = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, H, n, n)));
    sb_tensor *pairs = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, H, L, L)));
    double *block = numbers_of(kept), *pair = numbers_of(pairs);
    sb_random r = sb_random_new(3, SB_STREAM_USER);
    for (int64_t i = 0; i < B * H * n * n; i++)
        block[i] = sb_random_uniform(&r) < 0.4;
    for (int64_t at = 0; at < B * H * L * L; at++) {
        int64_t head = at / L / L, i = at / L % L, j = at % L;
        pair[at] = block[(head * n + i / size) * n + j / size];
    }
    MUST(sb_tensor_write(kept, block) && sb_tensor_write(pairs, pair));
    sb_attention_options o = {.mask = sb_mask_blocks(kept, size), .algorithm = algorithm};
    sb_tensor *y = sb_attention(x, x, x, &o);
    o = (sb_attention_options){.mask = sb_mask_allow(pairs), .algorithm = SB_ATTENTION_COMPOSED};
    sb_tensor *z = sb_attention(x, x, x, &o);
    cr_expect(test_relative(y, z) < 1e-13, "size %d, length %d: %g", (int)size, (int)L,
              test_relative(y, z));
}

TEST(mask_blocks, a_block_mask_keeps_the_pairs_of_its_blocks)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    for (int way = 0; way < 2; way++) {
        sb_attention_algorithm algorithm = way ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
        expect_like_pairs(1, 5, algorithm);
        expect_like_pairs(3, 10, algorithm);
        expect_like_pairs(7, 70, algorithm);
        expect_like_pairs(64, 300, algorithm);
        expect_like_pairs(300, 280, algorithm);
    }
}
