#include "models/training/settings.h"
#include "nn/lora.h"
#include "tensor/error.h"
#include "tensor/option.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the groups, while they are read. */
struct group_text {
    char pattern[FIELD_TEXT_SIZE];
    sb_group group;
};

/* Reads a member of a group, "rate=0.1", of so many bytes. */
static bool group_read_member(sb_group *group, const char *text, size_t size)
{
    const size_t name = strcspn(text, "=,;");
    double *number = name == 4 && strncmp(text, "rate", 4) == 0    ? &group->rate
                     : name == 5 && strncmp(text, "decay", 5) == 0 ? &group->decay
                                                                   : NULL;
    if (size == 6 && strncmp(text, "frozen", 6) == 0) {
        group->frozen = true;
        return true;
    }
    if (!number || name == size)
        return sb_fail("--group: \"%.*s\" is none of rate=X, decay=X and frozen", (int)size, text);
    char *end;
    const double value = strtod(text + name + 1, &end);
    if (end != text + size || end == text + name + 1 || !(value >= 0 && isfinite(value)))
        return sb_fail("--group: \"%.*s\": not a number >= 0 after \"=\"", (int)size, text);
    *number = value == 0 ? SB_ZERO : value;
    return true;
}

/* Reads the group at *text, and moves on to the next one. */
static bool group_read(const char **text, struct group_text *g)
{
    const char *at = *text;
    const size_t all = strcspn(at, ";"), pattern = strcspn(at, ":;");
    *g = (struct group_text){.pattern = ""};
    if (pattern == all || pattern == 0)
        return sb_fail("--group: \"%.*s\" is not PATTERN:rate=X,decay=X", (int)all, at);
    memcpy(g->pattern, at, pattern);
    for (size_t i = pattern + 1, size; i <= all; i += size + 1) {
        size = strcspn(at + i, ",;");
        if (!group_read_member(&g->group, at + i, size))
            return false;
    }
    *text = at + all + (at[all] == ';');
    return true;
}

bool fine_tuning_check(const struct fine_tuning *tuning)
{
    struct group_text g;
    for (const char *at = tuning->groups; *at;)
        if (!group_read(&at, &g))
            return false;
    return true;
}

bool fine_tuning_prepare(const struct fine_tuning *tuning, sb_parameters *weights)
{
    const sb_lora_options options = {.rank = tuning->lora,
                                     .alpha = tuning->lora_alpha,
                                     .on = tuning->lora_on[0] ? tuning->lora_on : NULL};
    return tuning->lora == 0 || sb_parameters_lora(weights, &options);
}

bool fine_tuning_apply(const struct fine_tuning *tuning, sb_parameters *weights)
{
    struct group_text g;
    if (tuning->lora > 0 && !sb_lora_freeze(weights))
        return false;
    for (const char *at = tuning->groups; *at;)
        if (!group_read(&at, &g) || !sb_parameters_group(weights, g.pattern, &g.group))
            return false;
    return !tuning->freeze[0] || sb_parameters_freeze(weights, tuning->freeze, true);
}
