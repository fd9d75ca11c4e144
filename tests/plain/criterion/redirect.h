/* Redirects and compares standard output (plain/runner.c). */
#ifndef SOFTBACK_TESTS_PLAIN_REDIRECT_H
#define SOFTBACK_TESTS_PLAIN_REDIRECT_H

#include <criterion/criterion.h>

void cr_redirect_stdout(void);      /* keeps what is printed from now on */
const char *plain_redirected(void); /* the output, valid until the next call */

#define cr_assert_stdout_eq_str(expected, ...)                                                     \
    cr_assert(plain_equal(plain_redirected(), expected), __VA_ARGS__)

#endif
