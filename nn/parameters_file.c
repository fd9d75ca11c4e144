#include "nn/parameters_file.h"
#include "nn/name.h"
#include "nn/parameter_set.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool file_check(const char *who, const sb_parameters *set, const char *path)
{
    if (!set || !path)
        return fail_null(who, set ? "path" : "set");
    return !parameters_ranks(set) ||
           sb_fail("%s: ranks hold parts of the parameters; use sb_model_save", who);
}

static bool file_wants(const char *pattern, const char *name)
{
    return !pattern || glob_matches(pattern, name);
}

/* A tensor of the file; the scale of an adapter is metadata under the name of its lora_a. */
struct file_items {
    int n, scales;
    sb_named_tensor *item;
    const char *(*scale)[2];
    char (*text)[32];
};

static bool file_items_begin(struct file_items *f, int64_t room)
{
    *f = (struct file_items){.item = memory_new((size_t)room * sizeof *f->item + 1),
                             .scale = memory_new((size_t)room * sizeof *f->scale + 1),
                             .text = memory_new((size_t)room * sizeof *f->text + 1)};
    return (f->item && f->scale && f->text) || sb_fail("parameters_save: out of memory");
}

static void file_items_add(struct file_items *f, const struct parameter *p)
{
    f->item[f->n++] = (sb_named_tensor){p->name, p->tensor};
    if (p->scale == 0)
        return;
    char *text = f->text[f->scales];
    snprintf(text, sizeof *f->text, "%.17g", p->scale);
    f->scale[f->scales][0] = p->name;
    f->scale[f->scales++][1] = text;
}

static void file_items_free(struct file_items *f)
{
    memory_free(f->item);
    memory_free(f->scale);
    memory_free(f->text);
}

bool sb_parameters_save(const sb_parameters *set, const char *pattern, const char *path)
{
    struct file_items f;
    if (!file_check("parameters_save", set, path))
        return false;
    bool ok = file_items_begin(&f, set->count);
    for (int64_t i = 0; ok && i < set->count; i++)
        if (file_wants(pattern, set->item[i].name))
            file_items_add(&f, &set->item[i]);
    if (ok && f.n == 0)
        ok = sb_fail("parameters_save: no parameter matches \"%.200s\"", pattern ? pattern : "*");
    ok = ok && sb_safetensors_save(path, f.n, f.item, f.scales, (const char *const(*)[2])f.scale);
    file_items_free(&f);
    return ok;
}

/* ---- loading ---- */

/* Names, one a line. */
struct names {
    char *text;
    int64_t used, room, count;
};

/* No names yet. */
static bool names_begin(struct names *names)
{
    *names = (struct names){.text = memory_text(""), .room = 1};
    return names->text || sb_fail("parameters_load: out of memory");
}

static bool names_add(struct names *names, const char *name)
{
    const int64_t size = (int64_t)strlen(name);
    while (names->used + size + 2 > names->room)
        if (!memory_room(&names->text, names->room, &names->room, 1))
            return sb_fail("parameters_load: out of memory");
    if (names->used > 0)
        names->text[names->used++] = '\n';
    memcpy(names->text + names->used, name, (size_t)size + 1);
    names->used += size;
    names->count++;
    return true;
}

/* A file, and what it and a set do not have in common. */
struct comparison {
    const sb_safetensors *file;
    sb_parameters *set;
    const char *pattern;
    struct names missing, left_over;
    int64_t common;
};

/* The file's scale of a parameter that is an adapter's A; 0: it has none, NaN: one that is no
   positive number. */
static double comparison_scale(const struct comparison *c, int64_t i)
{
    const char *name = sb_parameters_name(c->set, i),
               *text = sb_safetensors_metadata(c->file, name);
    if (!text || !glob_matches("*.lora_a", name))
        return 0;
    char *end;
    const double scale = strtod(text, &end);
    return *text && !*end && scale > 0 && isfinite(scale) ? scale : NAN;
}

static bool comparison_scales_fit(const struct comparison *c, int64_t i)
{
    const double own = c->set->item[i].scale, scale = comparison_scale(c, i);
    if (isnan(scale))
        return sb_fail("parameters_load: the file's scale of \"%s\" is no positive number",
                       sb_parameters_name(c->set, i));
    if (own == 0 || scale == 0 || scale == own)
        return true;
    return sb_fail("parameters_load: \"%s\" has the scale %.9g in the file and %.9g in the "
                   "set; give sb_parameters_lora the alpha and the rank of the file",
                   sb_parameters_name(c->set, i), scale, own);
}

static bool comparison_fits(const struct comparison *c, int64_t i, int at)
{
    const sb_tensor *t = sb_parameters_get(c->set, i);
    const int rank = sb_safetensors_rank(c->file, at);
    const int64_t *dim = sb_safetensors_shape(c->file, at);
    const char *dtype = sb_safetensors_dtype(c->file, at);
    if (!shape_equal(t->rank, t->dim, rank, dim))
        return sb_fail("parameters_load: \"%s\" is %s in the file, but %s in the set",
                       sb_parameters_name(c->set, i), shape_text(rank, dim).text,
                       tensor_shape(t).text);
    if (!comparison_scales_fit(c, i))
        return false;
    return strcmp(dtype, "F64") == 0 || strcmp(dtype, "F32") == 0 || strcmp(dtype, "F16") == 0 ||
           strcmp(dtype, "BF16") == 0 ||
           sb_fail("parameters_load: \"%s\" is of %s in the file, not of real numbers",
                   sb_parameters_name(c->set, i), dtype);
}

