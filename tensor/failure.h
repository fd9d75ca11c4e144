/* Failures inside the library; callers use error.h. */
#ifndef SOFTBACK_TENSOR_FAILURE_H
#define SOFTBACK_TENSOR_FAILURE_H

#include "tensor/error.h"
#include <stdint.h>

/*
 * Fails because an argument is NULL. An earlier failure that nobody has read is the likely reason,
 * so its message is appended. Returns NULL.
 */
void *fail_null(const char *function, const char *argument);

/* Whether an argument is at least `least`; a number, finite and not negative; or in [0, 1). If not,
   they fail: "function: argument is ...; it must be ...". */
bool check_at_least(const char *function, const char *argument, int64_t value, int64_t least);
bool check_not_negative(const char *function, const char *argument, double value);
bool check_share(const char *function, const char *argument, double value);

/* From now on failures set *failed, until another flag (or NULL) replaces it. */
void failure_watch(bool *failed);

/* The caller has handled the last failure, so it does not explain a later NULL. The message
   stays. */
void failure_settled(void);

/* How often this thread has failed. An allocation that fails may have set a message, if its device
   refuses more than memory; only where this number is unchanged is "out of memory" the reason. */
uint64_t failure_count(void);

#endif
