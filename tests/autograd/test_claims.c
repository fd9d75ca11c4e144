#include "autograd/recomputation.h"
#include "tests/support/sample.h"
#include <pthread.h>
#include <stdio.h>

/* Backward of another thread, and what it said. */
struct other {
    sb_tensor *leaf;
    bool ok;
    char message[200];
};

static void *run_other(void *context)
{
    struct other *other = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    other->ok = sb_backward(total(times(other->leaf, other->leaf)));
    snprintf(other->message, sizeof other->message, "%s", sb_error());
    sb_tape_end(&tape);
    return NULL;
}

/* y = x; its backward, which adds dy, lets the other thread run meanwhile. */
static struct other *meanwhile;
static bool interrupted_backward(sb_node *node)
{
    pthread_t thread;
    sb_tensor *dx = sb_node_dx(node, 0);
    cr_assert(pthread_create(&thread, NULL, run_other, meanwhile) == 0);
    pthread_join(thread, NULL);
    for (int64_t i = 0; i < sb_tensor_size(dx); i++)
        sb_tensor_set(dx, i, sb_tensor_get(dx, i) + sb_tensor_get(sb_node_dy(node, 0), i));
    return true;
}

static const sb_operation interrupted = {"interrupted", "x", interrupted_backward, false, false};

static sb_tensor *interrupt(sb_tensor *x)
{
    sb_node *node = sb_node_new(&interrupted, 1, &x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(x, i));
    return y;
}

static void run_both(sb_tensor *a, struct other *other)
{
    meanwhile = other;
    TAPE(SB_RECORD);
    cr_assert(sb_backward(total(times(a, interrupt(a)))), "%s", sb_error());
}

CPU_TEST(claims, two_threads_do_not_add_to_one_leaf_at_the_same_time)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    struct other other = {.leaf = a};
    run_both(a, &other);
    cr_expect(!other.ok && strstr(other.message, "backward: another thread computes the gradient "
                                                 "of a leaf (2); run one backward after the other"),
              "%s", other.message);
    cr_expect(every(sb_tensor_grad(a), 6), "the other's gradient is in it");
    other = (struct other){.leaf = b}; /* a leaf of its own */
    run_both(a, &other);
    cr_expect(other.ok && every(sb_tensor_grad(b), 10), "%s", other.message);
    cr_expect(every(sb_tensor_grad(a), 12));
    other.leaf = a; /* and afterwards the same */
    run_other(&other);
    cr_expect(other.ok && every(sb_tensor_grad(a), 18), "%s", other.message);
}

static sb_tensor *square(void *context, sb_tensor *const x[])
{
    sb_tensor *leaf_of_it = *(sb_tensor **)context;
    return times(x[0], leaf_of_it);
}

/* Recomputation runs backward on an inner tape, also for leaves that only the inner one reaches. */
CPU_TEST(claims, an_inner_tape_shares_the_leaves_of_the_outer_one)
{
    sb_tensor *a = leaf(3), *b = leaf(5);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_recompute(square, &a, sizeof a, 1, &a);
    y = sb_recompute(square, &b, sizeof b, 1, &y);
    cr_assert(sb_backward(total(times(y, a))), "%s", sb_error());
    cr_expect(sb_tape_end(&tape), "%s", sb_error());
    cr_expect(every(sb_tensor_grad(a), 3 * 9 * 5) && every(sb_tensor_grad(b), 27));
    cr_expect(a->claimed == 0 && b->claimed == 0);
    sb_tensor_release(a);
    sb_tensor_release(b);
}
