/* Texts: UTF-8 and JSON. */
#include "tensor/json.h"
#include "tensor/utf8.h"
#include "tests/support/json_memory.h"
#include "tests/support/test.h"
#include <criterion/redirect.h>
#include <stdio.h>

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
    REFUSED("test: JSON: 2000 bytes need more than 36 times as much memory",
            json_read(&json, "test", text, sizeof text));
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

/* ---- utf8 ---- */

/* Whether these bytes are one complete character. */
static bool is_character(const unsigned char *bytes, size_t size)
{
    size_t at = 0;
    return utf8_next((const char *)bytes, size, &at) >= 0 && at == size;
}

/* RFC 3629's table, written out: the bytes of a code point. */
static size_t encode(int32_t point, unsigned char *bytes)
{
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        bytes[0] = (unsigned char)(0xC0 + point / 64);
        bytes[1] = (unsigned char)(0x80 + point % 64);
        return 2;
    }
    if (point < 0x10000) {
        bytes[0] = (unsigned char)(0xE0 + point / 4096);
        bytes[1] = (unsigned char)(0x80 + point / 64 % 64);
        bytes[2] = (unsigned char)(0x80 + point % 64);
        return 3;
    }
    bytes[0] = (unsigned char)(0xF0 + point / 262144);
    bytes[1] = (unsigned char)(0x80 + point / 4096 % 64);
    bytes[2] = (unsigned char)(0x80 + point / 64 % 64);
    bytes[3] = (unsigned char)(0x80 + point % 64);
    return 4;
}

CPU_TEST(utf8, every_code_point_except_surrogates_is_read)
{
    for (int32_t point = 0; point <= 0x10FFFF; point++) {
        unsigned char bytes[4];
        size_t size = encode(point, bytes), at = 0;
        bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        int32_t read = utf8_next((const char *)bytes, size, &at);
        cr_assert(read == (surrogate ? -1 : point), "U+%04X is read as %d", (unsigned)point, read);
        cr_assert(at == (surrogate ? 0 : size));
        at = 0;
        cr_assert(utf8_next((const char *)bytes, size - 1, &at) == -1, "U+%04X is cut off",
                  (unsigned)point);
    }
}

/* There are as many characters as code points: with the test above, no overlong form, no code point
   above U+10FFFF and no stray byte is accepted. */
CPU_TEST(utf8, no_other_bytes_are_characters)
{
    int64_t found[5] = {0};
    for (int a = 0; a < 256; a++) {
        found[1] += is_character((unsigned char[]){(unsigned char)a}, 1);
        for (int b = 0; b < 256; b++) {
            unsigned char two[] = {(unsigned char)a, (unsigned char)b};
            found[2] += is_character(two, 2);
            for (int c = 0x7F; c <= 0xC0; c++) {
                unsigned char three[] = {two[0], two[1], (unsigned char)c};
                found[3] += is_character(three, 3);
                for (int d = 0x7F; a >= 0xE0 && d <= 0xC0; d++) {
                    unsigned char four[] = {two[0], two[1], three[2], (unsigned char)d};
                    found[4] += is_character(four, 4);
                }
            }
        }
    }
    cr_expect(found[1] == 0x80);
    cr_expect(found[2] == 0x800 - 0x80);
    cr_expect(found[3] == 0x10000 - 0x800 - 0x800);
    cr_expect(found[4] == 0x110000 - 0x10000);
}

CPU_TEST(utf8, the_first_malformed_byte_is_found)
{
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"na\xC3\xAFve", 6},
        {"\xFF", 0},
        {"ab\x80", 2},             /* a continuation byte alone */
        {"ab\xC3", 2},             /* truncated */
        {"ab\xC3\xAF\xE2\x82", 4}, /* truncated after a character */
        {"\xC0\x80", 0},           /* U+0000 in two bytes */
        {"/\xE0\x80\xAF", 1},      /* '/' in three bytes */
        {"\xED\xA0\x80", 0},       /* a surrogate */
        {"\xF4\x8F\xBF\xBF", 4},   /* U+10FFFF */
        {"\xF4\x90\x80\x80", 0},   /* U+110000 */
        {"\xF5\x80\x80\x80", 0},
        {"\xE2\x82\xAC\xE2\x28\xA1", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].text);
        cr_expect(utf8_valid_size(cases[i].text, size) == cases[i].valid, "case %zu", i);
        cr_expect(utf8_valid(cases[i].text, size) == (cases[i].valid == size), "case %zu", i);
    }
}

CPU_TEST(utf8, a_zero_byte_is_a_character)
{
    size_t at = 1;
    cr_expect(utf8_next("a\0b", 3, &at) == 0);
    cr_expect(at == 2);
    cr_expect(utf8_valid("a\0b", 3));
}

