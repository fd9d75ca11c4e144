/* Calls of every function that the library exports, with NULL for pointers. */
#ifndef SOFTBACK_TESTS_WHOLE_NULL_CALLS_H
#define SOFTBACK_TESTS_WHOLE_NULL_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The i-th function's name; NULL past the last. */
const char *null_call_name(int i);

/*
 * Calls it with all arguments 0, then with one pointer NULL at a time and the others valid; once
 * without an open tape and once with one. *at says which call is running: 0 for that of zeros, n
 * for that without argument n.
 */
void null_call(int i, volatile int *at);

#ifdef __cplusplus
}
#endif

#endif
