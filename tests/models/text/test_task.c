#include "models/text/dates.h"
#include "models/text/table.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <strings.h>
#include <time.h>

enum { MANY = 4000 };

static sb_task_pair made(sb_task task, const sb_task_options *options, uint64_t seed, sb_part part,
                         uint64_t index)
{
    sb_task_pair pair;
    memset(&pair, '?', sizeof pair);
    MUST(sb_task_make(task, options, seed, part, index, &pair));
    return pair;
}

/* The digits of "4 7 1"; -1 if the text has another form. */
static int digits(const char *text, int *digit)
{
    int count = 0;
    for (;; text += 2) {
        if (text[0] < '0' || text[0] > '9' || (text[1] != ' ' && text[1] != '\0'))
            return -1;
        digit[count++] = text[0] - '0';
        if (text[1] == '\0')
            return count;
    }
}

CPU_TEST(task, a_pair_depends_only_on_its_arguments)
{
    for (int task = 0; task < SB_TASKS; task++) {
        sb_task_pair later = made((sb_task)task, NULL, 1, SB_PART_TRAIN, 5);
        for (uint64_t i = 0; i < 5; i++)
            made((sb_task)task, NULL, 1, SB_PART_TRAIN, i);
        sb_task_pair again = made((sb_task)task, NULL, 1, SB_PART_TRAIN, 5);
        cr_expect_str_eq(later.source, again.source);
        cr_expect_str_eq(later.target, again.target);
    }
}

/* Computed once by this library; other machines and builds must give the same. */
CPU_TEST(task, the_pairs_never_change)
{
    static const char *const expected[SB_TASKS][2] = {
        {"1 7 5 6 1 7 1", "1 7 5 6 1 7 1"},  {"1 7 5 6 1 7 1", "1 7 1 6 5 7 1"},
        {"1 7 5 6 1 7 1", "1 1 1 5 6 7 7"},  {"74+77", "151"},
        {"Sun, Dec 14, 2042", "2042-12-14"},
    };
    for (int task = 0; task < SB_TASKS; task++) {
        sb_task_pair pair = made((sb_task)task, NULL, 1, SB_PART_TRAIN, 1);
        cr_expect_str_eq(pair.source, expected[task][0]);
        cr_expect_str_eq(pair.target, expected[task][1]);
    }
}

CPU_TEST(task, seed_part_and_index_change_the_pair)
{
    sb_task_options length = {16, 16};
    sb_task_pair first = made(SB_TASK_COPY, &length, 1, SB_PART_TRAIN, 0);
    cr_expect_str_neq(first.source, made(SB_TASK_COPY, &length, 2, SB_PART_TRAIN, 0).source);
    cr_expect_str_neq(first.source, made(SB_TASK_COPY, &length, 1, SB_PART_VALID, 0).source);
    cr_expect_str_neq(first.source, made(SB_TASK_COPY, &length, 1, SB_PART_TRAIN, 1).source);
}

CPU_TEST(task, copy_reverse_and_sort_have_the_right_targets)
{
    for (int task = SB_TASK_COPY; task <= SB_TASK_SORT; task++) {
        int lengths[17] = {0}, symbols[10] = {0};
        for (uint64_t i = 0; i < MANY; i++) {
            sb_task_pair pair = made((sb_task)task, NULL, 3, SB_PART_TRAIN, i);
            int x[SB_TASK_LENGTH], y[SB_TASK_LENGTH], count[2][10] = {{0}};
            int n = digits(pair.source, x);
            cr_assert(n >= 1 && n <= 16 && digits(pair.target, y) == n, "\"%s\"", pair.source);
            lengths[n]++;
            for (int k = 0; k < n; k++) {
                symbols[x[k]]++;
                count[0][x[k]]++;
                count[1][y[k]]++;
                if (task == SB_TASK_COPY)
                    cr_assert(y[k] == x[k]);
                if (task == SB_TASK_REVERSE)
                    cr_assert(y[k] == x[n - 1 - k]);
                if (task == SB_TASK_SORT)
                    cr_assert(k == 0 || y[k] >= y[k - 1]);
            }
            cr_assert(memcmp(count[0], count[1], sizeof count[0]) == 0);
        }
        for (int n = 1; n <= 16; n++) /* 250 of each length, within five deviations of 15 */
            cr_expect(abs(lengths[n] - MANY / 16) < 80, "%d of length %d", lengths[n], n);
        for (int s = 0; s < 10; s++) /* 3,400 of each symbol */
            cr_expect(abs(symbols[s] - MANY * 17 / 20) < 400, "%d of %d", symbols[s], s);
    }
}

