#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/utf8.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 1024 };

static _Thread_local char message[MESSAGE_SIZE];
static _Thread_local bool unsettled;
static _Thread_local bool *watching;
static _Thread_local uint64_t failures;

const char *sb_error(void)
{
    unsettled = false; /* the caller has now read why a NULL was returned */
    return message;
}

void *sb_fail(const char *format, ...)
{
    failures++;
    if (watching && *watching)
        return NULL;
    char text[MESSAGE_SIZE]; /* an argument may be the old message */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format ? format : "failed, without a message", values);
    va_end(values);
    utf8_disarm(text); /* it may quote data, and is for a terminal */
    memcpy(message, text, sizeof message);
    unsettled = true;
    if (watching)
        *watching = true;
    return NULL;
}

void *fail_null(const char *function, const char *argument)
{
    if (unsettled)
        return sb_fail("%s: %s is NULL, because %s", function, argument, message);
    return sb_fail("%s: %s is NULL", function, argument);
}

bool check_at_least(const char *function, const char *argument, int64_t value, int64_t least)
{
    return value >= least || sb_fail("%s: %s is %lld; it must be at least %lld", function, argument,
                                     (long long)value, (long long)least);
}

bool check_not_negative(const char *function, const char *argument, double value)
{
    return (value >= 0 && isfinite(value)) ||
           sb_fail("%s: %s is %g; it must be a number >= 0", function, argument, value);
}

bool check_share(const char *function, const char *argument, double value)
{
    return (value >= 0 && value < 1) ||
           sb_fail("%s: %s is %g; it must be in [0, 1)", function, argument, value);
}

void failure_watch(bool *failed)
{
    watching = failed;
}

void failure_settled(void)
{
    unsettled = false;
}

uint64_t failure_count(void)
{
    return failures;
}
