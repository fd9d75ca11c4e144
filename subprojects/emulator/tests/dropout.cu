/*
 * Dropout with cuRAND's Philox: four elements for each call; the mask depends on the element's
 * index and not on the launch. Also the generator's known answers (Random123's kat_vectors).
 */
#include "check.cuh"
#include <curand_philox4x32_x.h>

__global__ void dropout(const float *x, float *y, size_t count, unsigned threshold, uint2 key)
{
    size_t i = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
    if (i >= count)
        return;
    uint4 counter = make_uint4(static_cast<unsigned>(i / 4), 0, 0, 0);
    uint4 words = curand_Philox4x32_10(counter, key);
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
#ifdef PLANTED_WRITE_PAST_END
    count = i + 4;
#endif
    for (int j = 0; j < 4 && i + j < count; j++)
        y[i + j] = word[j] >= threshold ? x[i + j] * 2 : 0;
}

__global__ void generate(const uint4 *counters, const uint2 *keys, uint4 *words)
{
    words[threadIdx.x] = curand_Philox4x32_10(counters[threadIdx.x], keys[threadIdx.x]);
}

static void try_known_answers()
{
    std::vector<uint4> counters = {{0, 0, 0, 0},
                                   {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                                   {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
    std::vector<uint2> keys = {{0, 0}, {0xffffffff, 0xffffffff}, {0xa4093822, 0x299f31d0}};
    std::vector<uint4> answers = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                  {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    Array<uint4> on_counters(counters), on_words(3);
    Array<uint2> on_keys(keys);
    LAUNCH(generate, 1, 3, 0, 0, on_counters, on_keys, on_words);
    std::vector<uint4> words = on_words.read();
    check(memcmp(words.data(), answers.data(), sizeof(uint4) * 3) == 0,
          "Philox gives the published words");
}

static void try_dropout(size_t count)
{
    std::vector<float> x(count, 3);
    Array<float> from(x), to(count);
    LAUNCH(dropout, static_cast<unsigned>((count + 1023) / 1024), 256, 0, 0, from, to, count,
           0x80000000u, make_uint2(1, 2));
    double kept = 0;
    bool as_expected = true;
    for (float y : to.read()) {
        as_expected = as_expected && (y == 0 || y == 6);
        kept += y == 6;
    }
    check(as_expected, "kept elements are doubled, the others 0");
    check(fabs(kept / static_cast<double>(count) - 0.5) < 0.05,
          "about half of the elements are kept");
}

int main()
{
    try_known_answers();
    try_dropout(4097);
    return check_report();
}
