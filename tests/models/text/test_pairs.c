/* Pairs of texts, and documents. */
#include "models/text/lines.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <unistd.h>

static sb_pairs *parse(const char *text)
{
    return sb_pairs_parse("t.tsv", text, strlen(text), NULL);
}

/* Twenty valid lines, so that one malformed one is skipped. */
#define SOUND                                                                                      \
    "a\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\n"                                 \
    "a\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\n"

static void expect_pairs(sb_pairs *pairs, int64_t count, const char *const expected[][2])
{
    MUST(pairs);
    cr_assert(sb_pairs_count(pairs) == count, "there are %lld", (long long)sb_pairs_count(pairs));
    for (int64_t i = 0; i < count; i++) {
        cr_expect_str_eq(sb_pairs_source(pairs, i), expected[i][0]);
        cr_expect_str_eq(sb_pairs_target(pairs, i), expected[i][1]);
        cr_expect(sb_pairs_sources(pairs)[i] == sb_pairs_source(pairs, i));
        cr_expect(sb_pairs_targets(pairs)[i] == sb_pairs_target(pairs, i));
    }
    sb_pairs_free(pairs);
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

CPU_TEST(pairs, tsv_lines_are_read)
{
    expect_pairs(parse("AAA\tT R IH\n\xC3\xA4 \t c\n"), 2,
                 (const char *[][2]){{"AAA", "T R IH"}, {"\xC3\xA4 ", " c"}});
}

CPU_TEST(pairs, line_ends_marks_and_missing_ends_are_accepted)
{
    expect_pairs(parse("\xEF\xBB\xBF"
                       "a\tb\r\nc\td"),
                 2, (const char *[][2]){{"a", "b"}, {"c", "d"}});
    expect_pairs(parse("a\tb\n\xEF\xBB\xBF"
                       "c\td"),
                 2,
                 (const char *[][2]){{"a", "b"},
                                     {"\xEF\xBB\xBF"
                                      "c",
                                      "d"}});
    expect_pairs(parse("a\tb\rc\r\n"), 1, (const char *[][2]){{"a", "b\rc"}});
}

CPU_TEST(pairs, malformed_lines_are_skipped_with_file_line_and_reason)
{
    static const struct {
        const char *line;
        size_t size;
        const char *problem;
    } cases[] = {
        {"no tab", 6, "t.tsv:21: no tab between source and target"},
        {"a\tb\tc\td", 7, "t.tsv:21: 3 tabs, expected one between source and target"},
        {"\tb", 2, "t.tsv:21: the source is empty"},
        {"a\t", 2, "t.tsv:21: the target is empty"},
        {"a\t\r", 3, "t.tsv:21: the target is empty"},
        {"", 0, "t.tsv:21: the line is empty"},
        {"\r", 1, "t.tsv:21: the line is empty"},
        {"ab\tc\xFF", 5, "t.tsv:21: byte 5 (0xff) is not UTF-8"},
        {"a\xC3\tb", 4, "t.tsv:21: byte 2 (0xc3) is not UTF-8"},
        {"a\tb\0c", 5, "t.tsv:21: byte 4 is NUL, as in UTF-16, not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        size_t size = strlen(SOUND);
        memcpy(text, SOUND, size);
        memcpy(text + size, cases[i].line, cases[i].size);
        size += cases[i].size;
        memcpy(text + size, "\nx\ty\n", 5);
        sb_pairs *pairs = KEPT(sb_pairs_parse("t.tsv", text, size + 5, NULL));
        cr_expect(sb_pairs_count(pairs) == 21 && sb_pairs_skipped(pairs) == 1);
        cr_expect_str_eq(sb_pairs_problem(pairs, 0), cases[i].problem);
        cr_expect(sb_pairs_problem(pairs, 1) == NULL && sb_pairs_problem(pairs, 9) == NULL);
        cr_expect_str_eq(sb_pairs_source(pairs, 20), "x");
        sb_pairs_options strict = {.strict = true};
        cr_expect(!sb_pairs_parse("t.tsv", text, size + 5, &strict));
        cr_expect_str_eq(sb_error(), cases[i].problem);
    }
}

CPU_TEST(pairs, long_lines_are_skipped)
{
    sb_pairs_options options = {.length = 10};
    const char *text = SOUND "12345\t7890\n12345\t78901\n\xC3\xA4\xC3\xA4\t67890\r\n";
    sb_pairs *pairs = KEPT(sb_pairs_parse("t.tsv", text, strlen(text), &options));
    cr_expect(sb_pairs_count(pairs) == 22 && sb_pairs_skipped(pairs) == 1);
    cr_expect_str_eq(sb_pairs_problem(pairs, 0), "t.tsv:22: 11 bytes, expected at most 10");
    cr_expect_str_eq(sb_pairs_target(pairs, 21), "67890");
    REFUSED("pairs_parse: length is -1; it must be in 0..2^27",
            sb_pairs_parse("t.tsv", text, strlen(text), &(sb_pairs_options){.length = -1}));
    cr_expect(
        !sb_pairs_parse("t.tsv", text, strlen(text), &(sb_pairs_options){.length = INT64_MAX}));
}

/* Lines that are longer than one read. */
CPU_TEST(pairs, lines_of_any_length_are_read)
{
    size_t size = 3 * 65536;
    char *text = KEPT(calloc(2 * size + 64, 1));
    memset(text, 'a', 2 * size);
    text[65536] = '\t';
    text[65536 + 65535] = '\n'; /* exactly two reads */
    text[2 * 65536 + 65535] = '\t';
    text[2 * size - 1] = '\n';
    sb_pairs *pairs = KEPT(sb_pairs_parse("t.tsv", text, 2 * size,
                                          &(sb_pairs_options){.length = (int64_t)(2 * size)}));
    cr_expect(sb_pairs_count(pairs) == 2);
    cr_expect(strlen(sb_pairs_source(pairs, 0)) == 65536 &&
              strlen(sb_pairs_target(pairs, 0)) == 65534);
    cr_expect(strlen(sb_pairs_source(pairs, 1)) == 65535);
    cr_expect(strlen(sb_pairs_target(pairs, 1)) == 2 * size - 1 - 3 * 65536);
    cr_expect(!sb_pairs_parse("t.tsv", text, 2 * size, NULL));
    EXPECT_ERROR(
        "t.tsv: none of 2 lines is a pair; the first: t.tsv:1: 131071 bytes, expected at most "
        "65536");
}

CPU_TEST(pairs, only_the_first_problems_are_kept)
{
    char text[2000] = "";
    for (int i = 0; i < 9; i++)
        strcat(strcat(text, SOUND), "bad\n");
    sb_pairs *pairs = KEPT(parse(text));
    cr_expect(sb_pairs_count(pairs) == 180 && sb_pairs_skipped(pairs) == 9);
    cr_expect_str_eq(sb_pairs_problem(pairs, 4), "t.tsv:105: no tab between source and target");
    cr_expect(!sb_pairs_problem(pairs, 5) && !sb_pairs_problem(pairs, -1));
}

CPU_TEST(pairs, more_than_one_malformed_line_in_ten_is_a_failure)
{
    sb_pairs *pairs = KEPT(parse("bad\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\n"));
    cr_expect(sb_pairs_count(pairs) == 9);
    REFUSED("t.tsv: 1 of 9 lines are malformed, more than one in ten; the first: t.tsv:1: no tab",
            parse("bad\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\na\tb\n"));
    REFUSED("t.tsv: none of 2 lines is a pair; the first: t.tsv:1: no tab", parse("bad\nworse\n"));
    REFUSED("t.tsv: the file is empty", parse(""));
    cr_expect(!parse("\xEF\xBB\xBF"));
}

CPU_TEST(pairs, files_are_read)
{
    const char *path = test_temporary("train.tsv");
    write_file(path, "a\tb\nc\td\n", 8);
    expect_pairs(sb_pairs_read(path, NULL), 2, (const char *[][2]){{"a", "b"}, {"c", "d"}});
    write_file(path, "a\tb\nbad\n", 8);
    REFUSED("train.tsv:2: no tab", sb_pairs_read(path, &(sb_pairs_options){.strict = true}));
}

CPU_TEST(pairs, paths_that_are_no_file_are_refused)
{
    const char *path = test_temporary("missing.tsv");
    REFUSED("missing.tsv: cannot be opened: No such file", sb_pairs_read(path, NULL));
    REFUSED("golden: cannot be read: Is a directory", sb_pairs_read(test_path("golden"), NULL));
    REFUSED("missing.tsv: cannot be opened",
            sb_pairs_read_two(test_path("golden/bleu.tsv"), path, NULL));
    cr_expect(!sb_pairs_read("/dev/zero", NULL)); /* a line without end */
    EXPECT_ERROR("/dev/zero:1: the line is longer than");
    cr_expect(!sb_pairs_read(NULL, NULL) && !sb_pairs_read_two("a", NULL, NULL));
    cr_expect(!sb_pairs_parse(NULL, "", 0, NULL) && !sb_pairs_parse("a", NULL, 0, NULL));
}

CPU_TEST(pairs, the_standard_input_is_read)
{
    const char *path = test_temporary("input.tsv");
    write_file(path, SOUND "bad\n", strlen(SOUND) + 4);
    cr_assert(freopen(path, "rb", stdin));
    sb_pairs *pairs = KEPT(sb_pairs_read("-", NULL));
    cr_expect(sb_pairs_count(pairs) == 20);
    cr_expect(strstr(sb_pairs_problem(pairs, 0), "standard input:21: "));
}

CPU_TEST(pairs, two_files_are_paired_line_by_line)
{
    const char *a = test_temporary("a.txt"), *b = test_temporary("b.txt");
    char text[256];
    write_file(a, "one\ntwo\twith a tab\n", 19);
    write_file(b, "eins\r\nzwei", 10);
    expect_pairs(sb_pairs_read_two(a, b, NULL), 2,
                 (const char *[][2]){{"one", "eins"}, {"two\twith a tab", "zwei"}});
    write_file(b, "eins\n", 5);
    REFUSED("b.txt ends after 1 lines, but ", sb_pairs_read_two(a, b, NULL));
    REFUSED("b.txt ends after 1 lines, but ", sb_pairs_read_two(b, a, NULL));
    snprintf(text, sizeof text, "%s\n%s", SOUND, SOUND); /* the 21st line is empty */
    write_file(a, text, strlen(text));
    text[strlen(SOUND)] = 'x';
    text[strlen(SOUND) - 1] = '\xFF'; /* lines 20 and 21 are one now */
    snprintf(text + strlen(SOUND) + 1, 150, "\n%s%s", "last\n", SOUND);
    write_file(b, text, strlen(text));
    sb_pairs *pairs = KEPT(sb_pairs_read_two(a, b, NULL));
    cr_expect(sb_pairs_count(pairs) == 39 && sb_pairs_skipped(pairs) == 2);
    cr_expect(strstr(sb_pairs_problem(pairs, 0), "b.txt:20: byte 4 (0xff) is not UTF-8"));
    cr_expect(strstr(sb_pairs_problem(pairs, 1), "a.txt:21: the line is empty"));
}

CPU_TEST(pairs, pairs_can_be_added_by_hand)
{
    sb_pairs *pairs = sb_pairs_new();
    cr_expect(sb_pairs_count(pairs) == 0 && sb_pairs_sources(pairs) == NULL);
    char text[16] = "changing";
    cr_expect(sb_pairs_add(pairs, text, ""));
    text[0] = 'C';
    REFUSED("pairs_add: byte 2 of the text (0xff) is not UTF-8", sb_pairs_add(pairs, "a", "b\xFF"));
    cr_expect(!sb_pairs_add(pairs, NULL, "") && !sb_pairs_add(NULL, "", ""));
    cr_expect(!sb_pairs_source(pairs, 1) && !sb_pairs_target(pairs, -1) &&
              !sb_pairs_source(NULL, 0));
    expect_pairs(pairs, 1, (const char *[][2]){{"changing", ""}});
    cr_expect(sb_pairs_count(NULL) == 0 && sb_pairs_skipped(NULL) == 0);
    sb_pairs_free(NULL);
}

/* ---- held-out pairs ---- */

/* Pairs "s0".."s<n-1>" from `first` on, each source `times` times in a row. */
static sb_pairs *numbered(int first, int n, int times)
{
    sb_pairs *pairs = sb_pairs_new();
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < times; k++) {
            char source[16], target[16];
            snprintf(source, sizeof source, "s%d", (first + i) % n);
            snprintf(target, sizeof target, "t%d", k);
            cr_assert(sb_pairs_add(pairs, source, target));
        }
    }
    return KEPT(pairs);
}

