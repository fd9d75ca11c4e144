#include "tests/support/sample.h"

/* y = a + b, which can write into a fresh gradient */
static int was_fresh[2];
static bool plus_backward(sb_node *node)
{
    for (int i = 0; i < 2; i++) {
        sb_tensor *dx = sb_node_dx(node, i);
        was_fresh[i] = sb_node_fresh(node, i);
        for (int64_t k = 0; k < sb_tensor_size(dx); k++)
            sb_tensor_set(dx, k,
                          (was_fresh[i] ? 0 : sb_tensor_get(dx, k)) +
                              sb_tensor_get(sb_node_dy(node, 0), k));
    }
    return true;
}

static const sb_operation plus_operation = {"plus", "a b", plus_backward, true, false};

static sb_tensor *plus(sb_tensor *a, sb_tensor *b)
{
    sb_node *node = sb_node_new(&plus_operation, 2, (sb_tensor *[]){a, b}, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, a->dtype, a->rank, a->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(a, i) + sb_tensor_get(b, i));
    return y;
}

/* y, z = 2x, 3x */
static bool saw_no_dz;
static bool fork_backward(sb_node *node)
{
    sb_tensor *dx = sb_node_dx(node, 0);
    saw_no_dz = sb_node_dy(node, 1) == NULL;
    for (int output = 0; output < 2; output++)
        for (int64_t i = 0; sb_node_dy(node, output) && i < sb_tensor_size(dx); i++)
            sb_tensor_set(dx, i,
                          sb_tensor_get(dx, i) +
                              (2 + output) * sb_tensor_get(sb_node_dy(node, output), i));
    return true;
}

static const sb_operation fork_operation = {"fork", "x", fork_backward, false, false};

static sb_node *two_outputs(sb_tensor *x, sb_tensor *y[2])
{
    sb_node *node = sb_node_new(&fork_operation, 1, &x, 2, NULL, 0);
    for (int output = 0; output < 2; output++) {
        y[output] = sb_node_output(node, x->dtype, x->rank, x->dim);
        for (int64_t i = 0; i < sb_tensor_size(y[output]); i++)
            sb_tensor_set(y[output], i, (2 + output) * sb_tensor_get(x, i));
    }
    return node;
}

TEST(node, it_may_have_several_outputs)
{
    for (int used = 1; used <= 2; used++) {
        sb_tensor *a = KEPT(leaf(3)), *y[2];
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        two_outputs(a, y);
        cr_assert(sb_backward(used == 2 ? total(times(y[0], y[1])) : total(y[0])));
        cr_expect(sb_tape_end(&tape));
        cr_expect(saw_no_dz == (used == 1), "an output that nothing used has no gradient");
        cr_expect(every(sb_tensor_grad(a), used == 2 ? 2 * 9 + 3 * 6 : 2));
    }
}

TEST(node, a_third_output_is_refused)
{
    sb_tensor *a = KEPT(leaf(3)), *y[2];
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_node_output(two_outputs(a, y), SB_F64, SB_SHAPE(2)));
    EXPECT_ERROR("fork: it has 2 outputs already");
    sb_tape_end(&tape);
    cr_expect(!sb_node_output(NULL, SB_F64, SB_SHAPE(2)));
    EXPECT_ERROR("node_output: node is NULL");
}

TEST(node, a_gradient_is_fresh_until_something_is_added_to_it)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, b))));
    sb_tape_end(&tape);
    cr_expect(was_fresh[0] && was_fresh[1]);
    sb_tensor_clear_grad(b);
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, b)))); /* a has a gradient already */
    sb_tape_end(&tape);
    cr_expect(!was_fresh[0] && was_fresh[1]);
    cr_expect(every(sb_tensor_grad(a), 2) && every(sb_tensor_grad(b), 1));
    sb_tensor_clear_grad(a);
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, a)))); /* in two places: the second adds */
    sb_tape_end(&tape);
    cr_expect(!was_fresh[0] && !was_fresh[1] && every(sb_tensor_grad(a), 2));
    sb_tensor_clear_grad(a);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = plus(a, b);
    cr_assert(sb_backward(total(times(y, y)))); /* an operation that adds gets zeros to add to */
    sb_tape_end(&tape);
    cr_expect(was_fresh[0] && every(sb_tensor_grad(a), 16));
}

