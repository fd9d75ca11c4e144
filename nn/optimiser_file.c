/* The state of an optimiser in a file. */
#include "nn/optimiser_parts.h"
#include "nn/parameters_file.h"
#include "nn/stored.h"
#include "tensor/failure.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

enum { RATE = 1, BEST = 2 }; /* the two that are no counts */

static const struct {
    const char *name;
    double most;
} numbers[STATE_NUMBERS] = {
    {"optimiser.steps", 0x1p53},           {"optimiser.rate", INFINITY},
    {"optimiser.plateau_best", INFINITY},  {"optimiser.plateau_seen", 0x1p53},
    {"optimiser.plateau_waited", 1000000}, {"optimiser.plateau_reduced", 1000000}};

void optimiser_write(const sb_optimiser *o, struct state_text *text)
{
    const sb_plateau p = o->plateau;
    const double number[STATE_NUMBERS] = {(double)o->steps, o->own_rate, p.best,
                                          (double)p.seen,   p.waited,    p.reduced};
    text->pair[0][0] = "optimiser";
    text->pair[0][1] = optimiser_name(o);
    for (int i = 0; i < STATE_NUMBERS; i++) {
        const bool counts = i != RATE && i != BEST;
        snprintf(text->number[i], sizeof text->number[i], counts ? "%.0f" : "%a", number[i]);
        text->pair[1 + i][0] = numbers[i].name;
        text->pair[1 + i][1] = text->number[i];
    }
}

static bool number_read(const sb_safetensors *file, int i, double *number)
{
    const char *text = sb_safetensors_metadata(file, numbers[i].name);
    char *end = NULL;
    *number = text ? strtod(text, &end) : 0;
    const bool counts = i != RATE && i != BEST;
    if (!text || end == text || *end || (i == RATE && *number < 0) ||
        (counts && !(*number >= 0 && *number <= numbers[i].most && *number == floor(*number))))
        return sb_fail("optimiser_load: the file's \"%s\" is missing or malformed",
                       numbers[i].name);
    return true;
}

bool optimiser_read_counts(const struct stored_file *file, struct optimiser_counts *n)
{
    double number[STATE_NUMBERS];
    for (int i = 0; i < STATE_NUMBERS; i++)
        if (!number_read(file->tensors, i, &number[i]))
            return false;
    *n = (struct optimiser_counts){.steps = (int64_t)number[0],
                                   .rate = number[RATE],
                                   .plateau = {.best = number[BEST],
                                               .seen = (int64_t)number[3],
                                               .waited = (int)number[4],
                                               .reduced = (int)number[5]}};
    return true;
}

/* ---- steps that differ between parameters ---- */

static bool steps_differ(const sb_optimiser *o)
{
    const struct moments *m = &o->moments;
    for (int64_t i = 0; i < m->count; i++)
        if (m->place[i].slot >= 0 && m->place[i].steps != o->steps)
            return true;
    return false;
}

static sb_tensor *steps_new(const sb_optimiser *o)
{
    const struct moments *m = &o->moments;
    sb_tensor *steps = tensor_new("optimiser", sb_device_cpu(), SB_F64, 1, &m->count);
    for (int64_t i = 0; steps && i < m->count; i++)
        ((double *)steps->data)[i] = (double)m->place[i].steps;
    return steps;
}

static bool steps_take(sb_optimiser *o, const sb_tensor *steps)
{
    struct moments *m = &o->moments;
    const double *number = steps->data, most = (double)o->steps;
    for (int64_t i = 0; i < m->count; i++)
        if (!(number[i] >= 0 && number[i] <= most && number[i] == floor(number[i])))
            return sb_fail("optimiser: \"%s\" has taken %g steps of %g",
                           sb_parameters_name(o->set, i), number[i], most);
    for (int64_t i = 0; i < m->count; i++)
        m->place[i].steps = (int64_t)number[i];
    return true;
}

/* Adds the steps as the last item. */
static bool steps_list(struct stored_list *list, const sb_optimiser *o)
{
    sb_tensor *steps = steps_new(o);
    const bool ok =
        steps && stored_add(list, "", "optimiser.steps", &(struct stored){.i = -1, .flat = steps});
    sb_tensor_release(steps);
    return ok;
}

/* ---- moments ---- */

/* Lists the moments of the parameters that are trained, in tensors like those of the optimiser. */
static bool moments_list(struct stored_list *list, const sb_optimiser *o,
                         sb_tensor *const flat[MOST_MOMENTS])
{
    const struct moments *m = &o->moments;
    bool ok = true;
    for (int k = 0; ok && k < m->tensors; k++)
        for (int64_t i = 0; ok && i < m->count; i++) {
            const struct stored item = {.i = i, .flat = flat[k], .at = m->place[i].slot};
            ok = item.at < 0 ||
                 stored_add(list, k == 0 ? "optimiser.moment.0." : "optimiser.moment.1.",
                            sb_parameters_name(o->set, i), &item);
        }
    return ok;
}

