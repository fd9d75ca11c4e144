/* While backward runs, its leaves belong to its thread: the additions of two threads to one
   gradient would mix. */
#ifndef SOFTBACK_AUTOGRAD_CLAIMS_H
#define SOFTBACK_AUTOGRAD_CLAIMS_H

#include "autograd/node.h"

/* Claims all leaves whose gradient backward from y may add to. Fails, and claims none, when another
   thread has one of them. Backward on an inner tape of the same thread shares those of the outer
   one. */
bool claims_take(struct open_tape *tape, sb_tensor *y);
void claims_return(const struct open_tape *tape, sb_tensor *y);

#endif
