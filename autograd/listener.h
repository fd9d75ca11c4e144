/* A listener of backward, for code that uses the gradient of a leaf as soon as it is complete,
   while backward still computes others. */
#ifndef SOFTBACK_AUTOGRAD_LISTENER_H
#define SOFTBACK_AUTOGRAD_LISTENER_H

#include "autograd/node.h"

struct listener {
    /* Called before backward runs, for each node that adds to a leaf's gradient, in the order in
       which these nodes will run. The gradient of a leaf is complete after the last of its
       nodes. */
    void (*adds)(void *context, const sb_tensor *leaf, const sb_node *node); /* or NULL */
    /* Called before a node's backward, while its outputs and their gradients exist; or NULL. */
    void (*begins)(void *context, const sb_node *node);
    /* Called when a node is done. Returning false, with a message, makes backward fail. */
    bool (*done)(void *context, const sb_node *node); /* or NULL */
    void *context;
};

/* sb_backward with a listener, which may be NULL. */
bool backward_heard(sb_tensor *loss, const struct listener *listener);
bool backward_from_heard(sb_tensor *y, sb_tensor *dy, const struct listener *listener);

#endif
