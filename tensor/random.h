/*
 * Random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as
 * easy as 1, 2, 3"), a bijection of a 128-bit counter under a 64-bit key.
 *
 * The generator is counter-based: any number of a stream can be computed alone, so the same seed
 * gives the same numbers for any number of threads, and the state is only a position. The integer
 * stream is that of cuRAND: key = seed, counter = (offset / 4, subsequence).
 */
#ifndef SOFTBACK_TENSOR_RANDOM_H
#define SOFTBACK_TENSOR_RANDOM_H

#include "error.h"
#include <stdint.h>

/* The purpose of a stream; streams of one seed are independent. */
typedef enum {
    SB_STREAM_INITIAL, /* initial weights */
    SB_STREAM_TRAIN,   /* dropout */
    SB_STREAM_DATA,    /* generated pairs and the order of batches */
    SB_STREAM_SAMPLE,  /* sampling while decoding */
    SB_STREAM_USER,    /* yours */
} sb_stream;

typedef struct {
    uint64_t seed;
    uint64_t position; /* the next draw: stream in the upper 16 bits, count in the lower 48 */
} sb_random;

SB_API sb_random sb_random_new(uint64_t seed, sb_stream stream);

/* The next draw's 32 random bits, and a number in [0, 1) with 53 random bits. Each takes one
   position of the stream. */
SB_API uint32_t sb_random_bits(sb_random *random);
SB_API double sb_random_uniform(sb_random *random);
/* An integer in 0..limit-1, without bias. Fails and returns 0 when the limit is 0. */
SB_API uint32_t sb_random_below(sb_random *random, uint32_t limit);
/* A standard normal variate (Box and Muller 1958). */
SB_API double sb_random_normal(sb_random *random);
/* Writes a random permutation of 0..n-1 into `order` (Fisher and Yates 1938). */
SB_API void sb_random_shuffle(sb_random *random, int64_t n, int64_t *order);

#endif
