/* Standard output caught and compared (plain/runner.c). */
#ifndef SOFTBACK_TESTS_PLAIN_REDIRECT_H
#define SOFTBACK_TESTS_PLAIN_REDIRECT_H

#include <criterion/criterion.h>

void cr_redirect_stdout(void);      /* from now on, what is printed is kept */
const char *plain_redirected(void); /* and given, until it is asked for again */

#define cr_assert_stdout_eq_str(expected, ...)                                                     \
    cr_assert(plain_equal(plain_redirected(), expected), __VA_ARGS__)

#endif