CPU_TEST(utf8, a_quoted_text_has_no_control_characters)
{
    cr_expect_str_eq(utf8_quote("na\xC3\xAFve").text, "\"na\xC3\xAFve\"");
    cr_expect_str_eq(utf8_quote("a\x1B[2Jb\xC2\x9B\xFF").text, "\"a?[2Jb??\"");
}

CPU_TEST(utf8, what_reorders_a_text_is_not_shown)
{
    static const char *const marks[] = {"\xD8\x9C",     "\xE2\x80\x8E", "\xE2\x80\x8F",
                                        "\xE2\x80\xAA", "\xE2\x80\xAE", "\xE2\x81\xA6",
                                        "\xE2\x81\xA9"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char text[16];
        snprintf(text, sizeof text, "a%s\tb\n", marks[i]);
        cr_expect_str_eq(utf8_quote(text).text, "\"a??b?\"");
        utf8_disarm(text);
        cr_expect_str_eq(text, "a?\tb\n");
    }
    char others[] = "\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xD9\x85\xFF\xE2\x80";
    utf8_disarm(others);
    cr_expect_str_eq(others, "\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xD9\x85???");
}

/* The beginning and the end of a long text are shown, in complete characters. */
CPU_TEST(utf8, a_long_quoted_text_is_shortened_in_the_middle)
{
    char text[901];
    for (int i = 0; i < 300; i++)
        memcpy(text + 3 * i, "\xE2\x82\xAC", 4);
    for (int shift = 0; shift < 3; shift++) {
        struct quoted quoted = utf8_quote(text + 3 * 300 - 3 * (int)(250 + shift));
        size_t size = strlen(quoted.text);
        cr_expect(size < sizeof quoted.text && size > 150);
        cr_expect(utf8_valid(quoted.text, size) && !strchr(quoted.text, '?'));
        cr_expect(strstr(quoted.text, "..."));
    }
    cr_expect(strstr(utf8_quote("short").text, "...") == NULL);
}

static void expect_text(sb_tensor *t, const char *expected)
{
    char *text = KEPT(sb_tensor_text(t));
    cr_expect(text && strcmp(text, expected) == 0, "the text is\n%s", text);
    sb_tensor_release(t);
}

TEST(text, tensors_show_dtype_shape_and_elements)
{
    expect_text(sb_tensor_scalar(SB_F32, 0.5), "f32 () 0.5");
    expect_text(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3), (double[]){1, -2, 1 / 3.0}),
                "f64 (3) [1 -2 0.33333]");
    expect_text(
        sb_tensor_from_doubles(SB_I32, SB_SHAPE(3), (double[]){INT32_MIN, INT32_MAX, 123456}),
        "i32 (3) [-2147483648 2147483647 123456]");
    expect_text(sb_tensor_from_doubles(SB_I32, SB_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}),
                "i32 (2, 3)\n[[1 2 3]\n [4 5 6]]");
    expect_text(sb_tensor_full(SB_BOOL, SB_SHAPE(2, 1, 2), 1),
                "bool (2, 1, 2)\n[[[1 1]]\n [[1 1]]]");
    expect_text(sb_tensor_full(SB_F32, SB_SHAPE(2), NAN), "f32 (2) [nan nan]");
    expect_text(sb_tensor_zeros(SB_F32, SB_SHAPE(0)), "f32 (0) []");
}

TEST(text, the_middle_of_a_long_axis_is_omitted)
{
    double values[11] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    expect_text(sb_tensor_from_doubles(SB_F32, SB_SHAPE(9), values), "f32 (9) [0 1 2 3 4 5 6 7 8]");
    expect_text(sb_tensor_from_doubles(SB_F32, SB_SHAPE(11), values),
                "f32 (11) [0 1 2 3 ... 7 8 9 10]");
    expect_text(sb_tensor_zeros(SB_F32, SB_SHAPE(10, 1)),
                "f32 (10, 1)\n[[0]\n [0]\n [0]\n [0]\n ...\n [0]\n [0]\n [0]\n [0]]");
}

CPU_TEST(text, null_is_refused)
{
    REFUSED("tensor_text: t is NULL", sb_tensor_text(NULL));
}

TEST(text, printing_null_shows_the_last_error)
{
    cr_redirect_stdout();
    sb_tensor *t = sb_tensor_full(SB_F32, SB_SHAPE(2), 3);
    sb_tensor_print(t);
    sb_tensor_release(t);
    sb_fail("softmax: no tape is open");
    sb_tensor_print(NULL);
    fflush(stdout);
    cr_assert_stdout_eq_str("f32 (2) [3 3]\n(no tensor) softmax: no tape is open\n");
}
