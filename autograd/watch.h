/* Observers of operations as they run. */
#ifndef SOFTBACK_AUTOGRAD_WATCH_H
#define SOFTBACK_AUTOGRAD_WATCH_H

#include "autograd/node.h"

enum watched {
    WATCHED_FORWARD,  /* the node was made; its operation starts */
    WATCHED_BACKWARD, /* its backward starts */
    WATCHED_DONE,     /* backward has finished, or a tape ends; the node is NULL */
};

/* Observes all operations, for profiling. One watcher serves the whole process and all threads; do
   not change it while operations run. */
struct watcher {
    void (*see)(void *context, enum watched what, const sb_node *node);
    void *context;
};

void watch_operations(const struct watcher *watcher); /* the caller keeps it; NULL: none */

/* Whether there is a watcher. It may not expect several threads at the same time. */
bool watch_is_on(void);

/* For the tape. */
void watch_tell(enum watched what, const sb_node *node);

/* Listens to one backward, for code that uses the gradient of a leaf as soon as it is complete,
   while backward still computes others. */
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
