#include "autograd/listener.h"
#include "tests/support/test.h"

/* Hears of one leaf. */
struct ear {
    sb_tensor *leaf;
    const sb_node *last;
    int told, done;
    double when_whole; /* its gradient after the last announced node */
    bool fails;
};

static void adds(void *context, const sb_tensor *leaf, const sb_node *node)
{
    struct ear *ear = context;
    if (leaf != ear->leaf)
        return;
    ear->told++;
    ear->last = node;
}

static bool done(void *context, const sb_node *node)
{
    struct ear *ear = context;
    ear->done++;
    if (node == ear->last)
        ear->when_whole = sb_tensor_get(sb_tensor_grad(ear->leaf), 0);
    return !ear->fails || sb_fail("the listener has had enough");
}

/* Backward of (w x) + (w w) + x, in which w has a part in two nodes, and one of them last. */
static bool run(struct ear *ear, sb_tensor *w, sb_tensor *x)
{
    const struct listener listener = {adds, done, ear};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_multiply(w, x);
    y = sb_add(y, sb_multiply(w, w));
    const bool ok = backward_heard(sb_sum(sb_add(y, x), SB_ALL, false), &listener);
    return sb_tape_end(&tape) && ok;
}

CPU_TEST(listener, a_leafs_gradient_is_whole_after_the_last_node_that_it_is_told_of)
{
    sb_tensor *w = test_leaf(SB_F64, 1, SB_SHAPE(3)), *x = test_leaf(SB_F64, 2, SB_SHAPE(3));
    struct ear ear = {.leaf = w};
    cr_assert(run(&ear, w, x), "%s", sb_error());
    cr_expect(ear.told == 3, "told %d times: w x, and w w twice", ear.told);
    cr_expect(ear.done == 5, "%d nodes", ear.done);
    cr_expect(ear.when_whole == sb_tensor_get(sb_tensor_grad(w), 0));
    cr_expect(fabs(ear.when_whole - (sb_tensor_get(x, 0) + 2 * sb_tensor_get(w, 0))) < 1e-15);
    sb_tensor_release(w);
    sb_tensor_release(x);
}

CPU_TEST(listener, one_that_fails_ends_backward)
{
    sb_tensor *w = test_leaf(SB_F64, 1, SB_SHAPE(3)), *x = test_leaf(SB_F64, 2, SB_SHAPE(3));
    struct ear ear = {.leaf = w, .fails = true};
    cr_expect(!run(&ear, w, x) && ear.done == 1);
    EXPECT_ERROR("the listener has had enough");
    cr_expect(!sb_tensor_grad(w) && !sb_tensor_grad(x), "no part of a gradient is left");
    sb_tensor_release(w);
    sb_tensor_release(x);
}
