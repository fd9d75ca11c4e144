#include "tests/support/reference.h"
#include <float.h>
#include <stdio.h>

enum { INPUTS = 8 };

sb_safetensors *reference_open(const char *theme)
{
    char path[128];
    snprintf(path, sizeof path, "golden/references_%s.safetensors", theme);
    return MUST(sb_safetensors_open(test_path(path)));
}

struct reference_name reference_name(const char *path, const char *last)
{
    struct reference_name name;
    snprintf(name.text, sizeof name.text, "%s.%s", path, last);
    return name;
}

static struct reference_name gradient_name(const char *path, const char *last)
{
    struct reference_name name;
    snprintf(name.text, sizeof name.text, "%s.d.%s", path, last);
    return name;
}

static double stored_error(const sb_safetensors *file, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s~", name);
    sb_tensor *error = KEPT(sb_safetensors_tensor(file, full));
    return sb_tensor_value(error);
}

sb_tensor *reference_tensor(const sb_safetensors *file, const char *name, sb_dtype dtype)
{
    if (sb_safetensors_find(file, name) < 0)
        return NULL;
    sb_tensor *t = KEPT(sb_safetensors_tensor(file, name));
    if (t->dtype == SB_I32 || t->dtype == SB_BOOL)
        return t;
    return MUST(owned(dtype, t->rank, t->dim, numbers_of(t)));
}

sb_tensor *reference_input(const sb_safetensors *file, const char *path, const char *last,
                           sb_dtype dtype)
{
    sb_tensor *t = reference_tensor(file, reference_name(path, last).text, dtype);
    bool wanted = sb_safetensors_find(file, gradient_name(path, last).text) >= 0;
    return t && wanted ? sb_tensor_requires_grad(t) : t;
}

static double largest_difference(const sb_tensor *a, const sb_tensor *b)
{
    double worst = 0, *x = numbers_of(a), *y = numbers_of(b);
    for (int64_t i = 0; i < sb_tensor_size(a); i++) {
        double difference = fabs(x[i] - y[i]);
        worst = difference >= 0 ? fmax(worst, difference) : INFINITY;
    }
    return worst;
}

void reference_expect(const sb_safetensors *file, const char *name, const sb_tensor *got,
                      double largest)
{
    sb_tensor *expected = KEPT(sb_safetensors_tensor(file, name));
    cr_assert(got, "%s: there is no result: %s", name, sb_error());
    cr_assert(shape_equal(got->rank, got->dim, expected->rank, expected->dim),
              "%s: the shape is %s, not %s", name, tensor_shape(got).text,
              tensor_shape(expected).text);
    const double scale = fmax(largest, largest_of(expected));
    double limit = 1e-10 * scale;
    if (got->dtype == SB_F32)
        limit = fmax(2 * stored_error(file, name), 8 * (double)FLT_EPSILON * scale) *
                (device_of_run() ? 3 : 1); /* expf and 3xTF32 of a GPU: test_attention_tiled.c */
    const double error = largest_difference(got, expected);
    cr_expect(error <= limit, "%s in %s on %s: differs by %g, more than %g", name,
              sb_dtype_name(got->dtype), kernel_cpu_name(), error, limit);
}

void reference_expect_value(const sb_safetensors *file, const char *path, const sb_tensor *y)
{
    reference_expect(file, reference_name(path, "y").text, y, 0);
}

void reference_expect_gradient(const sb_safetensors *file, const char *path, const char *last,
                               const sb_tensor *x)
{
    const struct reference_name name = gradient_name(path, last);
    if (sb_safetensors_find(file, name.text) >= 0)
        reference_expect(file, name.text, sb_tensor_grad(x), 0);
}

void reference_read_weights(const sb_safetensors *file, const char *path, sb_parameters *set)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const struct reference_name name = reference_name(path, sb_parameters_name(set, i));
        sb_tensor *w = sb_parameters_get(set, i),
                  *stored = KEPT(sb_safetensors_tensor(file, name.text));
        MUST(stored);
        cr_assert(shape_equal(w->rank, w->dim, stored->rank, stored->dim), "%s", name.text);
        double *numbers = numbers_of(stored);
        MUST(sb_tensor_write(w, numbers));
    }
}

void reference_expect_weights(const sb_safetensors *file, const char *path,
                              const sb_parameters *set)
{
    double largest = 0;
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const struct reference_name name = gradient_name(path, sb_parameters_name(set, i));
        sb_tensor *expected = KEPT(sb_safetensors_tensor(file, name.text));
        largest = fmax(largest, largest_of(expected));
    }
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const char *name = sb_parameters_name(set, i);
        const bool vanishes = strstr(name, "key.bias") != NULL;
        reference_expect(file, gradient_name(path, name).text,
                         sb_tensor_grad(sb_parameters_get(set, i)), vanishes ? largest : 0);
    }
}

void reference_each(void (*body)(const sb_safetensors *file, const void *context, sb_dtype dtype),
                    const sb_safetensors *file, const void *context)
{
    for (struct sets s = sets_up_to(KERNELS_PLAIN); next_set(&s);) {
        body(file, context, SB_F64);
        body(file, context, SB_F32);
    }
}

struct operation {
    const char *path;
    sb_function f;
};

static void compare_operation(const sb_safetensors *file, const void *context, sb_dtype dtype)
{
    const struct operation *o = context;
    const char *const numbers[INPUTS] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    sb_tensor *x[INPUTS];
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    for (int i = 0; i < INPUTS; i++)
        x[i] = reference_input(file, o->path, numbers[i], dtype);
    sb_tensor *y = sb_keep(o->f(NULL, x)),
              *dy = reference_tensor(file, reference_name(o->path, "dy").text, dtype);
    cr_assert(y, "%s: %s", o->path, sb_error());
    cr_assert(!dy || sb_backward_from(y, dy), "%s: %s", o->path, sb_error());
    reference_expect_value(file, o->path, y);
    for (int i = 0; i < INPUTS; i++)
        reference_expect_gradient(file, o->path, numbers[i], x[i]);
    cr_expect(sb_tape_end(&tape), "%s: %s", o->path, sb_error());
}

static int count_values(const sb_safetensors *file, const char *group)
{
    int count = 0;
    const size_t size = strlen(group);
    for (int i = 0; i < sb_safetensors_count(file); i++) {
        const char *name = sb_safetensors_name(file, i), *end = name + strlen(name) - 2;
        count += strncmp(name, group, size) == 0 && name[size] == '/' && strcmp(end, ".y") == 0;
    }
    return count;
}

void reference_expect_count(const sb_safetensors *file, const char *group, int n)
{
    const int count = count_values(file, group);
    cr_expect(count == n, "there are %d references of %s, not %d", count, group, n);
}

void reference_compare(const char *theme, const char *group, int n,
                       const struct reference_case cases[])
{
    sb_safetensors *file = KEPT(reference_open(theme));
    reference_expect_count(file, group, n);
    for (int i = 0; i < n; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", group, cases[i].name);
        reference_each(compare_operation, file, &(struct operation){path, cases[i].f});
    }
}
