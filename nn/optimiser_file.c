/* The state of an optimiser in a file. */
#include "nn/optimiser_parts.h"
#include "nn/parameters_file.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6 };

/* The counters, as metadata: whole numbers, and reals in hexadecimal, exact to the bit. */
struct state_text {
    char number[NUMBERS][40];
};

static const char *const state_names[NUMBERS] = {
    "steps", "rate", "plateau_best", "plateau_seen", "plateau_waited", "plateau_reduced"};

static struct state_text state_write(const sb_optimiser *o)
{
    const sb_plateau p = sb_optimiser_plateau(o);
    const double number[NUMBERS] = {(double)sb_optimiser_steps(o),
                                    optimiser_own_rate(o),
                                    p.best,
                                    (double)p.seen,
                                    p.waited,
                                    p.reduced};
    struct state_text text;
    for (int i = 0; i < NUMBERS; i++)
        snprintf(text.number[i], sizeof text.number[i], i == 1 || i == 2 ? "%a" : "%.0f",
                 number[i]);
    return text;
}

static bool state_read(const sb_safetensors *file, double number[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++) {
        const char *text = sb_safetensors_metadata(file, state_names[i]);
        char *end = NULL;
        number[i] = text ? strtod(text, &end) : 0;
        const bool counts = i != 1 && i != 2;
        if (!text || end == text || *end || (i == 1 && number[i] < 0) ||
            (counts && !(number[i] >= 0 && number[i] <= 0x1p53)))
            return sb_fail("optimiser_load: the file's \"%s\" is missing or malformed",
                           state_names[i]);
    }
    return true;
}

/* "moment.0.encoder.norm.gain" */
static char *moment_name(const sb_optimiser *o, int moment, int64_t i)
{
    return memory_format("moment.%d.%s", moment, sb_parameters_name(optimiser_set(o), i));
}

/* ---- saving ---- */

/* The tensors of a state: a view for each moment of a parameter that is trained, and the steps. */
struct state_items {
    int n;
    sb_named_tensor *item;
};

static void items_free(struct state_items *items)
{
    for (int i = 0; i < items->n; i++) {
        memory_free((char *)(uintptr_t)items->item[i].name);
        sb_tensor_release((sb_tensor *)(uintptr_t)items->item[i].tensor);
    }
    memory_free(items->item);
}

static bool items_add(struct state_items *items, char *name, sb_tensor *t)
{
    items->item[items->n++] = (sb_named_tensor){name, t};
    return t && (name || sb_fail("optimiser_save: out of memory"));
}

static bool items_make(struct state_items *items, const sb_optimiser *o)
{
    const struct moments *m = optimiser_moments((sb_optimiser *)(uintptr_t)o);
    const sb_parameters *set = optimiser_set(o);
    items->item = memory_new((size_t)(m->count * m->tensors + 1) * sizeof *items->item);
    bool ok = items->item || sb_fail("optimiser_save: out of memory");
    for (int k = 0; ok && k < m->tensors; k++)
        for (int64_t i = 0; ok && i < m->count; i++) {
            const sb_tensor *w = sb_parameters_get(set, i);
            if (m->place[i].slot >= 0)
                ok = items_add(
                    items, moment_name(o, k, i),
                    tensor_view("optimiser_save", m->flat[k], m->place[i].slot, w->rank, w->dim));
        }
    if (ok && optimiser_steps_differ(o))
        ok = items_add(items, memory_text("steps"), optimiser_steps_new(o));
    return ok;
}

bool sb_optimiser_save(const sb_optimiser *optimiser, const char *path)
{
    if (!optimiser || !path)
        return fail_null("optimiser_save", optimiser ? "path" : "optimiser");
    if (parameters_ranks(optimiser_set(optimiser)))
        return sb_fail("optimiser_save: ranks hold parts of the parameters; use "
                       "sb_checkpoint_save");
    const struct state_text text = state_write(optimiser);
    const char *const metadata[][2] = {
        {"optimiser", optimiser_name(optimiser)}, {state_names[0], text.number[0]},
        {state_names[1], text.number[1]},         {state_names[2], text.number[2]},
        {state_names[3], text.number[3]},         {state_names[4], text.number[4]},
        {state_names[5], text.number[5]}};
    struct state_items items = {0};
    const bool ok = items_make(&items, optimiser) &&
                    sb_safetensors_save(path, items.n, items.item, 1 + NUMBERS, metadata);
    items_free(&items);
    return ok;
}

