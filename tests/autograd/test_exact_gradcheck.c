/* What the exact gradient check finds, and what differences miss. */
#include "autograd/node.h"
#include "tests/support/test.h"

/*
 * y = x in float64 and in dual numbers, with a backward that is wrong on purpose. It stands before
 * an operation of the library, whose gradient then has the mistake.
 */
enum wrong {
    NOTHING,
    ONE_FACTOR, /* 1 + 1e-9, of one element */
    ALL_FACTOR, /* 1 + 1e-9 */
    SMALL_TERM, /* 1e-8 of the next element is added */
    LAST_BELOW_DIFFERENCES = SMALL_TERM,
    DOUBLED,
    NEGATED,
    ZERO,
    ONE_ZERO,
    ONE_NAN,
    ASSIGNED,
    TRANSPOSED,
    ROW_SUM_MISSING,
    MEAN_OVER_ALL,
    SUM_FOR_MEAN,
    WRONGS,
    SUPPORT_IGNORED = WRONGS, /* a gradient where the function depends on nothing */
};

static double mean_of(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* Element i of dx from dy, both (rows, C). */
static double wrong_dx(enum wrong wrong, int64_t n, int64_t C, int64_t i, const double *dy)
{
    const int64_t row = i / C * C;
    switch (wrong) {
    case ONE_FACTOR:
        return dy[i] * (i == 4 ? 1 + 1e-9 : 1);
    case ALL_FACTOR:
        return dy[i] * (1 + 1e-9);
    case SMALL_TERM:
        return dy[i] + 1e-8 * dy[(i + 1) % n];
    case DOUBLED:
        return 2 * dy[i];
    case NEGATED:
        return -dy[i];
    case ZERO:
        return 0;
    case ONE_ZERO:
        return i == 4 ? 0 : dy[i];
    case ONE_NAN:
        return i == 4 ? NAN : dy[i];
    case TRANSPOSED:
        return dy[i % C * C + i / C];
    case ROW_SUM_MISSING:
        return dy[i] + dy[row] * (double)(1 + row);
    case MEAN_OVER_ALL:
        return dy[i] - mean_of(C, dy + row) + mean_of(n, dy);
    case SUM_FOR_MEAN:
        return dy[i] * (double)C;
    case SUPPORT_IGNORED:
        return dy[i] + 0.1;
    default:
        return dy[i];
    }
}

static bool blame_backward(sb_node *node)
{
    const enum wrong wrong = *(const enum wrong *)sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0), *dy = sb_node_dy(node, 0);
    const int64_t n = sb_tensor_size(dx), C = sb_tensor_dim(dx, -1);
    const bool dual = sb_tensor_dtype(dy) == SB_DUAL;
    for (int64_t i = 0; dual && i < n; i++) /* dual numbers follow a right backward */
        ((sb_dual *)sb_tensor_dual_data(dx))[i] += ((sb_dual *)sb_tensor_dual_data(dy))[i];
    for (int64_t i = 0; !dual && i < n; i++) {
        double *to = &((double *)sb_tensor_data(dx))[i];
        const double part = wrong_dx(wrong, n, C, i, sb_tensor_data(dy));
        *to = wrong == ASSIGNED ? part : *to + part;
    }
    return true;
}

static const sb_operation blame_operation = {
    .name = "blame", .inputs = "x", .backward = blame_backward, .dual = true};

static sb_tensor *blame(sb_tensor *x, enum wrong wrong)
{
    sb_node *node = sb_node_new(&blame_operation, 1, &x, 1, &wrong, sizeof wrong);
    x = sb_node_input(node, 0);
    const int64_t dim[] = {sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)};
    sb_tensor *y = sb_node_output(node, sb_tensor_dtype(x), 2, dim);
    if (y)
        memcpy(y->data, x->data, tensor_bytes(x));
    return y;
}

struct blamed {
    enum wrong wrong;
    int operation;
};

static sb_tensor *run_blamed(void *context, sb_tensor *const x[])
{
    const struct blamed *b = context;
    sb_tensor *a = blame(x[0], b->wrong);
    switch (b->operation) {
    case 0:
        return sb_softmax(a);
    case 1:
        return sb_gelu(sb_matmul(a, x[0]));
    case 2:
        return sb_log_softmax(sb_multiply(a, a));
    default:
        return sb_scale(sb_tanh(a), 3);
    }
}

