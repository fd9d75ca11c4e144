#include "nn/name.h"
#include <stddef.h>

/* Whether the name matches the pattern up to `end`. After a mismatch the last "*" takes one more
   character, and the rest is tried again. */
static bool glob_match(const char *pattern, const char *end, const char *name)
{
    const char *star = NULL, *from = name;
    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool glob_matches(const char *patterns, const char *name)
{
    for (const char *end = patterns;; patterns = ++end) {
        while (*end && *end != ',')
            end++;
        if (glob_match(patterns, end, name))
            return true;
        if (!*end)
            return false;
    }
}
