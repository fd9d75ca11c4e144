/* Decoding that keeps its symbols on the device for several steps: its kernels, and caches whose
   position is read on the device. */
#ifndef SOFTBACK_OPS_DECODING_H
#define SOFTBACK_OPS_DECODING_H

#include "ops/kernel.h"
#include "ops/kv_cache.h"

/*
 * What a step leaves to the next one, for B sequences. Sequence b has chosen the symbol best[b]
 * with the log-probability log_p[b] (of the row's dtype). It becomes the input ids[b], and row
 * *position % steps of `noted`, (steps, B, 2), holds both numbers until the host reads them; then
 * *position and lengths[b] grow by 1. All lie in device memory.
 */
struct decoding_note {
    int64_t B, steps;
    const int32_t *best;
    const void *log_p;
    int32_t *ids, *position, *lengths;
    double *noted;
};

enum { DECODING_SLOTS = 33, DECODING_CACHES = 32 }; /* the most of a beam, and of a rearrangement */

/*
 * The same for beam search. Each of `texts` texts has S = width + 1 slots, a sequence each: those
 * of its hypotheses, and unused ones, whose log-probability is -infinity. best and log_p, (texts,
 * S, reads), have the most probable symbols of each sequence, in order. Its candidates are the
 * first S of those that may be chosen: `end` and the symbols from `first` on.
 *
 * The `width` most probable candidates of a text that do not end, and that of greedy decoding, are
 * its next hypotheses, the most probable first; a slot that stays empty is unused. NaN, at which
 * the host fails, counts as -infinity.
 */
struct decoding_beam {
    int64_t texts, width, reads, steps;
    int32_t end, first;
    const int32_t *best;
    const void *log_p;
    double *sum;     /* (texts, S): the log-probability of each hypothesis */
    int32_t *greedy; /* (texts): the slot of greedy decoding's hypothesis; -1: it has ended */
    int32_t *from;   /* (texts, S): the former slot that each hypothesis extends */
    int32_t *ids, *position, *lengths;
    double *noted; /* (steps, texts, S, 2 + 2 reads): from, id; ids and log-probabilities read */
};

/* A hypothesis and its next symbol; id -1: none. */
struct decoding_candidate {
    double sum;
    int32_t slot, id;
};

/* Of equally probable candidates the one of the lower slot is first, then the lower id. */
KERNEL_INLINE bool decoding_before(const struct decoding_candidate *a,
                                   const struct decoding_candidate *b)
{
    if (a->sum != b->sum)
        return a->sum > b->sum;
    return a->slot != b->slot ? a->slot < b->slot : a->id < b->id;
}

/* Whether a candidate can be a hypothesis of the next step. */
KERNEL_INLINE bool decoding_goes_on(const struct decoding_beam *f,
                                    const struct decoding_candidate *c)
{
    return c->id >= 0 && c->id != f->end;
}

/* How many of n candidates that go on come before c. */
KERNEL_INLINE int64_t decoding_place(const struct decoding_beam *f, int64_t n,
                                     const struct decoding_candidate all[],
                                     const struct decoding_candidate *c)
{
    int64_t place = 0;
    for (int64_t i = 0; i < n; i++)
        place += decoding_goes_on(f, &all[i]) && decoding_before(&all[i], c);
    return place;
}

/* The keys or values of sequences: each has `stride` bytes, and a position `bytes` of them. */
struct decoding_cache {
    void *data;
    int64_t stride, bytes;
};

/* Caches of texts with S slots, to be changed in place: the sequence of slot s becomes what that of
   slot from[s] was, in its first *position positions. */
struct decoding_caches {
    int64_t texts, slots;
    const int32_t *from;     /* (texts, S) */
    const int32_t *position; /* both in device memory */
    int64_t count;
    struct decoding_cache cache[DECODING_CACHES];
};

struct decoding_kernels {
    bool (*note)(const struct decoding_note *note);
    bool (*extend)(const struct decoding_beam *beam);
    bool (*rearrange)(const struct decoding_caches *caches);
};

extern struct kernel_rows decoding_rows;

/* ---- kv_cache.c: a cache in a decoding step that a CUDA graph repeats ---- */

/* The capacity in positions. kv_cache_reserve makes room for this many more; false when out of
   memory. The cache is not empty. */
int64_t kv_cache_room(const sb_kv_cache *cache);
bool kv_cache_reserve(sb_kv_cache *cache, int64_t positions);

/*
 * From now on sb_kv_cache_append writes one position, whose number is the element of `position`
 * (i32, on the device) when the kernel runs, and sb_attention_cached reads the whole capacity, so
 * its mask must exclude later positions. The length stays as it was: kv_cache_advance adds the
 * positions that were written. NULL ends this.
 */
void kv_cache_follow(sb_kv_cache *cache, const sb_tensor *position);
void kv_cache_advance(sb_kv_cache *cache, int64_t positions);

/* Reorders n caches in place, without the host: of each `slots` sequences, sequence i becomes what
   sequence from[i] of these was, in the first *position positions. Both are on the device. */
bool kv_caches_rearrange(int n, sb_kv_cache *const cache[], int64_t slots, const sb_tensor *from,
                         const sb_tensor *position);

#endif
