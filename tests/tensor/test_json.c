#include "tensor/json.h"
#include "tests/support/json_memory.h"
#include "tests/support/test.h"
#include <stdlib.h>

static bool reads(const char *text)
{
    struct json json;
    bool ok = json_read(&json, "test", text, strlen(text));
    if (ok)
        json_free(&json);
    return ok;
}

CPU_TEST(json, valid_json_is_read)
{
    const char *text = " {\"a\": [1, -2, 0.5, true, null], \"\\u00e9\": \"\\ud83d\\ude00\"} ";
    struct json json;
    MUST(json_read(&json, "test", text, strlen(text)));
    cr_expect(json_integer_value(json_array_get(json_object_get(json.value, "a"), 1)) == -2);
    cr_expect_str_eq(json_string_value(json_object_get(json.value, "\xC3\xA9")),
                     "\xF0\x9F\x98\x80");
    json_free(&json);
}

CPU_TEST(json, invalid_json_is_refused_with_its_position)
{
    static const char *const table[][2] = {
        {"", "test: JSON, byte 0: "},
        {"{", "test: JSON, byte 1: \"string or '}' expected near end of file\""},
        {"{\"a\":1,\"a\":2}", "duplicate object key near '\"a\"'"},
        {"{\"a\":1,\"\\u0061\":2}", "duplicate object key"},
        {"[1,]", "unexpected token near ']'"},
        {"[1] x", "end of file expected near 'x'"},
        {"[\"\xC3\"]", "unable to decode byte 0xc3"},
        {"[\"\\ud800\"]", "invalid Unicode '\\uD800'"},
        {"[\"\\u0000\"]", "\\u0000 is not allowed"},
        {"[9223372036854775808]", "too big integer"},
        {"[\"\x1B[2J\"]", "control character 0x1b"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cr_expect(!reads(table[i][0]), "%s", table[i][0]);
        EXPECT_ERROR(table[i][1]);
    }
}

CPU_TEST(json, a_text_that_takes_much_more_memory_than_its_size_is_refused)
{
    char text[2000];
    memset(text, '[', sizeof text);
    struct json json;
    cr_expect(!json_read(&json, "test", text, sizeof text));
    EXPECT_ERROR("test: JSON: 2000 bytes need more than 36 times as much memory");
    memset(text, '"', 1);
    memset(text + sizeof text - 1, '"', 1);
    cr_expect(!json_read(&json, "test", text, sizeof text));
    EXPECT_ERROR("'[' or '{' expected"); /* brackets in strings do not count */
}

/* The most expensive texts that are accepted. */
CPU_TEST(json, memory_is_at_most_40_times_the_text)
{
    static const char *const unit[] = {
        "1", "0.5", "\"\"", "[1,0,1,2,3,4]", "[     ]", "{          }", "\"abcdefghijkl\"", "-1"};
    enum { UNITS = 20000, ROOM = 24 };
    char *text = KEPT(malloc(UNITS * ROOM));
    int taken = 0;
    for (size_t i = 0; i < 2 * sizeof unit / sizeof unit[0]; i++) {
        bool keys = i % 2;
        size_t used = 1;
        text[0] = keys ? '{' : '[';
        for (int n = 0; n < UNITS; n++) {
            if (keys)
                used += (size_t)sprintf(text + used, "%s\"%x\":", n ? "," : "", n);
            else if (n)
                text[used++] = ',';
            used += (size_t)sprintf(text + used, "%s", unit[i / 2]);
        }
        text[used++] = keys ? '}' : ']';
        sb_device_reset_peak(sb_device_cpu());
        json_memory_count();
        struct json json;
        bool ok = json_read(&json, "test", text, used);
        cr_expect(ok || strstr(sb_error(), "more than 36 times"), "%s", sb_error());
        cr_expect(json_memory_peak == 0, "%.60s: takes more than expected", text);
        cr_expect(sb_device_memory(sb_device_cpu()).peak_bytes <= 42 * (int64_t)used, "%.60s",
                  text);
        taken += ok;
        if (ok)
            json_free(&json);
    }
    cr_expect(taken > 10, "%d", taken);
}

/* A program may have set its own allocator in Jansson; it stays in use. */
CPU_TEST(json, the_programs_own_allocator_stays_in_use)
{
    json_memory_count();
    json_t *own = json_pack("{s:s}", "key", "value");
    int64_t taken = json_memory_live;
    cr_expect(taken > 0);
    cr_expect(reads("[1, 2, 3]"));
    cr_expect(json_memory_live == taken && json_memory_peak == taken);
    json_t *more = json_array();
    cr_expect(json_memory_live > taken);
    json_decref(more);
    json_decref(own);
    cr_expect(json_memory_live == 0);
}

static bool read_long_texts(void *unused)
{
    (void)unused;
    return reads("{\"a key that is longer than any first buffer is\": "
                 "[\"a text that is longer than both, so that room is made\", 17]}");
}

CPU_TEST(json, only_one_allocation_can_fail)
{
    cr_expect(test_each_allocation_fails(read_long_texts, NULL) == 1);
}