TEST(node, an_operation_without_backward_gives_constants)
{
    static const sb_operation cut = {"cut", "x", NULL, false, false};
    static const sb_operation ids = {"ids", "x", plus_backward, false, false};
    sb_tensor *a = leaf(3);
    FAILED_TAPE(SB_RECORD);
    sb_tensor *y = sb_node_output(sb_node_new(&cut, 1, &a, 1, NULL, 0), SB_F64, SB_SHAPE(2));
    cr_expect(y && !y->requires_grad);
    sb_tensor *i = sb_node_output(sb_node_new(&ids, 1, &a, 1, NULL, 0), SB_I32, SB_SHAPE(2));
    cr_expect(i && !i->requires_grad, "integers carry no gradient");
    cr_expect(!sb_backward(total(y)));
    EXPECT_ERROR(
        "backward: the argument, of shape (), depends on nothing that requires a gradient");
    sb_tensor_release(a);
}

TEST(node, a_view_keeps_its_data_alive)
{
    sb_tensor *a = KEPT(leaf(3));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = times(a, a);
    static const sb_operation part = {"part", "x", NULL, false, false};
    sb_node *node = sb_node_new(&part, 1, &y, 1, NULL, 0);
    sb_tensor *view = sb_keep(node_view(node, 1, 1, (int64_t[]){1}));
    cr_expect(view && (double *)view->data == (double *)y->data + 1);
    sb_tensor *alone = KEPT(sb_tensor_retain(view));
    cr_assert(sb_backward(total(times(y, a))));
    cr_expect(y->data_gone && sb_tensor_get(view, 0) == 9);
    sb_tape_end(&tape);
    cr_expect(sb_tensor_get(alone, 0) == 9);
}

static int released;
static void count_release(void *object)
{
    released += *(int *)object;
}

TEST(node, the_tape_releases_objects_that_it_owns)
{
    int object = 10;
    released = 0;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(tape_own_object(&object, count_release, "test") == &object && released == 0);
    sb_tensor *t = sb_tape_own(sb_tensor_scalar(SB_F64, 4));
    cr_expect(sb_tensor_value(t) == 4);
    cr_expect(sb_tape_end(&tape) && released == 10);
    sb_tape_begin(&tape, SB_RECORD);
    sb_fail("it broke");
    cr_expect(!tape_own_object(&object, count_release, "test") && released == 20, "not released");
    sb_tape_end(&tape);
    cr_expect(!sb_tape_own(NULL));
    EXPECT_ERROR("tape_own: t is NULL");
}

TEST(node, a_leaf_that_the_tape_owns_gets_its_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = sb_tape_own(leaf(3));
    cr_assert(sb_backward(total(times(a, a))));
    cr_expect(every(a, 3) && every(sb_tensor_grad(a), 6));
}

TEST(node, inputs_are_checked_and_named)
{
    sb_tensor *a = KEPT(leaf(3)), *single = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(2)));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(2)));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!times(NULL, a));
    EXPECT_ERROR("times: a is NULL");
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!times(a, single));
    EXPECT_ERROR("times: a is f64, b is f32: dtypes differ");
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(times(a, ids) != NULL, "integers go with any real dtype: %s", sb_error());
    cr_expect(!sb_node_new(&plus_operation, 3, (sb_tensor *[]){ids, a, single}, 1, NULL, 0));
    EXPECT_ERROR("plus: b is f64, b is f32"); /* further inputs take the last name */
    sb_tape_end(&tape);
}

TEST(node, saved_tensors_and_options_can_be_read_back)
{
    sb_tensor *a = KEPT(leaf(3)), *saved = sb_tensor_scalar(SB_F64, 8);
    FAILED_TAPE(SB_RECORD);
    sb_node *node = sb_node_new(&plus_operation, 2, (sb_tensor *[]){a, a}, 1, "seven", 6);
    sb_tensor *y = sb_node_output(node, SB_F64, SB_SHAPE(2));
    cr_expect(sb_node_save(node, saved) == saved);
    cr_expect(sb_node_input(node, 1) == a && !sb_node_input(node, 2) && !sb_node_input(node, -1));
    cr_expect(sb_node_result(node, 0) == y && !sb_node_result(node, 1));
    cr_expect(sb_node_saved(node, 0) == saved && !sb_node_saved(node, 1));
    cr_expect(strcmp(sb_node_options(node), "seven") == 0);
    for (int i = 1; i < 4; i++)
        cr_expect(sb_node_save(node, sb_tensor_scalar(SB_F64, i)) != NULL);
    cr_expect(!sb_node_save(node, sb_tensor_scalar(SB_F64, 4)), "the fifth is released");
    EXPECT_ERROR("plus: it saves more than 4 tensors");
}

TEST(node, options_are_aligned_for_any_type)
{
    sb_tensor *a = KEPT(leaf(3)), *in[] = {a, a, a, a};
    TAPE(SB_RECORD);
    for (int inputs = 0; inputs <= 4; inputs++) {
        sb_node *node = sb_node_new(&plus_operation, inputs, in, 1, "seven", 6);
        cr_expect((uintptr_t)sb_node_options(node) % 16 == 0, "not with %d inputs", inputs);
    }
}
