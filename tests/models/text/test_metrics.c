#include "models/text/unit.h"
#include "tests/support/test.h"
#include <stdio.h>

#define IDS(...)                                                                                   \
    (const int32_t[]){__VA_ARGS__}, (int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

CPU_TEST(metrics, edit_distances_are_the_hand_worked_ones)
{
    cr_expect(sb_edit_distance(IDS('k', 'i', 't', 't', 'e', 'n'),
                               IDS('s', 'i', 't', 't', 'i', 'n', 'g')) == 3);
    cr_expect(sb_edit_distance(IDS('S', 'u', 'n', 'd', 'a', 'y'),
                               IDS('S', 'a', 't', 'u', 'r', 'd', 'a', 'y')) == 3);
    cr_expect(sb_edit_distance(IDS(1, 2, 3), IDS(1, 2, 3)) == 0);
    cr_expect(sb_edit_distance(IDS(1, 2, 3), IDS(3, 2, 1)) == 2);
    cr_expect(sb_edit_distance(IDS(1, 2, 3, 4), IDS(2, 3, 4, 5)) == 2);
    cr_expect(sb_edit_distance(IDS(1, 1, 1), IDS(1)) == 2);
    cr_expect(sb_edit_distance(IDS(1, 2), NULL, 0) == 2);
    cr_expect(sb_edit_distance(NULL, 0, IDS(1, 2, 3)) == 3);
    cr_expect(sb_edit_distance(NULL, 0, NULL, 0) == 0);
}

/* The definition as a recursion: the least cost of the first symbol of each. */
static int64_t slow_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    if (n == 0 || m == 0)
        return n + m;
    int64_t best = slow_distance(a + 1, n - 1, b + 1, m - 1) + (a[0] != b[0]);
    int64_t drop = slow_distance(a + 1, n - 1, b, m) + 1,
            add = slow_distance(a, n, b + 1, m - 1) + 1;
    best = drop < best ? drop : best;
    return add < best ? add : best;
}

CPU_TEST(metrics, edit_distances_follow_the_definition)
{
    uint32_t state = 1;
    for (int trial = 0; trial < 300; trial++) {
        int32_t x[2][6];
        int64_t size[2];
        for (int side = 0; side < 2; side++) {
            state = state * 1664525 + 1013904223;
            size[side] = state >> 16 & 7;
            size[side] = size[side] > 6 ? 6 : size[side];
            for (int i = 0; i < 6; i++) {
                state = state * 1664525 + 1013904223;
                x[side][i] = state >> 20 & 3 ? 1 : 2;
            }
        }
        cr_assert(sb_edit_distance(x[0], size[0], x[1], size[1]) ==
                  slow_distance(x[0], size[0], x[1], size[1]));
    }
}

CPU_TEST(metrics, the_perplexity_of_n_equal_guesses_is_n)
{
    cr_expect(fabs(sb_perplexity(-5 * 2.302585092994046, 5) - 10) < 1e-13);
    cr_expect(sb_perplexity(0, 3) == 1);
    cr_expect(isnan(sb_perplexity(-1, 0)));
    EXPECT_ERROR("perplexity: count is 0; it must be at least 1");
}

/*
 * By hand. read: R IY D and R EH D; the output R EH T is at distance 1 from the second, of 3 units,
 * and wrong. live: the output L IH V is the second reference. a: AH is right. of: the output has 3
 * units for 2, at distance 2. Edits 1 + 0 + 0 + 2 of 3 + 3 + 1 + 2 units; 2 of 4 sources wrong.
 */
