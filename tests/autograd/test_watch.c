#include "autograd/watch.h"
#include "tests/support/values.h"
#include <string.h>

/* The observed calls: "+scale" is forward, "-scale" backward, and "." the end. */
static char seen[256];

static void see(void *context, enum watched what, const sb_node *node)
{
    (void)context;
    strcat(seen, what == WATCHED_FORWARD ? "+" : what == WATCHED_BACKWARD ? "-" : ".");
    strcat(seen, node ? node->operation->name : "");
}

TEST(watch, forward_and_backward_of_operations_are_reported)
{
    const struct watcher watcher = {see, NULL};
    sb_tape tape;
    seen[0] = 0;
    watch_operations(&watcher);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(1, 2));
    sb_tensor *y = sb_sum(sb_multiply(sb_scale(x, 3), constant(SB_F64, SB_SHAPE(2), NUMBERS(1, 2))),
                          SB_ALL, false);
    MUST(sb_backward(y));
    sb_tape_end(&tape);
    watch_operations(NULL);
    cr_expect(strcmp(seen, "+scale+multiply+sum-sum-multiply-scale..") == 0, "%s", seen);
}

TEST(watch, without_a_watcher_nothing_is_reported)
{
    sb_tape tape;
    seen[0] = 0;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_scale(constant(SB_F64, SB_SHAPE(1), NUMBERS(1)), 2);
    sb_tape_end(&tape);
    cr_expect(seen[0] == 0, "%s", seen);
}
