/* BLEU of a corpus, as sacreBLEU computes it. */
#include "models/text/metrics.h"
#include "models/text/table.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

/*
 * ---- tokens ----
 *
 * Each step reads one buffer and writes another, as a substitution of a regular expression does.
 * Bytes are enough: what the expressions name is ASCII, and every byte of another character is "no
 * digit", as the character is.
 */

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

/* ---- counting ---- */

struct ids {
    int32_t *id;
    int64_t count, room;
};

struct uses {
    int64_t output, reference;
};

struct counting {
    struct buffer tokens, scratch;
    struct table words, grams; /* all words of the corpus; the n-grams of one line */
    struct ids output, reference;
    struct uses *uses; /* of each n-gram */
    int64_t room;
};

const char *sb_bleu_signature(void)
{
    return "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:softback (equals sacreBLEU 2.6.0)";
}

static bool bleu_read_tokens(struct counting *c, const char *text, struct ids *ids)
{
    struct unit token;
    ids->count = 0;
    if (!tokens_13a(text, strlen(text), &c->tokens, &c->scratch))
        return false;
    for (size_t at = 0; token_next(c->tokens.bytes, c->tokens.size, &at, &token);) {
        int64_t word = table_add(&c->words, token.text, token.size);
        if (word < 0 || !memory_room(&ids->id, ids->count, &ids->room, sizeof *ids->id))
            return false;
        ids->id[ids->count++] = (int32_t)word;
    }
    return true;
}

/* Counts the n-grams of one side of a line. */
static bool bleu_count_grams(struct counting *c, const struct ids *ids, int order, bool is_output)
{
    for (int64_t i = 0; i + order <= ids->count; i++) {
        int64_t known = c->grams.count;
        int64_t gram = table_add(&c->grams, ids->id + i, (size_t)order * sizeof *ids->id);
        if (gram < 0 || !memory_room(&c->uses, gram, &c->room, sizeof *c->uses))
            return false;
        if (gram == known)
            c->uses[gram] = (struct uses){0, 0};
        if (is_output)
            c->uses[gram].output++;
        else
            c->uses[gram].reference++;
    }
    return true;
}

static bool bleu_count_line(struct counting *c, const char *output, const char *reference,
                            sb_bleu *bleu)
{
    if (!bleu_read_tokens(c, output, &c->output) || !bleu_read_tokens(c, reference, &c->reference))
        return false;
    bleu->output_tokens += c->output.count;
    bleu->reference_tokens += c->reference.count;
    for (int order = 1; order <= SB_BLEU_ORDERS; order++) {
        table_clear(&c->grams);
        if (!bleu_count_grams(c, &c->output, order, true) ||
            !bleu_count_grams(c, &c->reference, order, false))
            return false;
        for (int64_t i = 0; i < c->grams.count; i++) {
            struct uses uses = c->uses[i];
            bleu->total[order - 1] += uses.output;
            bleu->correct[order - 1] += uses.output < uses.reference ? uses.output : uses.reference;
        }
    }
    return true;
}

/*
 * BLEU = BP exp(mean over n of ln p_n), with BP = exp(1 - reference / output) when the output is
 * the shorter. The k-th order without a match counts as 1 / 2^k of a match. An order without any
 * n-gram makes BLEU 0, as does an output without any match.
 */
static void bleu_compute(sb_bleu *bleu)
{
    double half = 1, logarithms = 0;
    bool any = false, all = true;
    for (int n = 0; n < SB_BLEU_ORDERS; n++)
        any = any || bleu->correct[n] > 0;
    bleu->brevity_penalty =
        bleu->output_tokens >= bleu->reference_tokens ? 1
        : bleu->output_tokens == 0
            ? 0
            : math_exp(1 - (double)bleu->reference_tokens / (double)bleu->output_tokens);
    for (int n = 0; any && all && n < SB_BLEU_ORDERS; n++) {
        all = bleu->total[n] > 0;
        if (!all)
            break;
        double correct = bleu->correct[n] > 0 ? (double)bleu->correct[n] : (half /= 2);
        bleu->precision[n] = 100 * correct / (double)bleu->total[n];
        logarithms += math_log(bleu->precision[n]);
    }
    bleu->score = any && all ? bleu->brevity_penalty * math_exp(logarithms / SB_BLEU_ORDERS) : 0;
}

static bool bleu_count_lines(struct counting *c, const char *const *outputs,
                             const char *const *references, int64_t count, sb_bleu *bleu)
{
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        if (!text_check("bleu", outputs[i], &size) || !text_check("bleu", references[i], &size))
            return false;
        if (!bleu_count_line(c, outputs[i], references[i], bleu))
            return sb_fail("bleu: out of memory");
    }
    return true;
}

bool sb_bleu_corpus(const char *const *outputs, const char *const *references, int64_t count,
                    sb_bleu *bleu)
{
    if (!outputs || !references || !bleu)
        return fail_null("bleu", !outputs ? "outputs" : !references ? "references" : "bleu");
    if (!check_at_least("bleu", "count", count, 1))
        return false;
    *bleu = (sb_bleu){0};
    struct counting counting = {0};
    bool ok = bleu_count_lines(&counting, outputs, references, count, bleu);
    if (ok)
        bleu_compute(bleu);
    buffer_free(&counting.tokens);
    buffer_free(&counting.scratch);
    table_free(&counting.words);
    table_free(&counting.grams);
    memory_free(counting.output.id);
    memory_free(counting.reference.id);
    memory_free(counting.uses);
    return ok;
}
