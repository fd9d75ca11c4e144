/* Functions that all tests share: definitions of tests, and comparisons. */
#ifndef SOFTBACK_TESTS_SUPPORT_TEST_H
#define SOFTBACK_TESTS_SUPPORT_TEST_H

#include "softback.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include "tests/support/device.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Defines a test, TEST(suite, name), whose name is a statement. It also asserts that no memory is
   live at its end; inside the test, since Criterion does not count failures in a .fini. A third
   argument is its first statement, for example one that skips it: device_needed(), or those of
   slow runs below. */
#define TEST(...) TEST_BODY(.init = test_begin, __VA_ARGS__, , )

/* A test about host memory, threads, instruction sets, or operations that compute on the host. A
   run on another device skips it. The suite fails where one opens that device, and where a TEST
   asks nothing of it. */
#define CPU_TEST(...) TEST_BODY(.init = test_begin_on_the_cpu, __VA_ARGS__, , )

/* A test with a beginning of its own, in a process that no other test has changed. */
#define TEST_AFTER(begin, ...) TEST_BODY(ALONE_AFTER(begin), __VA_ARGS__, , )
#define ALONE_AFTER(begin) .init = begin, .description = "needs a new process"

#define TEST_BODY(begin, suite, name, first, ...)                                                  \
    static void body_##suite##_##name(void);                                                       \
    Test(suite, name, .fini = test_end, begin)                                                     \
    {                                                                                              \
        first;                                                                                     \
        body_##suite##_##name();                                                                   \
        test_nothing_live();                                                                       \
    }                                                                                              \
    static void body_##suite##_##name(void)

void test_begin(void);
void test_begin_on_the_cpu(void);
void test_nothing_live(void);
void test_end(void);

/* Whether the long tests were requested (`./run test --long`). */
bool test_long(void);

/* Runs of the suite that take longer than that on the CPU: on the emulated device, under a
   sanitizer (the thread sanitizer is one), both, or under the thread sanitizer. */
enum slow_run { EMULATED, SANITIZED, EMULATED_SANITIZED, RACES };

/* Skips the rest of a test that would take too long in such a run; the long tests have it there
   too. All other tests run everywhere. */
void too_slow(enum slow_run run, const char *reason);
#define KNOWN_KERNELS too_slow(RACES, "its kernels run in shorter tests too")
#define WHOLE_MODELS                                                                               \
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own")
#define MANY_CASES                                                                                 \
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too")
#define DIFFERENCES too_slow(EMULATED_SANITIZED, "it takes differences for each element")

/* Whether this is such a run: tests of many cases draw fewer. */
bool test_slow(void);
/* The same, but not for the long tests: shapes are smaller, and runs shorter. */
bool test_brief(void);
/* How many of n cases to try there: one in eight, or one in forty with emulated kernels under a
   sanitizer. */
int test_some(int n);

/* The path of a file of the tests, such as "golden/attention.safetensors"; static storage. */
const char *test_path(const char *file);

/* A path in a fresh temporary folder that is removed at the end of the test. */
const char *test_temporary(const char *file);

/* Whether two files have the same bytes. */
bool test_same_files(const char *a, const char *b);

/* max |a - b| / max |b|; infinite when shapes differ or a value is NaN in one of them only. */
double test_relative(const sb_tensor *a, const sb_tensor *b);
/* max |a - b| / max |b| over plain arrays. */
double test_relative_arrays(int64_t n, const double *a, const double *b);

/* FUNCTION(sum, sb_add(x[0], x[1])) defines such an sb_function, which may use its context too. */
#define FUNCTION(name, ...)                                                                        \
    static sb_tensor *name(void *context, sb_tensor *const x[])                                    \
    {                                                                                              \
        (void)context, (void)x;                                                                    \
        return __VA_ARGS__;                                                                        \
    }

/* The head of one with several statements. */
#define FUNCTION_HEAD(name)                                                                        \
    static sb_tensor *name(__attribute__((unused)) void *context, sb_tensor *const x[])

/* The elements of a tensor on any device: a copy in host memory, valid until the end of the
   test. */
void *test_data(const sb_tensor *t);
/* All numbers of a tensor, until the end of the test. */
double *numbers_of(const sb_tensor *t);
/* Whether both are of the same dtype and shape and have the same bits. */
bool test_same_bits(const sb_tensor *a, const sb_tensor *b);

/* A leaf of values in (-2, 2), which the seed determines; it requires a gradient and belongs to the
   test. */
sb_tensor *test_leaf(sb_dtype dtype, uint64_t seed, int rank, const int64_t *dim);

/* Opens a tape until the end of the block, where it must close without an error, or with one. */
#define TAPE(mode)                                                                                 \
    __attribute__((cleanup(test_tape_ends))) sb_tape tape;                                         \
    sb_tape_begin(&tape, mode)