CPU_TEST(task, lengths_can_be_chosen)
{
    int digit[SB_TASK_LENGTH];
    sb_task_options fixed = {16, 16}, range = {4, 7}, longest = {512, 512},
                    at_least = {.min_length = 30};
    bool seen[8] = {false};
    for (uint64_t i = 0; i < 100; i++) {
        cr_expect(digits(made(SB_TASK_REVERSE, &fixed, 1, SB_PART_TEST, i).source, digit) == 16);
        int n = digits(made(SB_TASK_REVERSE, &range, 1, SB_PART_TEST, i).source, digit);
        cr_assert(n >= 4 && n <= 7);
        seen[n] = true;
    }
    cr_expect(seen[4] && seen[5] && seen[6] && seen[7]);
    cr_expect(digits(made(SB_TASK_SORT, &longest, 1, SB_PART_TRAIN, 0).target, digit) == 512);
    cr_expect(digits(made(SB_TASK_SORT, &at_least, 1, SB_PART_TRAIN, 0).target, digit) == 30);
}

CPU_TEST(task, sums_are_right)
{
    int least = 100, most = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        sb_task_pair pair = made(SB_TASK_ADDITION, NULL, 1, SB_PART_TRAIN, i);
        int a, b, end = 0;
        cr_assert(sscanf(pair.source, "%d+%d%n", &a, &b, &end) == 2 && !pair.source[end]);
        cr_assert(a >= 10 && a <= 99 && b >= 10 && b <= 99);
        cr_assert(atoi(pair.target) == a + b);
        least = a < least ? a : least;
        most = a > most ? a : most;
    }
    cr_expect(least == 10 && most == 99);
}

/* Compared with the calendar of the C library. */
CPU_TEST(task, days_follow_the_calendar)
{
    const time_t first = -2208988800; /* 1 January 1900 */
    for (int days = 0; days < 73049; days++) {
        time_t seconds = first + (time_t)days * 86400;
        struct tm tm;
        cr_assert(gmtime_r(&seconds, &tm));
        struct date date = date_of(days);
        cr_assert(date.year == tm.tm_year + 1900 && date.month == tm.tm_mon + 1 &&
                      date.day == tm.tm_mday && date.weekday == (tm.tm_wday + 6) % 7,
                  "day %d is %d-%d-%d", days, date.year, date.month, date.day);
    }
    struct date last = date_of(73048);
    cr_expect(last.year == 2099 && last.month == 12 && last.day == 31);
}

CPU_TEST(task, dates_are_spelled_in_twenty_ways)
{
    static const char *const expected[DATE_SPELLINGS] = {
        "3rd of March 2021",
        "the 3rd of March, 2021",
        "3 March 2021",
        "3rd March 2021",
        "March 3, 2021",
        "March 3rd, 2021",
        "March the 3rd, 2021",
        "3 Mar 2021",
        "Mar 3, 2021",
        "3rd Mar 2021",
        "03-Mar-2021",
        "Wednesday, 3 March 2021",
        "Wednesday, March 3, 2021",
        "Wed 3 Mar 2021",
        "Wed, Mar 3, 2021",
        "Wednesday, the 3rd of March 2021",
        "2021 March 3",
        "2021/03/03",
        "2021/3/3",
        "2021-03-03",
    };
    struct date date = {2021, 3, 3, 2};
    char text[SB_TASK_TEXT];
    for (int i = 0; i < DATE_SPELLINGS; i++) {
        date_spell(date, i, text);
        cr_expect_str_eq(text, expected[i]);
    }
    static const char *const ordinals[] = {"1st",  "2nd",  "3rd",  "4th",  "11th", "12th",
                                           "13th", "21st", "22nd", "23rd", "30th", "31st"};
    for (size_t i = 0; i < sizeof ordinals / sizeof *ordinals; i++) {
        date_spell((struct date){2000, 12, atoi(ordinals[i]), 0}, 3, text);
        cr_expect(strncmp(text, ordinals[i], strlen(ordinals[i])) == 0, "%s", text);
    }
}

