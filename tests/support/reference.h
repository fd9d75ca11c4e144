/* Comparison with results of PyTorch, which tests/golden/make_references.py has stored. That file
   documents the names in the files, and the numbers from which the limit of each float32 result is
   computed. */
#ifndef SOFTBACK_TESTS_SUPPORT_REFERENCE_H
#define SOFTBACK_TESTS_SUPPORT_REFERENCE_H

#include "tests/support/test.h"

/* "golden/references_<theme>.safetensors", to be closed. */
sb_safetensors *reference_open(const char *theme);

/* "<path>.<last>" */
struct reference_name {
    char text[256];
};
struct reference_name reference_name(const char *path, const char *last);

/* A tensor that the open tape owns, its reals in this dtype; NULL when there is none. */
sb_tensor *reference_tensor(const sb_safetensors *file, const char *name, sb_dtype dtype);

/* The same as a leaf, when the file has "<path>.d.<last>", its gradient. */
sb_tensor *reference_input(const sb_safetensors *file, const char *path, const char *last,
                           sb_dtype dtype);

/*
 * Asserts that a result agrees with the one of that name. With s the largest number in it, or
 * `largest` where that is larger, the greatest difference is at most 1e-10 s in float64, and in
 * float32 twice PyTorch's own error there or 8 * 2^-23 s, whichever is more.
 */
void reference_expect(const sb_safetensors *file, const char *name, const sb_tensor *got,
                      double largest);

/* The value, and the gradient of an input from reference_input, of a case. */
void reference_expect_value(const sb_safetensors *file, const char *path, const sb_tensor *y);
void reference_expect_gradient(const sb_safetensors *file, const char *path, const char *last,
                               const sb_tensor *x);

/* Gives every parameter its value "<path>.<name>". */
void reference_read_weights(const sb_safetensors *file, const char *path, sb_parameters *set);

/* Asserts that the gradients of all parameters agree. A key's bias has one of 0 but for rounding,
   since it changes all scores of a row alike: it is measured by the largest of all. */
void reference_expect_weights(const sb_safetensors *file, const char *path,
                              const sb_parameters *set);

/* Calls the body in float64 and in float32 with every set of kernels that this machine has. */
void reference_each(void (*body)(const sb_safetensors *file, const void *context, sb_dtype dtype),
                    const sb_safetensors *file, const void *context);

/* Asserts that the file has n cases "<group>/...", so that none is missing here. */
void reference_expect_count(const sb_safetensors *file, const char *group, int n);

/* An operation at inputs 0, 1, ... of the case of its name. */
struct reference_case {
    const char *name;
    sb_function f;
};

/* Asserts that value and gradients of all these operations agree, and that they are all that the
   file has of the group. */
void reference_compare(const char *theme, const char *group, int n,
                       const struct reference_case cases[]);

/* CASE(add) is the row of FUNCTION(add, ...). */
#define CASE(function)                                                                             \
    {                                                                                              \
        .name = #function, .f = function                                                           \
    }
/* A row of another name than its function. */
#define NAMED(case_name, function)                                                                 \
    {                                                                                              \
        .name = case_name, .f = function                                                           \
    }
#define COMPARE(theme, group, ...)                                                                 \
    do {                                                                                           \
        static const struct reference_case cases_[] = {__VA_ARGS__};                               \
        reference_compare(theme, group, (int)(sizeof cases_ / sizeof *cases_), cases_);            \
    } while (0)

#endif
