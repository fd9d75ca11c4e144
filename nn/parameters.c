#include "nn/parameters.h"
#include "nn/flat.h"
#include "nn/parameter_set.h"
#include "nn/rounded_parameters.h"
#include "nn/shares_run.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_NAME = 200 };

sb_parameters *sb_parameters_of(sb_dtype dtype, uint64_t seed)
{
    if (!sb_dtype_is_real(dtype))
        return sb_fail("parameters: they are real numbers, not %s", sb_dtype_name(dtype));
    sb_parameters *set = memory_new(sizeof *set);
    if (!set)
        return sb_fail("parameters: out of memory");
    set->dtype = dtype;
    set->random = sb_random_new(seed, SB_STREAM_INITIAL);
    return set;
}

sb_parameters *sb_parameters_new(uint64_t seed)
{
    return sb_parameters_of(SB_F32, seed);
}

void sb_parameters_free(sb_parameters *set)
{
    if (!set)
        return;
    for (int64_t i = 0; i < set->count; i++) {
        sb_tensor_release(set->item[i].tensor);
        memory_free(set->item[i].name);
    }
    sb_tensor_release(set->values);
    sb_tensor_release(set->gradients);
    memory_free(set->item);
    memory_free(set->lora.on);
    rounded_parameters_free(set->rounded);
    shares_free(set->shares);
    memory_free(set);
}

/* ---- parts ---- */

static struct part part_of(const sb_tensor *t, sb_cut cut)
{
    struct part part = {.rows = 1, .here = 1};
    for (int axis = 0; axis < t->rank; axis++)
        *(cut.ranks && axis < cut.axis ? &part.rows : &part.here) *= t->dim[axis];
    part.of = part.here * sb_communicator_size(cut.ranks);
    part.first = part.here * sb_communicator_rank(cut.ranks);
    return part;
}

struct part parameters_part(const sb_parameters *set, int64_t i)
{
    return part_of(set->item[i].tensor, set->item[i].cut);
}

bool parameters_is_cut(const sb_parameters *set, int64_t i)
{
    return set->item[i].cut.ranks != NULL;
}

sb_communicator *parameters_ranks(const sb_parameters *set)
{
    return set->ranks;
}

int parameters_whole(const sb_parameters *set, int64_t i, int64_t dim[SB_MAX_RANK])
{
    const struct parameter *p = &set->item[i];
    memcpy(dim, p->tensor->dim, sizeof p->tensor->dim);
    if (p->cut.ranks)
        dim[p->cut.axis] *= sb_communicator_size(p->cut.ranks);
    return p->tensor->rank;
}

/* The shape of this rank's part of a parameter. */
static bool cut_shape(const sb_parameters *set, const char *name, int rank, int64_t *dim,
                      sb_cut cut)
{
    const int ranks = sb_communicator_size(cut.ranks);
    if (!cut.ranks || rank > SB_MAX_RANK) /* tensor_new rejects too many axes */
        return true;
    if (set->ranks && set->ranks != cut.ranks)
        return sb_fail("parameters_add: \"%s\" is split over other ranks than the others", name);
    if (cut.axis < 0 || cut.axis >= rank || dim[cut.axis] % ranks != 0)
        return sb_fail("parameters_add: axis %d of \"%s\" %s cannot be split into %d equal parts",
                       cut.axis, name, shape_text(rank, dim).text, ranks);
    dim[cut.axis] /= ranks;
    return true;
}

/* ---- adding ---- */

void sb_parameters_draw(sb_parameters *set, bool draw)
{
    if (set)
        set->undrawn = !draw;
}

/* Draws the values of the unsharded tensor, (dim), and stores this rank's part in t. */
static void draw(sb_tensor *t, const int64_t *dim, sb_cut cut, sb_initial initial,
                 sb_random *random)
{
    enum { CHUNK = 2048 };
    const struct part part = part_of(t, cut);
    const double in = t->rank > 0 ? (double)dim[t->rank - 1] : 0;
    const double out = t->rank > 1 ? (double)dim[t->rank - 2] : in;
    double limit = sqrt(6 / (in + out)), value[CHUNK];
    for (int64_t start = 0, count, n = part.rows * part.of; start < n; start += count) {
        const int64_t row = start / part.of, begin = row * part.of + part.first;
        const int64_t left = (row + 1) * part.of - start;
        count = left < CHUNK ? left : CHUNK;
        for (int64_t i = 0; i < count; i++)
            value[i] =
                initial.kind == SB_INITIAL_XAVIER   ? limit * (2 * sb_random_uniform(random) - 1)
                : initial.kind == SB_INITIAL_NORMAL ? initial.value * sb_random_normal(random)
                                                    : initial.value;
        const int64_t from = start > begin ? start : begin, end = start + count;
        const int64_t to = end < begin + part.here ? end : begin + part.here;
        if (from < to)
            tensor_write_part(t, row * part.here + from - begin, to - from, value + from - start);
    }
}