#define TAPE_WITH(mode, ...)                                                                       \
    __attribute__((cleanup(test_tape_ends))) sb_tape tape;                                         \
    sb_tape_begin_with(&tape, mode, __VA_ARGS__)
#define FAILED_TAPE(mode)                                                                          \
    __attribute__((cleanup(test_tape_fails))) sb_tape tape;                                        \
    sb_tape_begin(&tape, mode)
void test_tape_ends(sb_tape *tape);
void test_tape_fails(sb_tape *tape);

/* A tensor of these numbers that the open tape owns. */
sb_tensor *owned(sb_dtype dtype, int rank, const int64_t *dim, const double *values);
/* The gradient of a leaf, which then has none; it belongs to the test. */
sb_tensor *take_grad(sb_tensor *x);
void release_all(int n, sb_tensor *const t[]);

/* The value of a call that must succeed; otherwise the test fails with its error. */
#define MUST(...)                                                                                  \
    __extension__({                                                                                \
        __auto_type must_value = (__VA_ARGS__);                                                    \
        cr_assert(must_value, "%s: %s", #__VA_ARGS__, sb_error());                                 \
        must_value;                                                                                \
    })

/* Objects that the test frees at its end, the last one first: KEPT(sb_tensor_zeros(...)) is the
   tensor, which must not be NULL. Texts and ids are of the library, other arrays of malloc. */
#define KEPT_TYPES(X)                                                                              \
    X(tensor, release)                                                                             \
    X(parameters, free)                                                                            \
    X(safetensors, close)                                                                          \
    X(communicator, close)                                                                         \
    X(optimiser, free)                                                                             \
    X(average, free)                                                                               \
    X(kv_cache, free)                                                                              \
    X(decoder_state, free)                                                                         \
    X(encoder, free)                                                                               \
    X(decoder, free)                                                                               \
    X(vocabulary, release)                                                                         \
    X(pairs, free)                                                                                 \
    X(documents, free)                                                                             \
    X(labels, free)                                                                                \
    X(data, free)                                                                                  \
    X(labelled, free)                                                                              \
    X(windows, free)                                                                               \
    X(batch, free)                                                                                 \
    X(description, free)                                                                           \
    X(seq2seq, free)                                                                               \
    X(language_model, free)                                                                        \
    X(classifier, free)                                                                            \
    X(trainer, free)
#define KEPT_FUNCTION(type, free) sb_##type *kept_##type(sb_##type *object);
KEPT_TYPES(KEPT_FUNCTION)
#define KEPT_CASE(type, free) , sb_##type * : kept_##type
#define KEPT(...)                                                                                  \
    _Generic((__VA_ARGS__)KEPT_TYPES(KEPT_CASE), char * : kept_text, int32_t * : kept_ids,         \
             double * : kept_numbers, void * : kept_memory)(__VA_ARGS__)
void kept_object(void *object, void (*free)(void *object)); /* of any other type */
char *kept_text(char *text);
int32_t *kept_ids(int32_t *ids);
double *kept_numbers(double *numbers);
void *kept_memory(void *memory);
/* The tensor for the rest of the test; NULL if it is NULL. */
sb_tensor *retained(sb_tensor *t);

/* A struct that a function frees at the end of its block. */
#define FREED_BY(free) __attribute__((cleanup(free)))

/* max |t|; infinite where one is NaN. */
double largest_of(const sb_tensor *t);

/* Runs `body(context)` with its first allocation failing, then its second, and so on, until none is
   left: once with only that one failing, once with all after it failing too. Asserts that each
   failure is reported and leaks nothing; a body that succeeds nevertheless, as it does without that
   memory, checks its results. Returns how many allocations the body makes. */
int test_each_allocation_fails(bool (*body)(void *context), void *context);

/* The text, with "on cpu" replaced by "on cuda" if that device is in use; static storage. */
const char *on_device(const char *text);

/* Asserts that the last error's text contains this. */
#define EXPECT_ERROR(part)                                                                         \
    cr_assert(strstr(sb_error(), part) != NULL, "the error is \"%s\", without \"%s\"", sb_error(), \
              part)

/* Asserts that a call fails, and that the error contains this. */
#define REFUSED(part, ...)                                                                         \
    do {                                                                                           \
        cr_expect(!(__VA_ARGS__), "%s does not fail", #__VA_ARGS__);                               \
        EXPECT_ERROR(part);                                                                        \
    } while (0)
/* The same on a tape of its own, which fails too. */
#define REFUSED_ON_TAPE(mode, part, ...)                                                           \
    do {                                                                                           \
        __attribute__((cleanup(test_tape_fails))) sb_tape own_tape;                                \
        sb_tape_begin(&own_tape, mode);                                                            \
        REFUSED(part, __VA_ARGS__);                                                                \
    } while (0)

#endif
