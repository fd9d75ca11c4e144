/* The average of the models of several files. */
#include "models/description_parts.h"
#include "models/training/checkpoint.h"
#include "nn/flat.h"
#include "tensor/error.h"
#include <string.h>

static bool average_is_of_training(const char *name)
{
    const int i = setting_find(name);
    return i >= 0 && setting_at(i).group != FIELD_OF_MODEL;
}

/* Whether the models of two descriptions have the same architecture and vocabularies. */
static bool average_same_described(const sb_description *a, const sb_description *b)
{
    const char *name;
    bool same = description_same_words(a, b);
    for (int64_t i = 0; same && (name = sb_description_name(a, i)); i++) {
        const char *value = sb_description_get(b, name);
        same = average_is_of_training(name) ||
               (value && strcmp(value, sb_description_value(a, i)) == 0);
    }
    return same;
}

static bool average_check_same_model(const sb_model *first, const sb_model *model, const char *path)
{
    sb_description *a = sb_model_describe(first), *b = sb_model_describe(model);
    const bool same = a && b && first->kind == model->kind && average_same_described(a, b) &&
                      sb_parameters_dtype(first->weights) == sb_parameters_dtype(model->weights);
    if (a && b && !same)
        sb_fail("average: %s differs from the first in architecture, vocabulary or dtype", path);
    sb_description_free(a);
    sb_description_free(b);
    return same;
}

/* mean += (one - mean) / count */
static bool average_add(const struct checkpoint *into, const struct checkpoint *c, int count)
{
    if (!parameters_flatten(c->weights))
        return false;
    sb_tensor *mean = parameters_values(into->weights), *one = parameters_values(c->weights);
    enum { CHUNK = 2048 };
    double x[CHUNK], y[CHUNK];
    bool ok = true;
    for (int64_t start = 0, n, size = tensor_size(mean); ok && start < size; start += n) {
        n = size - start < CHUNK ? size - start : CHUNK;
        ok = tensor_read_part(mean, start, n, x) && tensor_read_part(one, start, n, y);
        for (int64_t i = 0; ok && i < n; i++)
            x[i] += (y[i] - x[i]) / count;
        ok = ok && tensor_write_part(mean, start, n, x);
    }
    return ok;
}

bool checkpoint_average(struct checkpoint *into, int n, const char *const paths[])
{
    if (!parameters_flatten(into->weights))
        return false;
    for (int i = 0; i < n; i++) {
        const struct checkpoint_options same_kind = {.kind = into->subject.kind};
        struct checkpoint *c = checkpoint_open(paths[i], &same_kind);
        bool ok = c && average_check_same_model(&into->subject, &c->subject, paths[i]);
        ok = ok && average_add(into, c, i + 2);
        checkpoint_free(c);
        if (!ok)
            return false;
    }
    return true;
}
