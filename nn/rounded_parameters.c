#include "nn/rounded_parameters.h"
#include "autograd/node.h"
#include "nn/parameter_set.h"
#include "ops/cast.h"
#include "ops/ops.h"
#include "ops/runs.h"
#include "tensor/memory.h"

/* A parameter that the model rounds. */
struct rounded {
    sb_tensor *parameter; /* NULL: this place in its list stays empty */
    sb_tensor *copy;      /* on the tape, until it is used; or NULL */
    bool listed;          /* this step has cast its list */
};

struct rounded_parameters {
    uint64_t tape;       /* the serial number of the step's */
    int64_t count, room; /* in the order in which they were first rounded */
    int64_t before;      /* how many of them earlier steps have noted */
    int64_t next;        /* the one after the last that was found: models repeat their order */
    struct rounded *item;
};

void rounded_parameters_begin(sb_parameters *set, sb_tape *tape, sb_context *context)
{
    if (!set->rounded)
        set->rounded = memory_new(sizeof *set->rounded); /* without, casts are single ones */
    struct rounded_parameters *r = context->rounded = set->rounded;
    sb_tape_begin_with(tape, SB_RECORD, context);
    if (!r)
        return;
    r->tape = tape->serial;
    r->before = r->count;
    r->next = 0;
    for (int64_t i = 0; i < r->count; i++)
        r->item[i] = (struct rounded){.parameter = r->item[i].parameter};
}

void rounded_parameters_free(struct rounded_parameters *rounded)
{
    if (rounded)
        memory_free(rounded->item);
    memory_free(rounded);
}

/* Whether lists are worth it for this parameter, and the open tape is the step's. What an operation
   made, such as a bias of relative positions, ends with its step. */
static bool rounded_in_lists(const struct rounded_parameters *r, const sb_tensor *parameter)
{
    const struct open_tape *tape = tape_open();
    return r && tape && tape->serial == r->tape && parameter->tape == 0 &&
           parameter->dtype == SB_F32 && parameter->device != sb_device_cpu() &&
           tape_wants_grad(tape, parameter);
}

/* The entry of a parameter; NULL when there is none. */
static struct rounded *rounded_find(struct rounded_parameters *r, const sb_tensor *parameter)
{
    for (int64_t i = 0; i < r->count; i++) {
        struct rounded *entry = &r->item[(r->next + i) % r->count];
        if (entry->parameter == parameter) {
            r->next = entry - r->item + 1;
            return entry;
        }
    }
    return NULL;
}

/* Notes a parameter for the next step. */
static bool rounded_note(struct rounded_parameters *r, sb_tensor *parameter)
{
    const bool room = memory_room(&r->item, r->count, &r->room, sizeof *r->item);
    if (room)
        r->item[r->count++] = (struct rounded){.parameter = parameter};
    return room;
}

void rounded_parameters_in_one_list(sb_tensor *first, int n)
{
    struct rounded_parameters *r = context_open()->rounded;
    if (!rounded_in_lists(r, first) || rounded_find(r, first))
        return;
    bool room = true;
    while (room && r->count % CAST_LIST > CAST_LIST - n)
        room = rounded_note(r, NULL);
}

/* Casts all of the list to which an entry belongs. */
static bool rounded_cast_list(struct rounded_parameters *r, const struct rounded *of)
{
    sb_tensor *x[CAST_LIST], *y[CAST_LIST];
    const int64_t first = (of - r->item) / CAST_LIST * CAST_LIST;
    const int64_t end = first + CAST_LIST < r->before ? first + CAST_LIST : r->before;
    int n = 0;
    for (int64_t i = first; i < end; i++) {
        r->item[i].listed = true;
        if (r->item[i].parameter && tape_wants_grad(tape_open(), r->item[i].parameter))
            x[n++] = r->item[i].parameter;
    }
    if (!cast_all(n, x, y))
        return false;
    for (int64_t i = end - 1; i >= first; i--)
        if (n > 0 && r->item[i].parameter == x[n - 1])
            r->item[i].copy = y[--n];
    return true;
}

sb_tensor *rounded_parameter(sb_tensor *parameter)
{
    struct rounded_parameters *r = context_open()->rounded;
    const bool listed = rounded_in_lists(r, parameter);
    struct rounded *entry = listed ? rounded_find(r, parameter) : NULL;
    if (listed && !entry)
        rounded_note(r, parameter);
    if (!entry || entry - r->item >= r->before)
        return sb_cast(parameter, SB_BF16);
    if (!entry->listed && !rounded_cast_list(r, entry))
        return NULL;
    sb_tensor *copy = entry->copy;
    entry->copy = NULL;
    return copy ? copy : sb_cast(parameter, SB_BF16);
}
