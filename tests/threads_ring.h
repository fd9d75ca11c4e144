/*
 * A ring of ranks that are threads of one process. A message is taken out of the sender's memory
 * when the receiver finishes, and the room for it is filled with 0xff before: who touches either
 * too early computes nonsense.
 */
#ifndef SOFTBACK_TESTS_THREADS_RING_H
#define SOFTBACK_TESTS_THREADS_RING_H

#include "tensor/ring.h"

/* What a rank does; false, with sb_error's message, on failure. */
typedef bool (*ring_body)(const struct ring *ring, void *context);

/* Runs the body on each rank, and asserts that none fails. */
void ring_run(int ranks, ring_body body, void *context);

#endif
