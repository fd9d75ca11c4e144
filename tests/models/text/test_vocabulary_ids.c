/* Vocabularies of ids, which another program's tokenizer makes. */
#include "models/text/vocabulary_json.h"
#include "tests/support/test.h"
#include <string.h>

CPU_TEST(vocabulary_ids, a_text_of_ids_is_their_numbers)
{
    sb_vocabulary *v = KEPT(sb_vocabulary_of_ids(120, 7, 0, 119));
    cr_assert(v, "%s", sb_error());
    int64_t n;
    int32_t *ids = sb_vocabulary_encode(v, "0 7 119 12", &n, NULL);
    cr_assert(ids && n == 4, "%s", sb_error());
    cr_expect(ids[0] == 0 && ids[1] == 7 && ids[2] == 119 && ids[3] == 12);
    char *text = sb_vocabulary_decode(v, ids, n);
    cr_expect(text && strcmp(text, "0 7") == 0, "the end, 119, ends it: %s", text);
    cr_expect(strcmp(sb_vocabulary_symbol(v, 119), "119") == 0);
    cr_expect(sb_vocabulary_size(v) == 120 && sb_vocabulary_symbols(v) == 120);
    cr_expect(sb_vocabulary_special(v, SB_SYMBOL_BEGIN) == 0 &&
              sb_vocabulary_special(v, SB_SYMBOL_UNKNOWN) == -1 &&
              sb_vocabulary_special(v, 4) == -1);
    static const char *const bad[] = {"120", "-1", "01", "1,2", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!sb_vocabulary_encode(v, bad[i], &n, NULL) && strstr(sb_error(), "is no id"),
                  "%s", bad[i]);
    sb_free(ids);
    sb_free(text);
}

CPU_TEST(vocabulary_ids, learned_ids_are_followed_by_begin_and_end)
{
    const sb_vocabulary_options ids = {.units = SB_UNITS_IDS};
    const char *texts[] = {"3 1", "", "9"};
    sb_vocabulary *v = sb_vocabulary_new(texts, 3, &ids);
    cr_assert(v, "%s", sb_error());
    cr_expect(sb_vocabulary_size(v) == 12 && sb_vocabulary_special(v, SB_SYMBOL_BEGIN) == 10 &&
              sb_vocabulary_special(v, SB_SYMBOL_END) == 11);
    json_t *json = vocabulary_to_json(v);
    sb_vocabulary *again = vocabulary_from_json(json);
    cr_assert(again, "%s", sb_error());
    cr_expect(sb_vocabulary_size(again) == 12 && sb_vocabulary_special(again, SB_SYMBOL_END) == 11);
    json_decref(json);
    sb_vocabulary_release(again);
    sb_vocabulary_release(v);
    texts[1] = "two";
    cr_expect(!sb_vocabulary_new(texts, 3, &ids));
    EXPECT_ERROR("text 1 has more than ids");
    cr_expect(!sb_vocabulary_of_ids(0, -1, 0, 0) && !sb_vocabulary_of_ids(9, -1, 9, 0));
    EXPECT_ERROR("begin 9");
}
