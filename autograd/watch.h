/*
 * Observes operations as they run, for profiling. One watcher serves the whole process and all
 * threads; do not change it while operations run.
 */
#ifndef SOFTBACK_AUTOGRAD_WATCH_H
#define SOFTBACK_AUTOGRAD_WATCH_H

#include "autograd/node.h"

enum watched {
    WATCHED_FORWARD,  /* the node was made; its operation starts */
    WATCHED_BACKWARD, /* its backward starts */
    WATCHED_DONE,     /* backward has finished, or a tape ends; the node is NULL */
};

struct watcher {
    void (*see)(void *context, enum watched what, const sb_node *node);
    void *context;
};

void watch_operations(const struct watcher *watcher); /* the caller keeps it; NULL: none */

/* Whether there is a watcher. It may not expect several threads at the same time. */
bool watch_is_on(void);

/* For the tape. */
void watch_tell(enum watched what, const sb_node *node);

#endif