static void divide(sb_pairs *pairs, int64_t n, sb_pairs **rest, sb_pairs **held)
{
    MUST(sb_pairs_divide(pairs, n, rest, held));
    KEPT(*rest);
    KEPT(*held);
}

CPU_TEST(pairs, exactly_the_requested_number_is_held_out)
{
    sb_pairs *pairs = numbered(0, 1000, 1), *rest, *held;
    for (int64_t n = 1; n < 1000; n += 333) {
        divide(pairs, n, &rest, &held);
        cr_expect(sb_pairs_count(held) == n && sb_pairs_count(rest) == 1000 - n);
        cr_expect(sb_pairs_shared(rest, held) == 0);
        cr_expect(sb_pairs_shared(pairs, held) == n);
        for (int64_t i = 1; i < n; i++) /* in the original order */
            cr_expect(atoi(sb_pairs_source(held, i) + 1) > atoi(sb_pairs_source(held, i - 1) + 1));
    }
}

CPU_TEST(pairs, the_split_does_not_depend_on_the_order_in_the_file)
{
    sb_pairs *a = numbered(0, 500, 1), *b = numbered(77, 500, 1), *rest[2], *held[2];
    divide(a, 50, &rest[0], &held[0]);
    divide(b, 50, &rest[1], &held[1]);
    cr_expect(sb_pairs_shared(held[0], held[1]) == 50);
}

