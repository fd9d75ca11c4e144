#include "tensor/json_reader.h"
#include "tensor/error.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

/* Says what was met at the current place, and what was expected. */
static void *refuse(struct json_reader *json, const char *expected)
{
    char met[40];
    unsigned char byte = json->at < json->size ? (unsigned char)json->text[json->at] : 0;
    if (json->at >= json->size)
        snprintf(met, sizeof met, "the end");
    else if (byte > 0x20 && byte < 0x7F)
        snprintf(met, sizeof met, "'%c'", byte);
    else
        snprintf(met, sizeof met, "byte 0x%02x", byte);
    json->failed = true;
    return sb_fail("%s: JSON, byte %zu: met %s, expected %s", json->what, json->at, met, expected);
}

static void skip_space(struct json_reader *json)
{
    while (json->at < json->size && json->text[json->at] && strchr(" \t\n\r", json->text[json->at]))
        json->at++;
}

/* Reads this character, if it is next. */
static bool take(struct json_reader *json, char wanted)
{
    skip_space(json);
    if (json->failed || json->at >= json->size || json->text[json->at] != wanted)
        return false;
    json->at++;
    json->opened = false;
    return true;
}

static bool open_bracket(struct json_reader *json, char bracket, const char *expected)
{
    if (json->failed)
        return false;
    if (!take(json, bracket))
        return refuse(json, expected);
    json->opened = true;
    return true;
}

bool reader_object(struct json_reader *json)
{
    return open_bracket(json, '{', "'{'");
}

bool reader_array(struct json_reader *json)
{
    return open_bracket(json, '[', "'['");
}

/* Whether another member follows: reads the comma before it, or else the closing bracket. */
static bool another(struct json_reader *json, char bracket, const char *expected)
{
    bool first = json->opened;
    if (json->failed || take(json, bracket))
        return false;
    if (!first && !take(json, ','))
        return refuse(json, expected);
    return true;
}

bool reader_item(struct json_reader *json)
{
    return another(json, ']', "',' or ']'");
}

char *reader_key(struct json_reader *json)
{
    if (!another(json, '}', "',' or '}'"))
        return NULL;
    char *key = reader_text(json);
    if (key && !take(json, ':'))
        return refuse(json, "':'");
    return key;
}

/* The value of four hexadecimal digits, or -1. */
static int32_t four_digits(const struct json_reader *json)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    int32_t value = 0;
    for (size_t i = json->at; i < json->at + 4; i++) {
        const char *digit = i < json->size ? memchr(digits, json->text[i], 32) : NULL;
        if (!digit)
            return -1;
        value = value * 16 + (int32_t)((digit - digits) % 16);
    }
    return value;
}

/* Writes a code point as UTF-8 and returns its length. */
static size_t put_point(char *to, uint32_t point)
{
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    to[0] = (char)((0xF00u >> length & 0xFF) | point);
    return length;
}

/* Reads what follows "\u": one code unit, or a pair of surrogates. 0 is refused, so that texts end
   where their NUL is. */
static size_t read_point(struct json_reader *json, char *to)
{
    int32_t point = four_digits(json);
    if (point <= 0 || (point >= 0xDC00 && point <= 0xDFFF)) {
        refuse(json, "four hexadecimal digits of a character other than NUL");
        return 0;
    }
    json->at += 4;
    if (point >= 0xD800 && point <= 0xDBFF) {
        bool pair = json->at + 2 <= json->size && memcmp(json->text + json->at, "\\u", 2) == 0;
        json->at += pair ? 2 : 0;
        int32_t low = pair ? four_digits(json) : -1;
        if (low < 0xDC00 || low > 0xDFFF) {
            refuse(json, "the second half of a surrogate pair");
            return 0;
        }
        json->at += 4;
        point = 0x10000 + (point - 0xD800) * 0x400 + (low - 0xDC00);
    }
    return put_point(to, (uint32_t)point);
}

/* Reads one character of a text to `to`, which is not ahead of it, and returns the length that it
   has there; 0 on failure. */
static size_t read_character(struct json_reader *json, char *to)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char *from = json->text + json->at;
    size_t left = json->size - json->at;
    if (*from == '\\' && left > 1) {
        json->at += 2;
        if (from[1] == 'u')
            return read_point(json, to);
        const char *escape = memchr(escapes, from[1], sizeof escapes - 1);
        if (!escape) {
            json->at--;
            refuse(json, "an escape: one of \"\\/bfnrtu");
            return 0;
        }
        *to = meanings[escape - escapes];
        return 1;
    }
    size_t length = utf8_length(from, left);
    if (length == 0 || (unsigned char)*from < 0x20) {
        refuse(json, length ? "no control character in a text" : "UTF-8");
        return 0;
    }
    memmove(to, from, length);
    json->at += length;
    return length;
}

char *reader_text(struct json_reader *json)
{
    if (json->failed)
        return NULL;
    if (!take(json, '"'))
        return refuse(json, "a text in double quotes");
    char *text = json->text + json->at, *to = text;
    while (json->at < json->size && json->text[json->at] != '"') {
        size_t length = read_character(json, to);
        if (length == 0)
            return NULL;
        to += length;
    }
    if (!take(json, '"'))
        return refuse(json, "the closing quote of a text");
    *to = '\0';
    return text;
}

int64_t reader_whole(struct json_reader *json)
{
    if (json->failed)
        return -1;
    skip_space(json);
    size_t start = json->at;
    int64_t value = 0;
    for (; json->at < json->size; json->at++) {
        int digit = json->text[json->at] - '0';
        if (digit < 0 || digit > 9)
            break;
        bool leading_zero = value == 0 && json->at > start;
        if (leading_zero || __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)digit, &value)) {
            refuse(json, "a number below 2^63 without leading zeros");
            return -1;
        }
    }
    if (json->at == start) {
        refuse(json, "a whole number of at least 0");
        return -1;
    }
    json->opened = false;
    return value;
}

bool reader_end(struct json_reader *json)
{
    skip_space(json);
    if (!json->failed && json->at < json->size)
        return refuse(json, "nothing more");
    return !json->failed;
}
