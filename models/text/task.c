#include "models/text/task.h"
#include "models/text/dates.h"
#include "models/text/table.h"
#include "tensor/failure.h"
#include "tensor/philox.h"
#include "tensor/random.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 10, MIN_LENGTH = 1, MAX_LENGTH = 16 };

static const struct {
    const char *name, *description;
} tasks[SB_TASKS] = {
    {"copy", "copy the digits: 4 7 1 -> 4 7 1"},
    {"reverse", "reverse the digits: 4 7 1 -> 1 7 4"},
    {"sort", "sort the digits: 4 7 1 -> 1 4 7"},
    {"addition", "add two numbers: 47+85 -> 132"},
    {"dates", "read a date: 3rd of March 2021 -> 2021-03-03"},
};

const char *sb_task_name(sb_task task)
{
    return (unsigned)task < SB_TASKS ? tasks[task].name : "(no task)";
}

const char *sb_task_description(sb_task task)
{
    return (unsigned)task < SB_TASKS ? tasks[task].description : "(no task)";
}

bool sb_task_find(const char *name, sb_task *task)
{
    if (!name || !task)
        return fail_null("task", name ? "task" : "name");
    for (int i = 0; i < SB_TASKS; i++) {
        if (strcmp(name, tasks[i].name) == 0) {
            *task = (sb_task)i;
            return true;
        }
    }
    return sb_fail("task: %s is none of copy, reverse, sort, addition, dates",
                   utf8_quote(name).text);
}

sb_part sb_task_part(sb_task task, const char *source, const char *target)
{
    char sum[32];
    if (!source || !target) {
        fail_null("task_part", source ? "target" : "source");
        return SB_PART_TRAIN;
    }
    const char *meaning = task == SB_TASK_DATES ? target : source;
    const char *plus = strchr(source, '+');
    if (task == SB_TASK_ADDITION && plus) { /* 85+47 belongs to the part of 47+85 */
        int a = atoi(source), b = atoi(plus + 1);
        snprintf(sum, sizeof sum, "%d+%d", a < b ? a : b, a < b ? b : a);
        meaning = sum;
    }
    uint64_t tenth = hash_bytes(meaning, strlen(meaning)) % 10;
    return tenth == 0 ? SB_PART_VALID : tenth == 1 ? SB_PART_TEST : SB_PART_TRAIN;
}

/* The random numbers of one generated pair: a stream of its own, fixed by seed, part and index. */
struct draws {
    uint64_t seed, position, count;
};

/* A whole number in 0..limit-1, without bias. */
static uint32_t draw_below(struct draws *draws, uint32_t limit)
{
    uint32_t biased = -limit % limit; /* rejecting 2^32 mod limit products removes the bias */
    uint64_t product;
    do
        product = (uint64_t)philox(draws->seed, draws->position, draws->count++).word[0] * limit;
    while ((uint32_t)product < biased);
    return (uint32_t)(product >> 32);
}

/* ---- the days of "dates", and the ways to write them ---- */

enum { FIRST_YEAR = 1900, DAYS = 73049 /* of 200 years, 49 of them leap years */ };

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                       "Friday", "Saturday", "Sunday"};

/*
 * d 3, D 03, o 3rd; n 3, N 03, m Mar, M March; Y 2021; w Wed, W Wednesday. Only the numeric
 * spellings with the year first are used, as the others are ambiguous.
 */
static const char *const spellings[DATE_SPELLINGS] = {
    "%o of %M %Y",   "the %o of %M, %Y", "%d %M %Y",      "%o %M %Y",
    "%M %d, %Y",     "%M %o, %Y",        "%M the %o, %Y", "%d %m %Y",
    "%m %d, %Y",     "%o %m %Y",         "%D-%m-%Y",      "%W, %d %M %Y",
    "%W, %M %d, %Y", "%w %d %m %Y",      "%w, %m %d, %Y", "%W, the %o of %M %Y",
    "%Y %M %d",      "%Y/%N/%D",         "%Y/%n/%d",      "%Y-%N-%D",
};

static bool date_is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int date_month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && date_is_leap(year));
}

struct date date_of(int days)
{
    struct date date = {FIRST_YEAR, 1, 1, days % 7};
    for (; days >= 365 + date_is_leap(date.year); date.year++)
        days -= 365 + date_is_leap(date.year);
    for (; days >= date_month_days(date.year, date.month); date.month++)
        days -= date_month_days(date.year, date.month);
    date.day += days;
    return date;
}

static const char *date_ordinal_end(int day)
{
    if (day / 10 == 1) /* 11th, 12th, 13th */
        return "th";
    return day % 10 == 1 ? "st" : day % 10 == 2 ? "nd" : day % 10 == 3 ? "rd" : "th";
}

