#include "nn/groups.h"
#include "nn/name.h"
#include "nn/parameter_set.h"
#include "tensor/failure.h"
#include "tensor/option.h"
#include <math.h>

/* Fails unless a parameter matches. */
static bool group_matches_any(const char *who, const sb_parameters *set, const char *pattern)
{
    if (!set || !pattern)
        return fail_null(who, set ? "pattern" : "set");
    if (!parameters_may_change(who, set))
        return false;
    for (int64_t i = 0; i < set->count; i++)
        if (glob_matches(pattern, set->item[i].name))
            return true;
    if (set->count == 0)
        return sb_fail("%s: the set has no parameters; call this after the model is made", who);
    return sb_fail("%s: no parameter matches \"%.200s\"; names are like \"%s\"", who, pattern,
                   set->item[0].name);
}

static void group_freeze(sb_parameters *set, struct parameter *p, bool frozen)
{
    if (p->frozen == frozen)
        return;
    p->frozen = frozen;
    p->tensor->requires_grad = !frozen;
    if (frozen) {
        sb_tensor_release(p->tensor->grad);
        p->tensor->grad = NULL;
        p->tensor->grad_current = false;
    }
    set->moved = true;
}

bool sb_parameters_freeze(sb_parameters *set, const char *pattern, bool frozen)
{
    if (!group_matches_any("parameters_freeze", set, pattern))
        return false;
    for (int64_t i = 0; i < set->count; i++)
        if (glob_matches(pattern, set->item[i].name))
            group_freeze(set, &set->item[i], frozen);
    return true;
}

bool sb_parameters_group(sb_parameters *set, const char *pattern, const sb_group *group)
{
    if (!group_matches_any("parameters_group", set, pattern))
        return false;
    if (!group)
        return fail_null("parameters_group", "group");
    if (!check_not_negative("parameters_group", "rate", group->rate) ||
        !check_not_negative("parameters_group", "decay", group->decay))
        return false;
    for (int64_t i = 0; i < set->count; i++) {
        struct parameter *p = &set->item[i];
        if (!glob_matches(pattern, p->name))
            continue;
        p->rate = sb_option_given(group->rate) ? sb_option(group->rate, 1) : p->rate;
        p->decay = sb_option_given(group->decay) ? group->decay : p->decay;
        if (group->frozen)
            group_freeze(set, p, true);
    }
    return true;
}

int64_t sb_parameters_trainable(const sb_parameters *set)
{
    int64_t size = 0;
    for (int64_t i = 0; set && i < set->count; i++)
        size += set->item[i].frozen ? 0 : tensor_size(set->item[i].tensor);
    return size;
}