static bool comparison_make(struct comparison *c)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < sb_parameters_count(c->set); i++) {
        const char *name = sb_parameters_name(c->set, i);
        const int at = sb_safetensors_find(c->file, name);
        if (!file_wants(c->pattern, name))
            continue;
        ok = at < 0 ? names_add(&c->missing, name) : comparison_fits(c, i, at);
        c->common += at >= 0;
    }
    for (int at = 0; ok && at < sb_safetensors_count(c->file); at++) {
        const char *name = sb_safetensors_name(c->file, at);
        if (file_wants(c->pattern, name) && !sb_parameters_find(c->set, name))
            ok = names_add(&c->left_over, name);
    }
    return ok;
}

static bool comparison_is_complete(const struct comparison *c)
{
    const struct names *wrong = c->missing.count > 0 ? &c->missing : &c->left_over;
    if (wrong->count == 0)
        return true;
    const int first = (int)strcspn(wrong->text, "\n");
    if (wrong == &c->missing)
        return sb_fail("parameters_load: %lld parameters are missing in the file, first \"%.*s\"; "
                       "give a pattern, or `loaded` to accept this",
                       (long long)wrong->count, first, wrong->text);
    return sb_fail("parameters_load: the set has no parameters for %lld tensors of the file, first "
                   "\"%.*s\"; give a pattern, or `loaded` to accept this",
                   (long long)wrong->count, first, wrong->text);
}

/* The tensor of the file, of any real dtype, in a new one like `like`. */
static sb_tensor *file_read_as(const sb_safetensors *file, const char *name, const sb_tensor *like)
{
    enum { CHUNK = 2048 };
    double x[CHUNK];
    sb_tensor *from = sb_safetensors_tensor(file, name);
    if (!from || from->dtype == like->dtype)
        return tensor_moved(from, like->device);
    sb_tensor *to =
        tensor_new("parameters_load", sb_device_cpu(), like->dtype, like->rank, like->dim);
    bool ok = to != NULL;
    for (int64_t at = 0, n, size = tensor_size(from); ok && at < size; at += n) {
        n = size - at < CHUNK ? size - at : CHUNK;
        ok = tensor_read_part(from, at, n, x) && tensor_write_part(to, at, n, x);
    }
    sb_tensor_release(from);
    if (!ok)
        sb_tensor_release(to);
    return ok ? tensor_moved(to, like->device) : NULL;
}

/* Reads all into new tensors first, so that a failure changes nothing. */
static bool comparison_read(const struct comparison *c)
{
    const int64_t n = sb_parameters_count(c->set);
    sb_tensor **read = memory_new((size_t)n * sizeof(sb_tensor *) + 1);
    bool ok = read || sb_fail("parameters_load: out of memory");
    for (int64_t i = 0; ok && i < n; i++) {
        const char *name = sb_parameters_name(c->set, i);
        if (!file_wants(c->pattern, name) || sb_safetensors_find(c->file, name) < 0)
            continue;
        read[i] = file_read_as(c->file, name, sb_parameters_get(c->set, i));
        ok = read[i] != NULL;
    }
    for (int64_t i = 0; read && i < n; i++) {
        sb_tensor *t = sb_parameters_get(c->set, i);
        if (ok && read[i]) {
            t->device->copy(t->data, read[i]->data, tensor_bytes(t));
            tensor_note_write(t);
            const double scale = comparison_scale(c, i);
            c->set->item[i].scale = scale > 0 ? scale : c->set->item[i].scale;
        }
        sb_tensor_release(read[i]);
    }
    memory_free(read);
    return ok;
}

static bool load(struct comparison *c, sb_loaded *loaded)
{
    if (!names_begin(&c->missing) || !names_begin(&c->left_over) || !comparison_make(c) ||
        (!loaded && !comparison_is_complete(c)))
        return false;
    if (c->common == 0)
        return sb_fail("parameters_load: the file has none of the parameters%s%.200s%s",
                       c->pattern ? " that match \"" : "", c->pattern ? c->pattern : "",
                       c->pattern ? "\"" : "");
    return comparison_read(c);
}

/* The names as a text for sb_free. */
static char *names_take(struct names *names)
{
    char *text = names->text;
    names->text = NULL;
    return text;
}

bool sb_parameters_load(sb_parameters *set, const char *pattern, const char *path,
                        sb_loaded *loaded)
{
    if (loaded)
        *loaded = (sb_loaded){0};
    if (!file_check("parameters_load", set, path))
        return false;
    sb_safetensors *file = sb_safetensors_open(path);
    struct comparison c = {.file = file, .set = set, .pattern = pattern};
    bool ok = file && load(&c, loaded);
    if (ok && loaded)
        *loaded = (sb_loaded){c.common, names_take(&c.missing), names_take(&c.left_over)};
    memory_free(c.missing.text);
    memory_free(c.left_over.text);
    sb_safetensors_close(file);
    return ok;
}

void sb_loaded_free(sb_loaded *loaded)
{
    if (!loaded)
        return;
    sb_free(loaded->missing);
    sb_free(loaded->left_over);
    *loaded = (sb_loaded){0};
}
