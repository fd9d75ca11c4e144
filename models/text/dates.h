/* The task "dates" (task.c): days from 1900 to 2099, and the ways to write them. */
#ifndef SOFTBACK_MODELS_TEXT_DATES_H
#define SOFTBACK_MODELS_TEXT_DATES_H

#include "models/text/task.h"

enum { DATE_SPELLINGS = 20 };

struct date {
    int year, month, day; /* 2021, 3, 3 */
    int weekday;          /* 0 is Monday */
};

/* The day that is `days` days after 1 January 1900, a Monday. */
struct date date_of(int days);

/* Writes a day in one of the spellings; `text` has room for SB_TASK_TEXT bytes. */
void date_spell(struct date date, int spelling, char *text);

#endif