/* ---- loading ---- */

/* Reads all moments into tensors like those of the optimiser. */
static bool moments_read(const sb_safetensors *file, const sb_optimiser *o, const struct moments *m,
                         sb_tensor *flat[MOST_MOMENTS])
{
    int found = sb_safetensors_find(file, "steps") >= 0;
    for (int k = 0; k < m->tensors; k++) {
        flat[k] =
            tensor_new("optimiser_load", m->flat[k]->device, m->flat[k]->dtype, 1, m->flat[k]->dim);
        for (int64_t i = 0; i < m->count; i++) {
            const sb_tensor *w = sb_parameters_get(optimiser_set(o), i);
            if (m->place[i].slot < 0)
                continue;
            char *name = moment_name(o, k, i);
            sb_tensor *view =
                flat[k] ? tensor_view("optimiser_load", flat[k], m->place[i].slot, w->rank, w->dim)
                        : NULL;
            const bool ok = view && (name || sb_fail("optimiser_load: out of memory")) &&
                            sb_safetensors_read(file, name, view);
            memory_free(name);
            sb_tensor_release(view);
            if (!ok)
                return false;
            found++;
        }
    }
    return found == sb_safetensors_count(file) ||
           sb_fail("optimiser_load: the file has %d tensors, of which %d belong to parameters that "
                   "are trained here; freeze the same ones",
                   sb_safetensors_count(file), found);
}

static bool steps_read(const sb_safetensors *file, sb_optimiser *o)
{
    if (sb_safetensors_find(file, "steps") < 0)
        return true;
    sb_tensor *steps = optimiser_steps_new(o);
    const bool ok =
        steps && sb_safetensors_read(file, "steps", steps) && optimiser_take_steps(o, steps);
    sb_tensor_release(steps);
    return ok;
}

static bool optimiser_read(const sb_safetensors *file, sb_optimiser *o)
{
    const char *kind = sb_safetensors_metadata(file, "optimiser");
    struct moments *m = optimiser_moments(o);
    sb_tensor *flat[MOST_MOMENTS] = {NULL, NULL};
    double number[NUMBERS];
    if (!kind || strcmp(kind, optimiser_name(o)) != 0)
        return sb_fail("optimiser_load: the file has a state of %s, not of %s",
                       kind ? kind : "no optimiser", optimiser_name(o));
    if (!state_read(file, number) || !moments_fit(m, optimiser_set(o)))
        return false;
    const int64_t before = sb_optimiser_steps(o);
    const sb_plateau was = sb_optimiser_plateau(o);
    const sb_plateau plateau = {.best = number[2],
                                .seen = (int64_t)number[3],
                                .waited = (int)number[4],
                                .reduced = (int)number[5]};
    bool ok = moments_read(file, o, m, flat);
    if (ok)
        sb_optimiser_restore(o, (int64_t)number[0], plateau);
    if (ok && !steps_read(file, o)) {
        sb_optimiser_restore(o, before, was);
        ok = false;
    }
    for (int k = 0; k < m->tensors; k++) {
        sb_tensor *old = ok ? m->flat[k] : flat[k];
        m->flat[k] = ok ? flat[k] : m->flat[k];
        sb_tensor_release(old);
    }
    if (ok && !isnan(number[1]))
        sb_optimiser_set_rate(o, number[1]);
    return ok;
}

bool sb_optimiser_load(sb_optimiser *optimiser, const char *path)
{
    if (!optimiser || !path)
        return fail_null("optimiser_load", optimiser ? "path" : "optimiser");
    sb_safetensors *file = sb_safetensors_open(path);
    const bool ok = file && optimiser_read(file, optimiser);
    sb_safetensors_close(file);
    return ok;
}
