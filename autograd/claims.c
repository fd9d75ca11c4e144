#include "autograd/claims.h"
#include "tensor/failure.h"

static bool claims_leaf(const struct open_tape *tape, sb_tensor *x)
{
    uint64_t holder = 0;
    if (x->tape != 0 || !tape_wants_grad(tape, x) ||
        atomic_compare_exchange_strong(&x->claimed, &holder, tape->serial) ||
        tape_is_of_thread(holder))
        return true;
    return sb_fail("backward: another thread computes the gradient of a leaf %s; run one backward "
                   "after the other, or give each thread leaves of its own",
                   tensor_shape(x).text);
}

bool claims_take(struct open_tape *tape, sb_tensor *y)
{
    bool ok = claims_leaf(tape, y);
    for (sb_node *node = tape->last; node && ok; node = node->previous)
        for (int i = 0; i < node->inputs && ok; i++)
            ok = claims_leaf(tape, node->in[i]);
    if (!ok)
        claims_return(tape, y);
    return ok;
}

static void claims_return_leaf(const struct open_tape *tape, sb_tensor *x)
{
    uint64_t own = tape->serial;
    atomic_compare_exchange_strong(&x->claimed, &own, 0);
}

void claims_return(const struct open_tape *tape, sb_tensor *y)
{
    claims_return_leaf(tape, y);
    for (sb_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->inputs; i++)
            claims_return_leaf(tape, node->in[i]);
}
