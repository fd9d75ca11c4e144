#include "models/text/task.h"
#include "models/text/dates.h"
#include "models/text/draws.h"
#include "models/text/table.h"
#include "tensor/failure.h"
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