CPU_TEST(pairs, all_pairs_of_a_source_are_in_one_part)
{
    sb_pairs *pairs = numbered(0, 100, 3), *rest, *held;
    divide(pairs, 31, &rest, &held);
    cr_expect(sb_pairs_count(held) == 30); /* ten sources of three pairs; 31 is no multiple */
    cr_expect(sb_pairs_shared(rest, held) == 0);
    rest = held = NULL;
    REFUSED("pairs_divide: held_out is 2, but every source has more pairs",
            sb_pairs_divide(pairs, 2, &rest, &held));
    cr_expect(!sb_pairs_divide(pairs, 0, &rest, &held));
    REFUSED("pairs_divide: held_out is 300 of 300 pairs; neither side may be empty",
            sb_pairs_divide(pairs, 300, &rest, &held));
    cr_expect(!sb_pairs_divide(NULL, 1, &rest, &held) && !rest && !held);
}

/* ---- lack of memory ---- */

static bool read_and_divide(void *context)
{
    sb_pairs *pairs = sb_pairs_parse("t.tsv", context, strlen(context), NULL), *rest, *held;
    if (!pairs)
        return false;
    bool ok = sb_pairs_add(pairs, "source", "target") && sb_pairs_divide(pairs, 1, &rest, &held);
    if (ok) {
        ok = sb_pairs_shared(rest, held) == 0;
        sb_pairs_free(rest);
        sb_pairs_free(held);
    }
    sb_pairs_free(pairs);
    return ok;
}