CPU_TEST(metrics, several_references_give_the_hand_worked_rates)
{
    const char *sources[] = {"read", "live", "a", "read", "of", "live"};
    const char *references[] = {"R IY D", "L AY V", "AH", "R EH D", "AH V", "L IH V"};
    const char *outputs[] = {"R EH T", "L IH V", "AH", "R EH T", "AO F V", "L IH V"};
    sb_text_score score;
    MUST(sb_score_texts(sources, references, outputs, 6, SB_UNITS_WORDS, &score));
    cr_expect(score.sources == 4 && score.wrong == 2 && score.error == 0.5);
    cr_expect(score.edits == 3 && score.units == 9 && score.unit_error == 3.0 / 9);
    cr_expect(score.lines == 6 && score.exact == 2 && score.exact_match == 2.0 / 6);
    /* positions 3 3 1 3 3 3, right 1 2 1 2 0 3 */
    cr_expect(score.positions == 16 && score.right == 9 && score.token_accuracy == 9.0 / 16);
}

CPU_TEST(metrics, the_first_of_equally_close_references_counts)
{
    const char *sources[] = {"x", "x"}, *references[] = {"A B C D", "A"},
               *outputs[] = {"A B", "A B"};
    sb_text_score score;
    cr_assert(sb_score_texts(sources, references, outputs, 1, SB_UNITS_WORDS, &score));
    cr_expect(score.edits == 2 && score.units == 4);
    references[0] = "A B C"; /* both at distance 1 */
    cr_assert(sb_score_texts(sources, references, outputs, 2, SB_UNITS_WORDS, &score));
    cr_expect(score.edits == 1 && score.units == 3 && score.wrong == 1);
}

CPU_TEST(metrics, an_output_is_right_if_it_equals_any_reference)
{
    const char *sources[] = {"x", "x", "x"}, *references[] = {"B", "A", "C"};
    const char *outputs[] = {"A", "A", "A"};
    sb_text_score score;
    cr_assert(sb_score_texts(sources, references, outputs, 3, SB_UNITS_WORDS, &score));
    cr_expect(score.sources == 1 && score.wrong == 0 && score.edits == 0 && score.exact == 1);
}

CPU_TEST(metrics, units_are_chosen_by_the_caller)
{
    const char *one[] = {"x"}, *reference[] = {"\xC3\xA4 b"}, *output[] = {"\xC3\xA5 b"};
    static const struct {
        sb_units units;
        int64_t count;
    } cases[] = {
        {SB_UNITS_CHARACTERS, 3}, {SB_UNITS_BYTES, 4}, {SB_UNITS_WORDS, 2}, {SB_UNITS_BPE, 2}};
    sb_text_score score;
    for (int i = 0; i < 4; i++) {
        cr_assert(sb_score_texts(one, reference, output, 1, cases[i].units, &score));
        cr_expect(score.units == cases[i].count && score.edits == 1 && score.error == 1);
        cr_expect(score.positions == cases[i].count && score.right == cases[i].count - 1);
    }
    cr_assert(
        sb_score_texts(one, (const char *[]){""}, (const char *[]){""}, 1, SB_UNITS_WORDS, &score));
    cr_expect(score.units == 0 && score.unit_error == 0 && score.token_accuracy == 0);
    cr_expect(score.exact_match == 1 && score.error == 0);
}

/* ---- BLEU ---- */

/* golden/bleu.tsv, in memory: lines and their fields, which are cut in place. */
struct golden {
    char *text, *at;
    char *field[24];
    int fields;
};

static struct golden golden_open(void)
{
    struct golden golden = {0};
    FILE *file = fopen(test_path("golden/bleu.tsv"), "rb");
    cr_assert(file, "golden/bleu.tsv is missing");
    golden.at = golden.text = memory_new(1 << 17);
    cr_assert(fread(golden.text, 1, (1 << 17) - 1, file) > 1000 && feof(file));
    fclose(file);
    return golden;
}

static bool golden_line(struct golden *golden)
{
    char *end = strchr(golden->at, '\n');
    if (!end)
        return false;
    *end = '\0';
    for (golden->fields = 0; golden->at; golden->fields++) {
        cr_assert(golden->fields < 24);
        golden->field[golden->fields] = golden->at;
        if ((golden->at = strchr(golden->at, '\t')))
            *golden->at++ = '\0';
    }
    golden->at = end + 1;
    return true;
}

