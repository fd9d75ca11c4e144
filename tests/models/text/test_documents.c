#include "tests/support/test.h"
#include <stdio.h>

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
    cr_expect(!sb_documents_add(d, "book.txt", text, size, SB_DOCUMENTS_LINES));
    cr_expect(strstr(sb_error(), reason), "%s", sb_error());
}

CPU_TEST(documents, what_is_no_text_is_named_with_its_line)
{
    expect_refused("a\nb\xFF\n", 5, "book.txt:2: byte 0xff is not UTF-8");
    expect_refused("a\nb\n\0", 5, "book.txt:3: there is a NUL byte");
    expect_refused("\n\n", 2, "book.txt: it has no text");
    sb_documents *d = KEPT(sb_documents_new());
    cr_expect(!sb_documents_read(d, test_temporary("none.txt"), SB_DOCUMENTS_FILES));
    cr_expect(strstr(sb_error(), "none.txt"), "%s", sb_error());
}

CPU_TEST(documents, few_are_cut_at_a_line_and_the_pieces_say_so)
{
    char text[2001] = "";
    for (int i = 0; i < 100; i++)
        memcpy(text + 20 * i, "nineteen characters\n", 21);
    sb_documents *all = documents_of(text, SB_DOCUMENTS_FILES), *rest, *held;
    MUST(sb_documents_divide(all, 20, &rest, &held));
    cr_assert(sb_documents_count(rest) == 1 && sb_documents_count(held) == 1);
    cr_expect(sb_documents_begins(rest, 0) && !sb_documents_ends(rest, 0));
    cr_expect(!sb_documents_begins(held, 0) && sb_documents_ends(held, 0));
    cr_expect(sb_documents_bytes(held) == 100 && sb_documents_text(held, 0)[0] == 'n');
    cr_expect(sb_documents_hash(all) != sb_documents_hash(rest));
    sb_documents_free(rest);
    sb_documents_free(held);
}

CPU_TEST(documents, of_many_whole_ones_are_held_out_and_equal_ones_stay_together)
{
    sb_documents *all = KEPT(sb_documents_new()), *rest, *held;
    for (int i = 0; i < 800; i++) {
        char line[32];
        snprintf(line, sizeof line, "document %d", i / 2);
        cr_assert(sb_documents_add(all, "text", line, strlen(line), SB_DOCUMENTS_LINES));
    }
    MUST(sb_documents_divide(all, 20, &rest, &held));
    const int64_t n = sb_documents_count(held);
    cr_expect(n % 2 == 0 && n >= 40 && n <= 42, "%d are held out", (int)n);
    cr_expect(n + sb_documents_count(rest) == 800);
    for (int64_t i = 0; i < n; i += 2)
        cr_expect_str_eq(sb_documents_text(held, i), sb_documents_text(held, i + 1));
    sb_documents_free(rest);
    sb_documents_free(held);
}

CPU_TEST(documents, too_little_text_is_not_divided)
{
    sb_documents *all = documents_of("ab", SB_DOCUMENTS_FILES), *rest, *held;
    cr_expect(!sb_documents_divide(all, 20, &rest, &held) && !rest && !held);
    cr_expect(strstr(sb_error(), "1 documents of 2 bytes are too few"), "%s", sb_error());
}
