#include "models/text/dates.h"
#include <stdio.h>
#include <string.h>

enum { FIRST_YEAR = 1900, DAYS = 73049 /* of 200 years, 49 of them leap years */ };

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                       "Friday", "Saturday", "Sunday"};

/*
 * d 3, D 03, o 3rd; n 3, N 03, m Mar, M March; Y 2021; w Wed, W Wednesday. Of the numeric
 * spellings only those with the year first are used, as the others are ambiguous.
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

void date_draw(struct draws *draws, sb_task_pair *pair)
{
    struct date date = date_of((int)draw_below(draws, DAYS));
    date_spell(date, (int)draw_below(draws, DATE_SPELLINGS), pair->source);
    uint32_t letters = draw_below(draws, 8);
    if (letters < 2)
        date_change_case(pair->source, letters == 1);
    snprintf(pair->target, sizeof pair->target, "%d-%02d-%02d", date.year, date.month, date.day);
}