/* Writes the part that a letter of a spelling stands for; returns its length. */
static int date_spell_part(struct date date, char letter, char *text, size_t room)
{
    const char *month = months[date.month - 1], *weekday = weekdays[date.weekday];
    switch (letter) {
    case 'd':
        return snprintf(text, room, "%d", date.day);
    case 'D':
        return snprintf(text, room, "%02d", date.day);
    case 'o':
        return snprintf(text, room, "%d%s", date.day, date_ordinal_end(date.day));
    case 'n':
        return snprintf(text, room, "%d", date.month);
    case 'N':
        return snprintf(text, room, "%02d", date.month);
    case 'm':
        return snprintf(text, room, "%.3s", month);
    case 'M':
        return snprintf(text, room, "%s", month);
    case 'w':
        return snprintf(text, room, "%.3s", weekday);
    case 'W':
        return snprintf(text, room, "%s", weekday);
    default:
        return snprintf(text, room, "%d", date.year);
    }
}

void date_spell(struct date date, int spelling, char *text)
{
    char *end = text;
    for (const char *c = spellings[spelling]; *c; c++) {
        if (*c == '%')
            end += date_spell_part(date, *++c, end, (size_t)(text + SB_TASK_TEXT - end));
        else
            *end++ = *c;
    }
    *end = '\0';
}

static void date_change_case(char *text, bool large)
{
    for (; *text; text++) {
        if (large && *text >= 'a' && *text <= 'z')
            *text = (char)(*text - 'a' + 'A');
        else if (!large && *text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
    }
}

/* Draws a day and a spelling; a quarter of them are in lower case or upper case only. */
static void date_draw(struct draws *draws, sb_task_pair *pair)
{
    struct date date = date_of((int)draw_below(draws, DAYS));
    date_spell(date, (int)draw_below(draws, DATE_SPELLINGS), pair->source);
    uint32_t letters = draw_below(draws, 8);
    if (letters < 2)
        date_change_case(pair->source, letters == 1);
    snprintf(pair->target, sizeof pair->target, "%d-%02d-%02d", date.year, date.month, date.day);
}

/* ---- drawing pairs ---- */

/* Writes digits with single spaces between them. */
static void task_write_digits(const int *digit, int length, char *text)
{
    for (int i = 0; i < length; i++) {
        *text++ = (char)('0' + digit[i]);
        *text++ = i + 1 < length ? ' ' : '\0';
    }
}

static void task_draw_digits(struct draws *draws, sb_task task, sb_task_options lengths,
                             sb_task_pair *pair)
{
    int digit[SB_TASK_LENGTH], answer[SB_TASK_LENGTH], count[SYMBOLS] = {0}, sorted = 0;
    int length = lengths.min_length +
                 (int)draw_below(draws, (uint32_t)(lengths.max_length - lengths.min_length + 1));
    for (int i = 0; i < length; i++)
        count[digit[i] = (int)draw_below(draws, SYMBOLS)]++;
    for (int i = 0; i < length; i++)
        answer[i] = digit[task == SB_TASK_REVERSE ? length - 1 - i : i];
    for (int symbol = 0; task == SB_TASK_SORT && symbol < SYMBOLS; symbol++)
        for (int i = 0; i < count[symbol]; i++)
            answer[sorted++] = symbol;
    task_write_digits(digit, length, pair->source);
    task_write_digits(answer, length, pair->target);
}

static void task_draw_sum(struct draws *draws, sb_task_pair *pair)
{
    int a = 10 + (int)draw_below(draws, 90), b = 10 + (int)draw_below(draws, 90);
    snprintf(pair->source, sizeof pair->source, "%d+%d", a, b);
    snprintf(pair->target, sizeof pair->target, "%d", a + b);
}

static bool task_check(sb_task task, sb_task_options *lengths, sb_part part, uint64_t index)
{
    if ((unsigned)task >= SB_TASKS || (unsigned)part >= SB_PARTS)
        return sb_fail("task_make: there is no task %d or no part %d", (int)task, (int)part);
    if (index >> 48)
        return sb_fail("task_make: index %llu must be below 2^48", (unsigned long long)index);
    if (lengths->min_length == 0)
        lengths->min_length = MIN_LENGTH;
    if (lengths->max_length == 0)
        lengths->max_length = lengths->min_length > MAX_LENGTH ? lengths->min_length : MAX_LENGTH;
    if (lengths->min_length > 0 && lengths->min_length <= lengths->max_length &&
        lengths->max_length <= SB_TASK_LENGTH)
        return true;
    return sb_fail("task_make: lengths are %d to %d; they must be a range in 1..%d",
                   lengths->min_length, lengths->max_length, SB_TASK_LENGTH);
}

bool sb_task_make(sb_task task, const sb_task_options *options, uint64_t seed, sb_part part,
                  uint64_t index, sb_task_pair *pair)
{
    sb_task_options lengths = options ? *options : (sb_task_options){0};
    if (!pair)
        return fail_null("task_make", "pair");
    if (!task_check(task, &lengths, part, index))
        return false;
    /* Parts have different ranges of counters, which no other use of this stream reaches. */
    struct draws draws = {seed, (uint64_t)SB_STREAM_DATA << 48 | index, ((uint64_t)part + 1) << 32};
    do { /* even of the ten single digits, each part has some */
        if (task == SB_TASK_DATES)
            date_draw(&draws, pair);
        else if (task == SB_TASK_ADDITION)
            task_draw_sum(&draws, pair);
        else
            task_draw_digits(&draws, task, lengths, pair);
    } while (sb_task_part(task, pair->source, pair->target) != part);
    return true;
}
