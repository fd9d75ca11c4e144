/* The threads of kernels, for the library's own files. */
#ifndef SOFTBACK_TENSOR_THREADS_H
#define SOFTBACK_TENSOR_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls work(context, i) for each i in 0..n-1, on up to sb_threads() threads at the same time, of
 * which the caller's is one, and returns when all are done. Each thread takes the next i when it
 * has finished one, and divides the loops of kernels among an equal part of the threads. The caller
 * computes all of them in turn if it asks for that, and where no thread can be made. False, with
 * the message of the least i that failed, when one does; those that have not begun by then are left
 * out.
 */
bool threads_each(int64_t n, bool in_turn, bool (*work)(void *context, int64_t i), void *context);

/* How often a parallel region asked for more than one thread. */
int64_t threads_entered(void);

#endif
