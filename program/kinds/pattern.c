#include "program/kinds/pattern.h"
#include "tensor/random.h"
#include <stdbool.h>
#include <string.h>

const char pattern_task[] = "pattern";

enum { PATTERN_LEAST = 4, PATTERN_MOST = 16, PATTERN_LETTERS = 4 };

/* A text with the pattern, or one without. */
static void pattern_make(sb_random *random, bool with, char text[PATTERN_MOST + 1])
{
    static const char pattern[] = "abc";
    const size_t size = sizeof pattern - 1;
    uint32_t length;
    do {
        length = PATTERN_LEAST + sb_random_below(random, PATTERN_MOST - PATTERN_LEAST + 1);
        for (uint32_t i = 0; i < length; i++)
            text[i] = (char)('a' + sb_random_below(random, PATTERN_LETTERS));
        text[length] = '\0';
    } while (!with && strstr(text, pattern));
    if (with)
        memcpy(text + sb_random_below(random, length - (uint32_t)size + 1), pattern, size);
}

sb_pairs *pattern_pairs(uint64_t seed, sb_part part, int64_t count)
{
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    random.position += ((uint64_t)part + 1) << 40;
    sb_pairs *pairs = sb_pairs_new();
    char text[PATTERN_MOST + 1];
    for (int64_t i = 0; pairs && i < count; i++) {
        pattern_make(&random, i % 2 == 0, text);
        if (!sb_pairs_add(pairs, text, i % 2 == 0 ? "yes" : "no")) {
            sb_pairs_free(pairs);
            return NULL;
        }
    }
    return pairs;
}