/* No source may mean two days. */
CPU_TEST(task, every_spelling_means_one_day)
{
    FREED_BY(table_free) struct table table = {0};
    static char text[SB_TASK_TEXT];
    static int32_t day_of[DATE_SPELLINGS * 1500];
    for (int days = 0; days < 73049; days += test_long() ? 1 : 49) {
        for (int spelling = 0; spelling < DATE_SPELLINGS; spelling++) {
            date_spell(date_of(days), spelling, text);
            int64_t known = table.count;
            int64_t index = table_add(&table, text, strlen(text));
            if (test_long())
                cr_assert(index == known || index > known - DATE_SPELLINGS, "\"%s\" occurs twice",
                          text);
            else if (index == known)
                day_of[index] = days;
            else
                cr_assert(day_of[index] == days, "\"%s\" means two days", text);
        }
    }
}

CPU_TEST(task, drawn_dates_have_every_spelling_in_three_cases)
{
    int lower = 0, upper = 0, mixed = 0;
    char spelled[SB_TASK_TEXT];
    bool seen[DATE_SPELLINGS] = {false};
    for (uint64_t i = 0; i < MANY; i++) {
        sb_task_pair pair = made(SB_TASK_DATES, NULL, 1, SB_PART_TRAIN, i);
        int year, month, day;
        cr_assert(sscanf(pair.target, "%4d-%2d-%2d", &year, &month, &day) == 3);
        cr_assert(strlen(pair.target) == 10);
        struct date date;
        int days = 365 * (year - 1900) + 28 * (month - 1);
        do
            date = date_of(days++);
        while (date.year != year || date.month != month || date.day != day);
        bool found = false;
        for (int s = 0; s < DATE_SPELLINGS && !found; s++) {
            date_spell(date, s, spelled);
            found = strcasecmp(spelled, pair.source) == 0;
            seen[s] = seen[s] || found;
        }
        cr_assert(found, "\"%s\" is no spelling of %s", pair.source, pair.target);
        if (!strpbrk(pair.source, "aeiouAEIOU")) /* may have digits alone */
            continue;
        bool small = strpbrk(pair.source, "aeiou") || strstr(pair.source, "th");
        bool large = strpbrk(pair.source, "ADFJMNOSTW");
        lower += small && !large;
        upper += large && !small;
        mixed += large && small;
    }
    for (int s = 0; s < DATE_SPELLINGS; s++)
        cr_expect(seen[s], "spelling %d is never drawn", s);
    cr_expect(lower > MANY / 20 && upper > MANY / 20 && mixed > MANY / 2);
}

/* ---- held-out pairs ---- */

CPU_TEST(task, no_meaning_is_in_two_parts)
{
    sb_task_options lengths = {2, 4}; /* so short that all pairs are drawn */
    for (int task = 0; task < SB_TASKS; task++) {
        FREED_BY(table_free) struct table table = {0};
        static sb_part part_of[3 * MANY];
        for (int i = 0; i < 3 * MANY; i++) {
            sb_part part = (sb_part)(i % 3);
            sb_task_pair pair =
                made((sb_task)task, &lengths, (uint64_t)(1 + i % 2), part, (uint64_t)i);
            const char *meaning = task == SB_TASK_DATES ? pair.target : pair.source;
            int64_t known = table.count, index = table_add(&table, meaning, strlen(meaning));
            if (index == known)
                part_of[index] = part;
            cr_assert(part_of[index] == part, "%s: \"%s\" is in two parts",
                      sb_task_name((sb_task)task), meaning);
            cr_assert(sb_task_part((sb_task)task, pair.source, pair.target) == part);
        }
    }
}

