/* Listening to backward: for whoever has something to do with a leaf's gradient as soon as it is
   whole, while backward still computes others. */
#ifndef SOFTBACK_AUTOGRAD_LISTENER_H
#define SOFTBACK_AUTOGRAD_LISTENER_H

#include "autograd/node.h"

struct listener {
    /* Told before backward runs: each node that adds to a leaf's gradient, in the order in which
       they will run; so a leaf's gradient is whole after the last one that is told of it. */
    void (*adds)(void *context, const sb_tensor *leaf, const sb_node *node);
    /* The node is done. False, with a message, ends backward as a failure. */
    bool (*done)(void *context, const sb_node *node);
    void *context;
};

/* sb_backward, heard by a listener; NULL: by nobody. */
bool backward_heard(sb_tensor *loss, const struct listener *listener);

#endif