static void expect_bleu(char *const *expected, const sb_bleu *bleu)
{
    cr_expect(fabs(bleu->score - atof(expected[2])) < 1e-9, "BLEU is %.12f, expected %s",
              bleu->score, expected[2]);
    cr_expect(fabs(bleu->brevity_penalty - atof(expected[3])) < 1e-12);
    cr_expect(bleu->output_tokens == atoi(expected[4]));
    cr_expect(bleu->reference_tokens == atoi(expected[5]));
    for (int n = 0; n < SB_BLEU_ORDERS; n++) {
        cr_expect(bleu->correct[n] == atoi(expected[6 + n]));
        cr_expect(bleu->total[n] == atoi(expected[10 + n]));
        cr_expect(fabs(bleu->precision[n] - atof(expected[14 + n])) < 1e-10);
    }
}

CPU_TEST(metrics, bleu_equals_sacrebleu)
{
    struct golden golden = golden_open();
    int corpora = 0;
    while (golden_line(&golden)) {
        if (strcmp(golden.field[0], "corpus") != 0)
            continue;
        const char *outputs[64], *references[64];
        char *expected[24];
        memcpy(expected, golden.field, sizeof expected);
        int lines = atoi(expected[1]);
        cr_assert(golden.fields == 18 && lines <= 64);
        for (int i = 0; i < lines; i++) {
            cr_assert(golden_line(&golden) && golden.fields == 2);
            outputs[i] = golden.field[0];
            references[i] = golden.field[1];
        }
        sb_bleu bleu;
        MUST(sb_bleu_corpus(outputs, references, lines, &bleu));
        expect_bleu(expected, &bleu);
        corpora++;
    }
    cr_expect(corpora == 12);
    memory_free(golden.text);
}

static void expect_tokens(const char *text, const char *expected)
{
    struct buffer tokens = {0}, scratch = {0}, joined = {0};
    struct unit token;
    cr_assert(tokens_13a(text, strlen(text), &tokens, &scratch));
    for (size_t at = 0; token_next(tokens.bytes, tokens.size, &at, &token);)
        buffer_add(&joined, " ", joined.size > 0), buffer_add(&joined, token.text, token.size);
    char *result = KEPT(buffer_take(&joined));
    cr_expect_str_eq(result, expected);
    buffer_free(&tokens);
    buffer_free(&scratch);
}

CPU_TEST(metrics, tokens_equal_those_of_sacrebleu)
{
    struct golden golden = golden_open();
    int texts = 0;
    while (golden_line(&golden)) {
        if (strcmp(golden.field[0], "tokens") == 0 && golden.fields == 3) {
            expect_tokens(golden.field[1], golden.field[2]);
            texts++;
        }
    }
    cr_expect(texts == 60);
    memory_free(golden.text);
    expect_tokens("", "");
    expect_tokens("a line-\nbroken\nin two-\n", "a linebroken in two-");
    expect_tokens("&amp;lt;", "<"); /* unescaped twice */
}

CPU_TEST(metrics, the_signature_describes_how_bleu_was_computed)
{
    cr_expect(strncmp(sb_bleu_signature(),
                      "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:", 53) == 0);
}

static bool score_all(void *context)
{
    const char *texts[] = {"a b, c.", "d e-f", "a b, c."}, *outputs[] = {"a c", "d", "e b, c."};
    sb_text_score score;
    sb_bleu bleu;
    (void)context;
    return sb_score_texts(texts, texts, outputs, 3, SB_UNITS_CHARACTERS, &score) &&
           sb_bleu_corpus(outputs, texts, 3, &bleu);
}

CPU_TEST(metrics, each_failing_allocation_is_reported)
{
    cr_expect(test_each_allocation_fails(score_all, NULL) > 10);
}