static sb_gradcheck_result check_blamed(struct blamed b, sb_gradcheck_method method)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(4, 4));
    sb_gradcheck_result result;
    const bool ok =
        sb_gradcheck(run_blamed, &b, &x, 1, &(sb_gradcheck_options){.method = method}, &result);
    cr_expect(ok == result.ok);
    return result;
}

CPU_TEST(exact_gradcheck, every_planted_mistake_is_found)
{
    for (int operation = 0; operation < 4; operation++)
        for (int wrong = NOTHING; wrong < WRONGS; wrong++) {
            const struct blamed b = {(enum wrong)wrong, operation};
            /* softmax ignores what is constant along a row */
            const bool invisible = operation == 0 && wrong == MEAN_OVER_ALL;
            const sb_gradcheck_result r = check_blamed(b, SB_GRADCHECK_AUTOMATIC);
            cr_expect(r.method == SB_GRADCHECK_EXACT);
            cr_expect(r.ok == (wrong == NOTHING || invisible), "mistake %d, operation %d: %.2e",
                      wrong, operation, r.error);
        }
}

CPU_TEST(exact_gradcheck, differences_pass_what_is_below_their_reach)
{
    for (int operation = 0; operation < 4; operation++)
        for (int wrong = ONE_FACTOR; wrong <= LAST_BELOW_DIFFERENCES; wrong++)
            cr_expect(check_blamed((struct blamed){(enum wrong)wrong, operation},
                                   SB_GRADCHECK_DIFFERENCES)
                          .ok,
                      "mistake %d, operation %d: %s", wrong, operation, sb_error());
}

CPU_TEST(exact_gradcheck, mistakes_are_named)
{
    static const struct {
        enum wrong wrong;
        const char *name;
    } mistakes[] = {
        {DOUBLED, "exactly 2.000 times too large everywhere: a factor is lost"},
        {NEGATED, "a sign is lost"},
        {ZERO, "as if the input were detached"},
        {ONE_NAN, "backward gives a number that is not finite"},
        {ASSIGNED, "assigned instead of added"},
        {TRANSPOSED, "transposed in its last two axes"},
        {ROW_SUM_MISSING, "a constant within each row: a sum over the row is missing"},
        {MEAN_OVER_ALL, "a mean over all rows instead of over each"},
        {SUM_FOR_MEAN, "exactly 4.000 times too large everywhere, the length of a row"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const sb_gradcheck_result r =
            check_blamed((struct blamed){mistakes[i].wrong, 3}, SB_GRADCHECK_EXACT);
        cr_expect(strstr(r.mistake, mistakes[i].name), "\"%s\" is without \"%s\"", r.mistake,
                  mistakes[i].name);
    }
}

/* Softmax over the first two of each row; the others do not count. */
static sb_tensor *run_supported(void *context, sb_tensor *const x[])
{
    const enum wrong wrong = *(const enum wrong *)context;
    sb_tensor *kept = sb_slice(x[0], 1, 0, 2), *blocked = sb_slice(x[0], 1, 2, 2);
    sb_tensor *zero = sb_scale(blame(blocked, wrong), 0);
    return sb_concatenate((sb_tensor *[]){sb_softmax(kept), zero}, 2, 1);
}

CPU_TEST(exact_gradcheck, an_ignored_support_is_named)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3, 4));
    enum wrong wrong = NOTHING;
    cr_expect(sb_gradcheck(run_supported, &wrong, &x, 1, NULL, NULL), "%s", sb_error());
    wrong = SUPPORT_IGNORED;
    cr_expect(!sb_gradcheck(run_supported, &wrong, &x, 1, NULL, NULL));
    EXPECT_ERROR("the support of a mask is ignored");
}

static sb_tensor *run_product_of_both(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_multiply(sb_tanh(x[0]), x[1]);
}

CPU_TEST(exact_gradcheck, a_tensor_that_is_two_inputs_keeps_its_values_to_the_bit)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3, 4)), *both[] = {x, x};
    double *before = numbers_of(x);
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = true};
    cr_expect(sb_gradcheck(run_product_of_both, NULL, both, 2, &options, NULL), "%s", sb_error());
    double *after = numbers_of(x);
    cr_expect(memcmp(before, after, 12 * sizeof(double)) == 0);
}

CPU_TEST(exact_gradcheck, an_open_tape_that_read_the_inputs_before_can_run_backward)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(3)), *both[] = {x, x};
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = true};
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_sum(sb_tanh(x), 0, false);
    cr_expect(sb_gradcheck(run_product_of_both, NULL, both, 2, &options, NULL), "%s", sb_error());
    cr_expect(sb_backward(loss), "%s", sb_error());
}
