#include "tensor/json_reader.h"
#include "tests/test.h"
#include <stdio.h>

/* A reader over a copy in a block of exactly the text's size, so that a sanitizer sees a step
   beyond it. */
static struct json_reader reader(const char *text)
{
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    return (struct json_reader){.what = "test", .text = copy, .size = size};
}

/* Reads {"key": [whole, ...], ...} and adds all up; -1 on failure. */
static int64_t sum(const char *text)
{
    struct json_reader json = reader(text);
    int64_t total = 0;
    reader_object(&json);
    while (reader_key(&json))
        for (reader_array(&json); reader_item(&json);)
            total += reader_whole(&json);
    bool ok = reader_end(&json);
    free(json.text);
    return ok ? total : -1;
}

CLAIM(json_reader, objects_and_arrays_are_read_with_any_white_space)
{
    cr_expect(sum("{}") == 0);
    cr_expect(sum(" { } ") == 0);
    cr_expect(sum("{\"a\":[]}") == 0);
    cr_expect(sum("{\"a\":[1]}") == 1);
    cr_expect(sum("\t{\r\n \"a\" : [ 1 , 20 ] ,\"b\":[ ],\"\":[300]}\n ") == 321);
}

CLAIM(json_reader, what_is_not_json_is_refused_with_place_and_expectation)
{
    static const char *const table[][2] = {
        {"", "test: JSON, byte 0: met the end, expected '{'"},
        {"[", "byte 0: met '[', expected '{'"},
        {"{", "byte 1: met the end, expected a text in double quotes"},
        {"{]", "byte 1: met ']', expected a text in double quotes"},
        {"{,}", "byte 1: met ',', expected a text in double quotes"},
        {"{a:[]}", "byte 1: met 'a', expected a text in double quotes"},
        {"{\"a\"}", "byte 4: met '}', expected ':'"},
        {"{\"a\":}", "byte 5: met '}', expected '['"},
        {"{\"a\":[}", "byte 6: met '}', expected a whole number of at least 0"},
        {"{\"a\":[1", "byte 7: met the end, expected ',' or ']'"},
        {"{\"a\":[1 2]}", "byte 8: met '2', expected ',' or ']'"},
        {"{\"a\":[1,]}", "byte 8: met ']', expected a whole number"},
        {"{\"a\":[,1]}", "byte 6: met ',', expected a whole number"},
        {"{\"a\":[1],}", "byte 9: met '}', expected a text in double quotes"},
        {"{\"a\":[1]\"b\":[1]}", "byte 8: met '\"', expected ',' or '}'"},
        {"{\"a\":[-1]}", "byte 6: met '-', expected a whole number"},
        {"{\"a\":[1.0]}", "byte 7: met '.', expected ',' or ']'"},
        {"{\"a\":[1e3]}", "byte 7: met 'e', expected ',' or ']'"},
        {"{\"a\":[01]}", "expected a number below 2^63 without leading zeros"},
        {"{\"a\":[00]}", "expected a number below 2^63 without leading zeros"},
        {"{\"a\":[9223372036854775808]}", "expected a number below 2^63 without leading zeros"},
        {"{\"a\":[99999999999999999999]}", "expected a number below 2^63 without leading zeros"},
        {"{\"a\":[\"1\"]}", "byte 6: met '\"', expected a whole number"},
        {"{\"a\":[true]}", "byte 6: met 't', expected a whole number"},
        {"{} {}", "byte 3: met '{', expected nothing more"},
        {"{}\v", "byte 2: met byte 0x0b, expected nothing more"},
        {"\xEF\xBB\xBF{}", "byte 0: met byte 0xef, expected '{'"},
        {"{/**/}", "byte 1: met '/', expected a text in double quotes"},
        {"{'a':[]}", "byte 1: met ''', expected a text in double quotes"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cr_assert(sum(table[i][0]) == -1, "%s", table[i][0]);
        EXPECT_ERROR(table[i][1]);
    }
}

CLAIM(json_reader, whole_numbers_reach_the_largest_int64)
{
    struct json_reader json = reader("[0,7,9223372036854775807]");
    reader_array(&json);
    cr_expect(reader_item(&json) && reader_whole(&json) == 0);
    cr_expect(reader_item(&json) && reader_whole(&json) == 7);
    cr_expect(reader_item(&json) && reader_whole(&json) == INT64_MAX);
    cr_expect(!reader_item(&json) && reader_end(&json));
    free(json.text);
}

/* The text that a JSON text stands for; NULL when it is refused. Static storage. */
static const char *decoded(const char *text)
{
    static char copy[100];
    struct json_reader json = reader(text);
    const char *found = reader_text(&json);
    if (found)
        snprintf(copy, sizeof copy, "%s", found);
    bool ok = reader_end(&json);
    free(json.text);
    return ok ? copy : NULL;
}

CLAIM(json_reader, texts_are_decoded)
{
    static const char *const table[][2] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC"},
        {"\"\\uD83D\\ude00!\"", "\xF0\x9F\x98\x80!"},
        {"\"\\ud800\\udc00 \\uDBFF\\uDFFF\"", "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"},
        {"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F\"",
         "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *text = decoded(table[i][0]);
        cr_assert(text && strcmp(text, table[i][1]) == 0, "%s is read as %s", table[i][0], text);
    }
}

CLAIM(json_reader, broken_texts_are_refused)
{
    static const char *const table[][2] = {
        {"\"abc", "byte 4: met the end, expected the closing quote of a text"},
        {"\"abc\\", "byte 5: met the end, expected the closing quote of a text"},
        {"{\"a\":[]", "byte 0: met '{', expected a text in double quotes"},
        {"\"\\x\"", "byte 2: met 'x', expected an escape: one of \"\\/bfnrtu"},
        {"\"\\u12\"", "byte 3: met '1', expected four hexadecimal digits"},
        {"\"\\u12", "byte 3: met '1', expected four hexadecimal digits"},
        {"\"\\u12g4\"", "expected four hexadecimal digits"},
        {"\"\\u0000\"", "expected four hexadecimal digits of a character other than NUL"},
        {"\"\\udc00\"", "expected four hexadecimal digits"},
        {"\"\\ud800\"", "expected the second half of a surrogate pair"},
        {"\"\\ud800\\n\"", "expected the second half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "expected the second half of a surrogate pair"},
        {"\"\\ud800\\ud800\"", "expected the second half of a surrogate pair"},
        {"\"\\ud800\\u", "expected the second half of a surrogate pair"},
        {"\"a\nb\"", "byte 2: met byte 0x0a, expected no control character in a text"},
        {"\"\x01\"", "met byte 0x01, expected no control character in a text"},
        {"\"\xFF\"", "byte 1: met byte 0xff, expected UTF-8"},
        {"\"\xC0\xAF\"", "byte 1: met byte 0xc0, expected UTF-8"},
        {"\"\xED\xA0\x80\"", "byte 1: met byte 0xed, expected UTF-8"},
        {"\"\xE2\x82", "byte 1: met byte 0xe2, expected UTF-8"},
        {"\"\xE2\x82\"", "byte 1: met byte 0xe2, expected UTF-8"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cr_assert(decoded(table[i][0]) == NULL, "%s", table[i][0]);
        EXPECT_ERROR(table[i][1]);
    }
}

/* A NUL byte is a control character like others, and a text cannot end at it. */
CLAIM(json_reader, a_nul_byte_is_refused)
{
    char text[] = "\"a\0b\"";
    struct json_reader json = {.what = "test", .text = text, .size = sizeof text - 1};
    cr_expect(!reader_text(&json));
    EXPECT_ERROR("byte 2: met byte 0x00, expected no control character in a text");
}

CLAIM(json_reader, after_a_failure_all_fails_and_the_first_message_stays)
{
    struct json_reader json = reader("x{\"a\":[1]}");
    cr_expect(!reader_object(&json) && json.failed);
    json.at = 1;
    cr_expect(!reader_object(&json) && !reader_key(&json) && !reader_array(&json));
    cr_expect(!reader_item(&json) && !reader_text(&json) && reader_whole(&json) == -1);
    cr_expect(!reader_end(&json));
    EXPECT_ERROR("test: JSON, byte 0: met 'x', expected '{'");
    free(json.text);
}
