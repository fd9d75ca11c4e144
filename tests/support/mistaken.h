/* Operations with a correct backward and some wrong ones, and their gradient check. */
#ifndef SOFTBACK_TESTS_SUPPORT_MISTAKEN_H
#define SOFTBACK_TESTS_SUPPORT_MISTAKEN_H

#include "autograd/node.h"
#include "tests/support/test.h"

enum mistake {
    RIGHT,
    ASSIGNED,
    FRESH_ONLY,
    DOUBLED,
    HALVED,
    HALF_MORE,
    NEGATED,
    ZERO,
    ONE_NAN,
    ONE_WRONG
};

enum sum_mistake { SUMMED, FIRST_ONLY, LAST_ONLY };

enum product_mistake { PRODUCT_RIGHT, GRADIENT_TRANSPOSED, PRODUCT_TRANSPOSED };

/* y = scale x^2 */
sb_tensor *square(sb_tensor *x, double scale, enum mistake mistake);
/* y = a + b, where b (one row, one column or one number) is repeated. */
sb_tensor *sum(sb_tensor *a, sb_tensor *b, enum sum_mistake mistake);

/* The inputs of the checked functions. */
struct how {
    double scale;
    int mistake;
};

sb_tensor *f_square(void *how, sb_tensor *const x[]);
sb_tensor *f_square_twice(void *how, sb_tensor *const x[]); /* one input, used twice */
sb_tensor *f_sum(void *how, sb_tensor *const x[]);
sb_tensor *f_product(void *how, sb_tensor *const x[]); /* of matrices */

sb_gradcheck_result check(sb_function f, double scale, int mistake, int n, sb_tensor *const x[]);
/* Checks square at a (2, 3). */
sb_gradcheck_result check_square(double scale, enum mistake mistake);

#define EXPECT_PASS(result)                                                                        \
    cr_expect((result).ok && (result).error <= 1e-6 && (result).mistake[0] == '\0', "%s",          \
              sb_error())
#define EXPECT_MISTAKE(result, part)                                                               \
    do {                                                                                           \
        cr_expect(!(result).ok && !((result).error <= 1e-6));                                      \
        cr_expect(strstr((result).mistake, part), "\"%s\" is without \"%s\"", (result).mistake,    \
                  part);                                                                           \
        EXPECT_ERROR("gradcheck: input");                                                          \
    } while (0)

#endif
