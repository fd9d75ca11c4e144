/*
 * The error message of each thread: what the last failure was.
 *
 * A function that fails returns NULL or false and sets this message. It names the function, the
 * value that it was given and what it expected.
 */
#ifndef SOFTBACK_TENSOR_ERROR_H
#define SOFTBACK_TENSOR_ERROR_H

#include <stdbool.h>

/* Marks what the library exports to C and C++. */
#if defined(__GNUC__) && defined(__cplusplus)
#define SB_API extern "C" __attribute__((visibility("default")))
#elif defined(__GNUC__)
#define SB_API __attribute__((visibility("default")))
#else
#define SB_API
#endif
#if defined(__GNUC__)
#define SB_PRINTF(text, values) __attribute__((format(printf, text, values)))
#else
#define SB_PRINTF(text, values)
#endif

/* The message of the calling thread's last failure; "" when nothing has failed yet. */
SB_API const char *sb_error(void);

/*
 * Sets the message, marks the open tape as failed, and returns NULL. In functions that return a
 * pointer or a bool, failing code is one line: `return sb_fail("softmax: x is a scalar")`. If the
 * open tape has failed already, its first message stays.
 */
SB_API void *sb_fail(const char *format, ...) SB_PRINTF(1, 2);

#endif