CPU_TEST(pairs, each_failing_allocation_is_reported)
{
    char text[] = SOUND SOUND "bad\nc\td\n";
    cr_expect(test_each_allocation_fails(read_and_divide, text) > 20);
}

static bool read_files(void *context)
{
    const char *const *paths = context;
    sb_pairs *pairs = sb_pairs_read_two(paths[0], paths[1], NULL);
    sb_pairs_free(pairs);
    return pairs != NULL;
}

CPU_TEST(pairs, each_failing_allocation_closes_the_files)
{
    const char *paths[] = {test_temporary("a.txt"), test_temporary("b.txt")};
    write_file(paths[0], "a\nb\n", 4);
    write_file(paths[1], "c\nd\n", 4);
    cr_expect(test_each_allocation_fails(read_files, paths) > 5);
    FILE *file = fopen(paths[0], "rb"); /* the lowest file number is free: no file was left open */
    cr_expect(file && fileno(file) < 20);
    fclose(file);
}

/* ---- documents ---- */

static sb_documents *documents_of(const char *text, sb_document_cut cut)
{
    sb_documents *d = sb_documents_new();
    MUST(d && sb_documents_add(d, "text", text, strlen(text), cut));
    return KEPT(d);
}

static void expect_documents(const char *text, sb_document_cut cut, int n, const char *const all[])
{
    sb_documents *d = documents_of(text, cut);
    cr_expect(sb_documents_count(d) == n, "%d documents", (int)sb_documents_count(d));
    for (int i = 0; i < n && i < sb_documents_count(d); i++) {
        cr_expect_str_eq(sb_documents_text(d, i), all[i]);
        cr_expect(sb_documents_begins(d, i) && sb_documents_ends(d, i));
    }
}