bool optimiser_list(const sb_optimiser *o, struct stored_list *list)
{
    list->set = o->set;
    return moments_list(list, o, o->moments.flat) && (!steps_differ(o) || steps_list(list, o));
}

bool sb_optimiser_save(const sb_optimiser *optimiser, const char *path)
{
    if (!optimiser || !path)
        return fail_null("optimiser_save", optimiser ? "path" : "optimiser");
    if (parameters_ranks(optimiser->set))
        return sb_fail("optimiser_save: ranks hold parts of the parameters; use "
                       "sb_checkpoint_save");
    struct state_text text;
    struct stored_list list = {0};
    optimiser_write(optimiser, &text);
    const bool ok =
        optimiser_list(optimiser, &list) &&
        stored_save(path, &list, false, STATE_PAIRS, (const char *const(*)[2])text.pair);
    stored_free(&list);
    return ok;
}

/* ---- loading ---- */

/* Whether the moments of the file are those of the list. */
static bool moments_match(const sb_safetensors *file, const struct stored_list *list)
{
    static const char prefix[] = "optimiser.";
    int found = 0, all = 0;
    for (int i = 0; i < sb_safetensors_count(file); i++)
        all += strncmp(sb_safetensors_name(file, i), prefix, sizeof prefix - 1) == 0;
    for (int64_t k = 0; k < list->n; k++)
        found += sb_safetensors_find(file, list->item[k].name) >= 0;
    return found == all ||
           sb_fail("optimiser_load: the file has %d tensors, of which %d belong to parameters that "
                   "are trained here; freeze the same ones",
                   all, found);
}

/* Reads the moments into these tensors, and the steps if the file has them; `steps` is in the list
   then. */
static bool moments_read(struct stored_file *file, const sb_optimiser *o,
                         sb_tensor *const flat[MOST_MOMENTS], struct stored_list *list,
                         bool *has_steps)
{
    *has_steps = sb_safetensors_find(file->tensors, "optimiser.steps") >= 0;
    bool ok = moments_list(list, o, flat) && (!*has_steps || steps_list(list, o)) &&
              moments_match(file->tensors, list);
    for (int64_t k = 0; ok && k < list->n; k++)
        ok = stored_read(file, list, k);
    return ok;
}

/* Takes what was read. */
static bool optimiser_take(sb_optimiser *o, const struct optimiser_counts *n,
                           const sb_tensor *steps)
{
    const int64_t before = o->steps;
    const sb_plateau was = o->plateau;
    sb_optimiser_restore(o, n->steps, n->plateau);
    if (steps && !steps_take(o, steps)) {
        sb_optimiser_restore(o, before, was);
        return false;
    }
    o->own_rate = isnan(n->rate) ? o->own_rate : n->rate;
    return true;
}

bool optimiser_read(struct stored_file *file, sb_optimiser *o, bool in_place)
{
    const char *kind = sb_safetensors_metadata(file->tensors, "optimiser");
    struct moments *m = &o->moments;
    struct optimiser_counts counts;
    struct stored_list list = {.set = o->set};
    sb_tensor *flat[MOST_MOMENTS] = {NULL, NULL};
    bool steps, ok = true;
    if (!kind || strcmp(kind, optimiser_name(o)) != 0)
        return sb_fail("optimiser_load: the file has a state of %s, not of %s",
                       kind ? kind : "no optimiser", optimiser_name(o));
    if (!optimiser_read_counts(file, &counts) || !moments_fit(m, o->set))
        return false;
    for (int k = 0; ok && k < m->tensors; k++) {
        sb_tensor *own = m->flat[k];
        flat[k] = in_place ? sb_tensor_retain(own)
                           : tensor_new("optimiser_load", own->device, own->dtype, 1, own->dim);
        ok = flat[k] != NULL;
    }
    ok = ok && moments_read(file, o, flat, &list, &steps) &&
         optimiser_take(o, &counts, steps ? list.item[list.n - 1].flat : NULL);
    for (int k = 0; k < m->tensors; k++) {
        sb_tensor *old = ok ? m->flat[k] : flat[k];
        m->flat[k] = ok ? flat[k] : m->flat[k];
        sb_tensor_release(old);
    }
    stored_free(&list);
    return ok;
}

bool sb_optimiser_load(sb_optimiser *optimiser, const char *path)
{
    if (!optimiser || !path)
        return fail_null("optimiser_load", optimiser ? "path" : "optimiser");
    struct stored_file file;
    const bool ok = stored_open(&file, path) && optimiser_read(&file, optimiser, false);
    stored_close(&file);
    return ok;
}
