#include "autograd/watch.h"
#include "tests/support/test.h"

/* Observes one leaf. */
struct observer {
    sb_tensor *leaf;
    const sb_node *last;
    int announced, done;
    double complete; /* the gradient after the last announced node */
    bool fails;
};

static void adds(void *context, const sb_tensor *leaf, const sb_node *node)
{
    struct observer *seen = context;
    if (leaf != seen->leaf)
        return;
    seen->announced++;
    seen->last = node;
}

static bool done(void *context, const sb_node *node)
{
    struct observer *seen = context;
    seen->done++;
    if (node == seen->last)
        seen->complete = sb_tensor_get(sb_tensor_grad(seen->leaf), 0);
    return !seen->fails || sb_fail("a planned failure");
}

/* Backward of (w x) + (w w) + x, in which w is an input of two nodes, one of them the last. */
static bool run(struct observer *seen, sb_tensor *w, sb_tensor *x)
{
    const struct listener listener = {.adds = adds, .done = done, .context = seen};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_multiply(w, x);
    y = sb_add(y, sb_multiply(w, w));
    const bool ok = backward_heard(sb_sum(sb_add(y, x), SB_ALL, false), &listener);
    return sb_tape_end(&tape) && ok;
}

CPU_TEST(listener, a_gradient_is_complete_after_the_last_announced_node)
{
    sb_tensor *w = KEPT(test_leaf(SB_F64, 1, SB_SHAPE(3))),
              *x = KEPT(test_leaf(SB_F64, 2, SB_SHAPE(3)));
    struct observer seen = {.leaf = w};
    cr_assert(run(&seen, w, x), "%s", sb_error());
    cr_expect(seen.announced == 3, "announced %d times, not 3: w x, and w w twice", seen.announced);
    cr_expect(seen.done == 5, "%d nodes", seen.done);
    cr_expect(seen.complete == sb_tensor_get(sb_tensor_grad(w), 0));
    cr_expect(fabs(seen.complete - (sb_tensor_get(x, 0) + 2 * sb_tensor_get(w, 0))) < 1e-15);
}

CPU_TEST(listener, a_failing_listener_ends_backward)
{
    sb_tensor *w = KEPT(test_leaf(SB_F64, 1, SB_SHAPE(3))),
              *x = KEPT(test_leaf(SB_F64, 2, SB_SHAPE(3)));
    struct observer seen = {.leaf = w, .fails = true};
    cr_expect(!run(&seen, w, x) && seen.done == 1);
    EXPECT_ERROR("a planned failure");
    cr_expect(!sb_tensor_grad(w) && !sb_tensor_grad(x), "a partial gradient is left");
}
