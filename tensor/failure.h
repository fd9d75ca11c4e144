/* How the parts of the library report failures; callers outside see error.h. */
#ifndef SOFTBACK_TENSOR_FAILURE_H
#define SOFTBACK_TENSOR_FAILURE_H

#include "tensor/error.h"

/*
 * An argument is NULL. When a failure is still unread, it is most likely the reason, and the
 * message goes on with it. Returns NULL.
 */
void *fail_null(const char *function, const char *argument);

/* Failures set *failed from here on, until another flag (or NULL) takes its place. */
void failure_watch(bool *failed);

/* Whatever failed has been dealt with: it explains no later NULL. The message itself stays. */
void failure_settled(void);

#endif
