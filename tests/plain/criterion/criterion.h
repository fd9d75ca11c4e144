/*
 * The part of Criterion that the tests use, for machines without it: the build uses this folder if
 * it finds no Criterion, and plain/runner.c for the rest.
 *
 * A test is registered before main begins. It runs in a process of its own, between its `init` and
 * its `fini`; a failed cr_assert ends it, a failed cr_expect is counted and does not.
 */
#ifndef SOFTBACK_TESTS_PLAIN_CRITERION_H
#define SOFTBACK_TESTS_PLAIN_CRITERION_H

#include <stdbool.h>
#include <stddef.h>

struct plain_test {
    const char *suite, *name;
    const char *description; /* one with a description shares its process with no other */
    void (*body)(void), (*init)(void), (*fini)(void);
    struct plain_test *next;
};

void plain_register(struct plain_test *test);

/* Counts a failure and prints where; the format, which may be "", says more. */
void plain_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Ends the test's body (or init), after a failure or to skip the test. */
_Noreturn void plain_give_up(void);
void plain_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void plain_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool plain_equal(const char *a, const char *b); /* false if one is NULL */

#define Test(suite_name, test_name, ...)                                                           \
    static void test_##suite_name##_##test_name(void);                                             \
    static struct plain_test plain_##suite_name##_##test_name = {                                  \
        .suite = #suite_name,                                                                      \
        .name = #test_name,                                                                        \
        .body = test_##suite_name##_##test_name,                                                   \
        __VA_ARGS__};                                                                              \
    __attribute__((constructor)) static void register_##suite_name##_##test_name(void)             \
    {                                                                                              \
        plain_register(&plain_##suite_name##_##test_name);                                         \
    }                                                                                              \
    static void test_##suite_name##_##test_name(void)

/* An optional format and its values follow the condition. */
#define cr_expect(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            plain_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__);                            \
    } while (0)
#define cr_assert(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            plain_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__);                            \
            plain_give_up();                                                                       \
        }                                                                                          \
    } while (0)
#define cr_assert_fail(...)                                                                        \
    do {                                                                                           \
        plain_fail(__FILE__, __LINE__, "unreachable", "" __VA_ARGS__);                             \
        plain_give_up();                                                                           \
    } while (0)

#define cr_expect_str_eq(a, b, ...)                                                                \
    do {                                                                                           \
        const char *plain_a = (a), *plain_b = (b);                                                 \
        if (!plain_equal(plain_a, plain_b)) {                                                      \
            plain_fail(__FILE__, __LINE__, #a " is " #b, "" __VA_ARGS__);                          \
            plain_print("\"%s\" is not \"%s\"", plain_a ? plain_a : "(NULL)",                      \
                        plain_b ? plain_b : "(NULL)");                                             \
        }                                                                                          \
    } while (0)
#define cr_assert_str_eq(a, b, ...) cr_assert(plain_equal(a, b), __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                                               \
    do {                                                                                           \
        const char *plain_a = (a), *plain_b = (b);                                                 \
        if (!plain_a || !plain_b || plain_equal(plain_a, plain_b))                                 \
            plain_fail(__FILE__, __LINE__, #a " is not " #b, "" __VA_ARGS__);                      \
    } while (0)

#define cr_skip_test(...)                                                                          \
    do {                                                                                           \
        plain_skip("" __VA_ARGS__);                                                                \
        plain_give_up();                                                                           \
    } while (0)
#define cr_log_info(...) plain_print(__VA_ARGS__)

#endif