CPU_TEST(documents, a_file_is_one_or_many)
{
    const char *text = "one\ntwo\n\n\nthree\n \nfour";
    expect_documents(text, SB_DOCUMENTS_FILES, 1, (const char *const[]){text});
    expect_documents(text, SB_DOCUMENTS_PARAGRAPHS, 3,
                     (const char *const[]){"one\ntwo", "three", "four"});
    expect_documents(text, SB_DOCUMENTS_LINES, 4,
                     (const char *const[]){"one", "two", "three", "four"});
}

CPU_TEST(documents, ends_of_lines_and_byte_order_marks_are_not_learned)
{
    expect_documents("\xEF\xBB\xBF"
                     "a\r\nb\r\n",
                     SB_DOCUMENTS_FILES, 1, (const char *const[]){"a\nb\n"});
    expect_documents("a\r\n\r\nb\r\n", SB_DOCUMENTS_PARAGRAPHS, 2, (const char *const[]){"a", "b"});
}

static void expect_refused(const char *text, size_t size, const char *reason)
{
    sb_documents *d = KEPT(sb_documents_new());
    REFUSED(reason, sb_documents_add(d, "book.txt", text, size, SB_DOCUMENTS_LINES));
}

CPU_TEST(documents, what_is_no_text_is_named_with_its_line)
{
    expect_refused("a\nb\xFF\n", 5, "book.txt:2: byte 0xff is not UTF-8");
    expect_refused("a\nb\n\0", 5, "book.txt:3: there is a NUL byte");
    expect_refused("\n\n", 2, "book.txt: it has no text");
    sb_documents *d = KEPT(sb_documents_new());
    REFUSED("none.txt", sb_documents_read(d, test_temporary("none.txt"), SB_DOCUMENTS_FILES));
}

static void divide_documents(sb_documents *all, sb_documents **rest, sb_documents **held)
{
    MUST(sb_documents_divide(all, 20, rest, held));
    KEPT(*rest);
    KEPT(*held);
}

CPU_TEST(documents, few_are_cut_at_a_line_and_the_pieces_say_so)
{
    char text[2001] = "";
    for (int i = 0; i < 100; i++)
        memcpy(text + 20 * i, "nineteen characters\n", 21);
    sb_documents *all = documents_of(text, SB_DOCUMENTS_FILES), *rest, *held;
    divide_documents(all, &rest, &held);
    cr_assert(sb_documents_count(rest) == 1 && sb_documents_count(held) == 1);
    cr_expect(sb_documents_begins(rest, 0) && !sb_documents_ends(rest, 0));
    cr_expect(!sb_documents_begins(held, 0) && sb_documents_ends(held, 0));
    cr_expect(sb_documents_bytes(held) == 100 && sb_documents_text(held, 0)[0] == 'n');
    cr_expect(sb_documents_hash(all) != sb_documents_hash(rest));
}

CPU_TEST(documents, of_many_whole_ones_are_held_out_and_equal_ones_stay_together)
{
    sb_documents *all = KEPT(sb_documents_new()), *rest, *held;
    for (int i = 0; i < 800; i++) {
        char line[32];
        snprintf(line, sizeof line, "document %d", i / 2);
        cr_assert(sb_documents_add(all, "text", line, strlen(line), SB_DOCUMENTS_LINES));
    }
    divide_documents(all, &rest, &held);
    const int64_t n = sb_documents_count(held);
    cr_expect(n % 2 == 0 && n >= 40 && n <= 42, "%d are held out", (int)n);
    cr_expect(n + sb_documents_count(rest) == 800);
    for (int64_t i = 0; i < n; i += 2)
        cr_expect_str_eq(sb_documents_text(held, i), sb_documents_text(held, i + 1));
}

CPU_TEST(documents, too_little_text_is_not_divided)
{
    sb_documents *all = documents_of("ab", SB_DOCUMENTS_FILES), *rest, *held;
    cr_expect(!sb_documents_divide(all, 20, &rest, &held) && !rest && !held);
    EXPECT_ERROR("1 documents of 2 bytes are too few");
}
