/*
 * Watching operations as they run: for profiles. One watcher for the whole process, which hears of
 * every thread's; it is not to be changed while operations run.
 */
#ifndef SOFTBACK_AUTOGRAD_WATCH_H
#define SOFTBACK_AUTOGRAD_WATCH_H

#include "autograd/node.h"

enum watched {
    WATCHED_FORWARD,  /* the node was made, and its operation runs from here on */
    WATCHED_BACKWARD, /* its backward runs from here on */
    WATCHED_DONE,     /* what ran is done: backward is, or a tape ends; the node is NULL */
};

struct watcher {
    void (*see)(void *context, enum watched what, const sb_node *node);
    void *context;
};

void watch_operations(const struct watcher *watcher); /* which stays the caller's; NULL: nobody */

/* For the tape. */
void watch_tell(enum watched what, const sb_node *node);

#endif