CPU_TEST(task, a_sum_is_held_out_in_either_order)
{
    for (int a = 10; a < 100; a++) {
        for (int b = 10; b < a; b++) {
            char sum[2][16];
            snprintf(sum[0], sizeof sum[0], "%d+%d", a, b);
            snprintf(sum[1], sizeof sum[1], "%d+%d", b, a);
            cr_assert(sb_task_part(SB_TASK_ADDITION, sum[0], "") ==
                      sb_task_part(SB_TASK_ADDITION, sum[1], ""));
        }
    }
}

CPU_TEST(task, eight_in_ten_days_are_for_training)
{
    int days[SB_PARTS] = {0};
    char date[SB_TASK_TEXT];
    for (int i = 0; i < 73049; i++) {
        date_spell(date_of(i), DATE_SPELLINGS - 1, date);
        days[sb_task_part(SB_TASK_DATES, "any spelling", date)]++;
    }
    cr_expect(abs(days[SB_PART_VALID] - 7305) < 400, "%d", days[SB_PART_VALID]);
    cr_expect(abs(days[SB_PART_TEST] - 7305) < 400, "%d", days[SB_PART_TEST]);
}

CPU_TEST(task, held_out_pairs_have_no_unknown_symbol)
{
    for (int task = 0; task < SB_TASKS; task++) {
        static sb_task_pair pair[MANY];
        static const char *texts[MANY];
        for (uint64_t i = 0; i < MANY; i++) {
            pair[i] = made((sb_task)task, NULL, 1, SB_PART_TRAIN, i);
            texts[i] = pair[i].source;
        }
        sb_vocabulary *v = KEPT(sb_vocabulary_new(texts, MANY, NULL));
        cr_expect(sb_vocabulary_units(v) ==
                  (task < SB_TASK_ADDITION ? SB_UNITS_WORDS : SB_UNITS_CHARACTERS));
        for (uint64_t i = 0; i < MANY; i++) {
            sb_unknown unknown;
            int64_t count;
            sb_task_pair other = made((sb_task)task, NULL, 2, SB_PART_TEST, i);
            sb_free(sb_vocabulary_encode(v, other.source, &count, &unknown));
            cr_assert(unknown.count == 0, "\"%s\"", other.source);
        }
    }
}

CPU_TEST(task, wrong_arguments_are_refused)
{
    sb_task_pair pair;
    sb_task task;
    sb_task_options backwards = {5, 4}, negative = {-1, 4}, huge = {1, 513};
    REFUSED("task_make: lengths are 5 to 4; they must be a range in 1..512",
            sb_task_make(SB_TASK_COPY, &backwards, 1, SB_PART_TRAIN, 0, &pair));
    cr_expect(!sb_task_make(SB_TASK_COPY, &negative, 1, SB_PART_TRAIN, 0, &pair));
    cr_expect(!sb_task_make(SB_TASK_COPY, &huge, 1, SB_PART_TRAIN, 0, &pair));
    cr_expect(!sb_task_make(SB_TASK_COPY, NULL, 1, SB_PART_TRAIN, (uint64_t)1 << 48, &pair));
    cr_expect(!sb_task_make((sb_task)SB_TASKS, NULL, 1, SB_PART_TRAIN, 0, &pair));
    cr_expect(!sb_task_make(SB_TASK_COPY, NULL, 1, (sb_part)3, 0, &pair));
    cr_expect(!sb_task_make(SB_TASK_COPY, NULL, 1, SB_PART_TRAIN, 0, NULL));
    cr_expect(sb_task_find("dates", &task) && task == SB_TASK_DATES);
    REFUSED("task: \"date\" is none of copy, reverse, sort, addition, dates",
            sb_task_find("date", &task));
}

/* If one were missing, the search for a pair would not end. */
CPU_TEST(task, each_part_has_single_digits)
{
    sb_task_options one = {1, 1};
    for (int part = 0; part < SB_PARTS; part++) {
        int seen[10] = {0};
        for (uint64_t i = 0; i < 200; i++)
            seen[atoi(made(SB_TASK_COPY, &one, 1, (sb_part)part, i).source)]++;
        for (int digit = 0; digit < 10; digit++) {
            char text[] = {(char)('0' + digit), '\0'};
            cr_expect((seen[digit] > 0) ==
                      (sb_task_part(SB_TASK_COPY, text, text) == (sb_part)part));
        }
    }
}
