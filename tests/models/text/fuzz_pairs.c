/* What libFuzzer runs, see fuzz.sh: reads any bytes as lines of source, tab, target. */
#include "models/text/pairs.h"
#include "models/text/vocabulary.h"
#include "tensor/device.h"
#include "tensor/utf8.h"
#include "tests/support/fuzz.h"
#include <string.h>

/* What is read is text that a vocabulary encodes and decodes. */
static void use(const sb_pairs *pairs)
{
    const int64_t n = sb_pairs_count(pairs);
    sb_vocabulary *v = sb_vocabulary_new(sb_pairs_sources(pairs), n, NULL);
    for (int64_t i = 0; v && i < n; i++) {
        const char *source = sb_pairs_source(pairs, i), *target = sb_pairs_target(pairs, i);
        int64_t count;
        check(utf8_valid(source, strlen(source)) && utf8_valid(target, strlen(target)) &&
                  !strpbrk(source, "\t\n") && !strpbrk(target, "\t\n"),
              "a side is a line of UTF-8 without a tab");
        int32_t *ids = sb_vocabulary_encode(v, source, &count, NULL);
        char *again = ids ? sb_vocabulary_decode(v, ids, count) : NULL;
        check(again != NULL, "a source is encoded and decoded");
        sb_free(again);
        sb_free(ids);
    }
    sb_vocabulary_release(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sb_pairs *pairs = sb_pairs_parse("bytes", (const char *)bytes, size, NULL);
    check(pairs || sb_error()[0], "a refusal has a message");
    if (pairs)
        use(pairs);
    sb_pairs_free(pairs);
    check(memory_pool()->live_blocks == 0, "nothing is live at the end");
    return 0;
}
