#include "nn/stored.h"
#include "nn/fingerprint.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors_parts.h"
#include <string.h>

bool stored_add(struct stored_list *list, const char *prefix, const char *name,
                const struct stored *item)
{
    if (!memory_room(&list->item, list->n, &list->room, sizeof *list->item))
        return sb_fail("checkpoint: out of memory");
    struct stored *added = &list->item[list->n];
    *added = *item;
    added->name = memory_format("%s%s", prefix, name);
    if (!added->name)
        return sb_fail("checkpoint: out of memory");
    if (added->flat)
        sb_tensor_retain(added->flat);
    list->n++;
    return true;
}

void stored_free(struct stored_list *list)
{
    for (int64_t k = 0; k < list->n; k++) {
        memory_free(list->item[k].name);
        sb_tensor_release(list->item[k].flat);
    }
    memory_free(list->item);
    *list = (struct stored_list){0};
}

static bool stored_is_cut(const struct stored_list *list, const struct stored *s)
{
    return s->i >= 0 && parameters_is_cut(list->set, s->i);
}

/* The flat buffer of an item that ranks hold parts of. */
static sb_tensor *stored_flat(const struct stored_list *list, const struct stored *s)
{
    return s->flat ? s->flat : parameters_values(list->set);
}

/* What this rank has of an item, as a new reference. */
static sb_tensor *stored_own(const struct stored_list *list, const struct stored *s)
{
    if (s->i < 0)
        return sb_tensor_retain(s->flat);
    sb_tensor *w = sb_parameters_get(list->set, s->i);
    return s->flat ? tensor_view("checkpoint", s->flat, s->at, w->rank, w->dim)
                   : sb_tensor_retain(w);
}

/* ---- writing ---- */

/* The terms of an item that this rank adds to the sum; the first one adds what all of them have. */
static bool stored_add_terms(const struct stored_list *list, const struct stored *s, uint64_t *sum)
{
    const bool first = sb_communicator_rank(parameters_ranks(list->set)) == 0;
    if (!first && !stored_is_cut(list, s))
        return true;
    sb_tensor *own = stored_own(list, s);
    if (!own)
        return false;
    const struct fingerprint_tensor t =
        s->i < 0 ? fingerprint_tensor(s->name, codec_of(own->dtype)->name, own->rank, own->dim)
                 : fingerprint_parameter(list->set, s->i, s->name);
    bool ok = true;
    *sum += first ? t.term : 0;
    if (s->i >= 0)
        ok = fingerprint_part(list->set, s->i, t.key, own, sum);
    else
        *sum += fingerprint_elements(t.key, own->dtype, 0, tensor_size(own), own->data);
    sb_tensor_release(own);
    return ok;
}

bool stored_fingerprint(const struct stored_list *list, uint64_t *fingerprint)
{
    sb_communicator *ranks = parameters_ranks(list->set);
    *fingerprint = 0;
    if (ranks && !parameters_flatten(list->set))
        return false;
    for (int64_t k = 0; k < list->n; k++)
        if (!stored_add_terms(list, &list->item[k], fingerprint))
            return false;
    return fingerprint_sum(ranks, fingerprint);
}

/* The whole tensor of an item, joined if ranks hold parts of it. */
static sb_tensor *stored_fetch(void *list_, int k)
{
    const struct stored_list *list = list_;
    const struct stored *s = &list->item[k];
    return stored_is_cut(list, s) ? parts_join(list->set, stored_flat(list, s), s->i, 1)
                                  : stored_own(list, s);
}

static struct source_item stored_describe(const struct stored_list *list, const struct stored *s)
{
    struct source_item item = {.name = s->name};
    item.dtype = s->i < 0 ? s->flat->dtype : sb_parameters_dtype(list->set);
    item.rank = s->i < 0 ? s->flat->rank : parameters_whole(list->set, s->i, item.dim);
    if (s->i < 0)
        memcpy(item.dim, s->flat->dim, sizeof item.dim);
    return item;
}

bool stored_save(const char *path, const struct stored_list *list, bool is_new, int pairs,
                 const char *const metadata[][2])
{
    const bool writes = sb_communicator_rank(parameters_ranks(list->set)) == 0;
    struct source_item *items = memory_new((size_t)list->n * sizeof *items + 1);
    if (!items)
        return sb_fail("checkpoint: out of memory");
    for (int64_t k = 0; k < list->n; k++)
        items[k] = stored_describe(list, &list->item[k]);
    const struct source source = {(int)list->n, items, stored_fetch, (void *)(uintptr_t)list,
                                  is_new};
    const bool ok = source_save(writes ? path : NULL, &source, pairs, metadata);
    memory_free(items);
    return ok;
}

/* ---- reading ---- */

bool stored_open(struct stored_file *file, const char *path)
{
    *file = (struct stored_file){.tensors = sb_safetensors_open(path)};
    if (!file->tensors)
        return false;
    file->was_read = memory_new((size_t)sb_safetensors_count(file->tensors) + 1);
    if (file->was_read)
        return true;
    stored_close(file);
    return sb_fail("checkpoint: out of memory");
}

void stored_close(struct stored_file *file)
{
    sb_safetensors_close(file->tensors);
    memory_free(file->was_read);
    *file = (struct stored_file){0};
}

struct summing {
    uint64_t key, *sum;
};

static bool stored_see(void *summing_, sb_dtype dtype, int64_t first, int64_t count,
                       const void *elements)
{
    const struct summing *s = summing_;
    *s->sum += fingerprint_elements(s->key, dtype, first, count, elements);
    return true;
}

/* Reads tensor i into a tensor, or only adds its terms to the sum. */
static bool stored_pass(struct stored_file *file, int i, sb_tensor *into)
{
    const sb_safetensors *t = file->tensors;
    const struct fingerprint_tensor terms =
        fingerprint_tensor(sb_safetensors_name(t, i), sb_safetensors_dtype(t, i),
                           sb_safetensors_rank(t, i), sb_safetensors_shape(t, i));
    struct summing s = {terms.key, &file->sum};
    file->sum += terms.term;
    file->was_read[i] = true;
    return elements_read(t, i, into, stored_see, &s);
}

/* Reads the unsharded tensor, and keeps this rank's part in the flat buffer. */
static bool stored_read_part(struct stored_file *file, const struct stored_list *list,
                             const struct stored *s, int i)
{
    int64_t dim[SB_MAX_RANK];
    const int rank = parameters_whole(list->set, s->i, dim);
    sb_tensor *flat = stored_flat(list, s),
              *whole = tensor_new("checkpoint", sb_device_cpu(), flat->dtype, rank, dim);
    const bool ok =
        whole && stored_pass(file, i, whole) && parts_take(list->set, flat, s->i, 1, whole);
    sb_tensor_release(whole);
    return ok;
}

bool stored_read(struct stored_file *file, const struct stored_list *list, int64_t item)
{
    const struct stored *s = &list->item[item];
    const int i = sb_safetensors_find(file->tensors, s->name);
    if (i < 0)
        return sb_safetensors_read(file->tensors, s->name, NULL); /* fails, with its message */
    if (stored_is_cut(list, s))
        return stored_read_part(file, list, s, i);
    sb_tensor *own = stored_own(list, s);
    const bool ok = own && stored_pass(file, i, own);
    sb_tensor_release(own);
    return ok;
}

bool stored_read_rest(struct stored_file *file, uint64_t *fingerprint)
{
    for (int i = 0; i < sb_safetensors_count(file->tensors); i++)
        if (!file->was_read[i] && !stored_pass(file, i, NULL))
            return false;
    *fingerprint = file->sum;
    return true;
}