static bool may_add(const sb_parameters *set, const char *name, sb_initial initial)
{
    if (!set || !name)
        return fail_null("parameters_add", set ? "name" : "set");
    if (!name[0] || strlen(name) > LONGEST_NAME)
        return sb_fail("parameters_add: a name of %zu bytes is not in 1..%d bytes", strlen(name),
                       LONGEST_NAME);
    if (!parameters_may_change("parameters_add", set))
        return false;
    if (sb_parameters_find(set, name))
        return sb_fail("parameters_add: \"%s\" exists already", name);
    if ((unsigned)initial.kind > SB_INITIAL_CONSTANT)
        return sb_fail("parameters_add: \"%s\": %d is not a kind of initial values", name,
                       (int)initial.kind);
    if (!isfinite(initial.value))
        return sb_fail("parameters_add: \"%s\": the initial value is %g, not a finite number", name,
                       initial.value);
    if (initial.kind == SB_INITIAL_NORMAL && initial.value <= 0)
        return sb_fail(
            "parameters_add: \"%s\": the standard deviation of its initial values is %g; "
            "give a positive one, in `value`",
            name, initial.value);
    return true;
}

sb_tensor *sb_parameters_add(sb_parameters *set, const char *name, int rank, const int64_t *dim,
                             sb_initial initial)
{
    return sb_parameters_add_cut(set, name, rank, dim, initial, (sb_cut){NULL, 0});
}

sb_tensor *sb_parameters_add_cut(sb_parameters *set, const char *name, int rank, const int64_t *dim,
                                 sb_initial initial, sb_cut cut)
{
    if (!may_add(set, name, initial) || (set->fits && !set->fits(set->context, name, rank, dim)))
        return NULL;
    cut.ranks = sb_communicator_size(cut.ranks) > 1 ? cut.ranks : NULL;
    if (rank > 0 && !dim)
        return fail_null("parameters_add", "dim");
    int64_t here[SB_MAX_RANK];
    for (int axis = 0; axis < rank && axis < SB_MAX_RANK; axis++)
        here[axis] = dim[axis];
    if (!cut_shape(set, name, rank, here, cut))
        return NULL;
    if (!memory_room(&set->item, set->count, &set->room, sizeof *set->item))
        return sb_fail("parameters_add: \"%s\": out of memory", name);
    char *own_name = memory_text(name);
    if (!own_name)
        return sb_fail("parameters_add: \"%s\": out of memory", name);
    char who[LONGEST_NAME + 32];
    snprintf(who, sizeof who, "parameters_add: \"%s\"", name);
    sb_tensor *t = tensor_new(who, sb_device_cpu(), set->dtype, rank, here);
    if (t && !set->undrawn)
        draw(t, dim, cut, initial, &set->random);
    t = tensor_moved(t, sb_device_in_use());
    if (!t) {
        memory_free(own_name);
        return NULL;
    }
    sb_tensor_requires_grad(t);
    set->ranks = cut.ranks ? cut.ranks : set->ranks;
    set->item[set->count++] = (struct parameter){
        .name = own_name, .tensor = t, .offset = set->size, .cut = cut, .rate = 1};
    set->size += tensor_size(t);
    return t;
}

struct parameters_mark parameters_mark(const sb_parameters *set)
{
    return (struct parameters_mark){set->count, set->size, set->random, set->ranks};
}

void parameters_return(sb_parameters *set, const struct parameters_mark *mark)
{
    while (set->count > mark->count && set->count > set->flattened) {
        struct parameter *last = &set->item[--set->count];
        sb_tensor_release(last->tensor);
        memory_free(last->name);
    }
    set->size = mark->size;
    set->random = mark->random;
    set->ranks = mark->ranks;
}

void parameters_restrict(sb_parameters *set, parameters_check *fits, const void *context)
{
    set->fits = fits;
    set->context = context;
}

sb_dtype sb_parameters_dtype(const sb_parameters *set)
{
    return set ? set->dtype : SB_F32;
}

int64_t sb_parameters_count(const sb_parameters *set)
{
    return set ? set->count : 0;
}

int64_t sb_parameters_size(const sb_parameters *set)
{
    return set ? set->size : 0;
}

static bool has(const sb_parameters *set, int64_t i)
{
    return set && i >= 0 && i < set->count;
}

const char *sb_parameters_name(const sb_parameters *set, int64_t i)
{
    return has(set, i) ? set->item[i].name : NULL;
}

sb_tensor *sb_parameters_get(const sb_parameters *set, int64_t i)
{
    return has(set, i) ? set->item[i].tensor : NULL;
}

sb_tensor *sb_parameters_find(const sb_parameters *set, const char *name)
{
    for (int64_t i = 0; set && name && i < set->count; i++)
        if (strcmp(set->item[i].name, name) == 0)
            return set->item[i].tensor;
    return NULL;
}

const char *sb_parameters_without_gradient(const sb_parameters *set, int64_t *i)
{
    if (!set || !i)
        return fail_null("parameters_without_gradient", set ? "i" : "set");
    while (*i < set->count) {
        const struct parameter *p = &set->item[(*i)++];
        if (!p->frozen && !p->tensor->grad_current)
            return p->name;
    }
    return NULL;
}

bool sb_parameters_clear(sb_parameters *set)
{
    if (set && !parameters_may_change("parameters_clear", set))
        return false;
    for (int64_t i = 0; set && i < set->count; i++)
        sb_tensor_clear_grad(set->item[i].tensor);
    return true;
}
