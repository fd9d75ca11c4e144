/*
 * Each step reads one buffer and writes another, as a substitution of a regular expression does.
 * Bytes are enough: what the expressions name is ASCII, and every byte of another character is "no
 * digit", as the character is.
 */
#include "models/text/tokens_13a.h"
#include "tensor/utf8.h"
#include <string.h>

static bool tokens_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool tokens_is_stop(char c)
{
    return c == '.' || c == ',';
}

/* Punctuation of ASCII but ' , - and the full stop. */
static bool tokens_is_mark(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static bool tokens_put(struct buffer *to, const char *before, char c, const char *behind)
{
    return buffer_add_text(to, before) && buffer_add(to, &c, 1) && buffer_add_text(to, behind);
}

/* Replaces every `what` by `by`. */
static bool tokens_replace(const struct buffer *from, struct buffer *to, const char *what,
                           const char *by)
{
    size_t size = strlen(what);
    bool ok = true;
    for (size_t i = 0; ok && i < from->size;) {
        bool here = from->size - i >= size && memcmp(from->bytes + i, what, size) == 0;
        ok = here ? buffer_add_text(to, by) : buffer_add(to, from->bytes + i, 1);
        i += here ? size : 1;
    }
    return ok;
}

/* Adds spaces around marks. */
static bool tokens_part_marks(const struct buffer *from, struct buffer *to)
{
    bool ok = true;
    for (size_t i = 0; ok && i < from->size; i++) {
        bool mark = tokens_is_mark(from->bytes[i]);
        ok = tokens_put(to, mark ? " " : "", from->bytes[i], mark ? " " : "");
    }
    return ok;
}

/* Adds spaces around a full stop or comma that follows no digit; consumes both characters. */
static bool tokens_part_stops_behind(const struct buffer *from, struct buffer *to)
{
    bool ok = true;
    for (size_t i = 0; ok && i < from->size; i++) {
        const char *c = from->bytes + i;
        bool match = i + 1 < from->size && !tokens_is_digit(c[0]) && tokens_is_stop(c[1]);
        ok =
            tokens_put(to, "", c[0], match ? " " : "") && (!match || tokens_put(to, "", c[1], " "));
        i += match;
    }
    return ok;
}

/* Adds spaces around a full stop or comma that no digit follows; consumes both characters. */
static bool tokens_part_stops_before(const struct buffer *from, struct buffer *to)
{
    bool ok = true;
    for (size_t i = 0; ok && i < from->size; i++) {
        const char *c = from->bytes + i;
        bool match = i + 1 < from->size && tokens_is_stop(c[0]) && !tokens_is_digit(c[1]);
        ok = tokens_put(to, match ? " " : "", c[0], match ? " " : "") &&
             (!match || tokens_put(to, "", c[1], ""));
        i += match;
    }
    return ok;
}

/* Adds spaces around a dash that follows a digit. */
static bool tokens_part_dashes(const struct buffer *from, struct buffer *to)
{
    bool ok = true;
    for (size_t i = 0; ok && i < from->size; i++) {
        const char *c = from->bytes + i;
        bool match = i + 1 < from->size && tokens_is_digit(c[0]) && c[1] == '-';
        ok =
            tokens_put(to, "", c[0], match ? " " : "") && (!match || tokens_put(to, "", c[1], " "));
        i += match;
    }
    return ok;
}

static void tokens_swap(struct buffer *a, struct buffer *b)
{
    struct buffer other = *a;
    *a = *b;
    *b = other;
    b->size = 0;
}

static bool tokens_is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool token_next(const char *text, size_t size, size_t *at, struct unit *token)
{
    size_t start = *at, end = *at;
    while (end < size) {
        int32_t c = utf8_next(text, size, at);
        if (c < 0)
            ++*at;
        if (!tokens_is_space(c))
            end = *at;
        else if (end > start)
            break;
        else
            start = end = *at;
    }
    *token = (struct unit){text + start, end - start};
    return end > start;
}

/* Python's rstrip. */
static size_t tokens_without_trailing_space(const char *text, size_t size)
{
    struct unit token;
    size_t end = 0;
    for (size_t at = 0; token_next(text, size, &at, &token);)
        end = (size_t)(token.text - text) + token.size;
    return end;
}

bool tokens_13a(const char *text, size_t size, struct buffer *tokens, struct buffer *scratch)
{
    static const char *const replaced[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                              {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                              {"&gt;", ">"}};
    bool (*const steps[])(const struct buffer *from, struct buffer *to) = {
        tokens_part_marks, tokens_part_stops_behind, tokens_part_stops_before, tokens_part_dashes};
    tokens->size = scratch->size = 0;
    bool ok = buffer_add(tokens, text, tokens_without_trailing_space(text, size));
    for (size_t i = 0; ok && i < sizeof replaced / sizeof *replaced; i++) {
        ok = tokens_replace(tokens, scratch, replaced[i][0], replaced[i][1]);
        tokens_swap(tokens, scratch);
    }
    ok = ok && tokens_put(scratch, "", ' ', "") &&
         buffer_add(scratch, tokens->bytes, tokens->size) && tokens_put(scratch, "", ' ', "");
    tokens_swap(tokens, scratch);
    for (size_t i = 0; ok && i < sizeof steps / sizeof *steps; i++) {
        ok = steps[i](tokens, scratch);
        tokens_swap(tokens, scratch);
    }
    return ok;
}
