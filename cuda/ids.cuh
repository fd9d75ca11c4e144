/*
 * Checks ids in a kernel, since only kernels can read them. The host does not wait for the answer:
 * first_bad_id returns -1, "none", and the next download reports a bad id as "<what>[17] is not in
 * 0..4". Until then kernels must ignore it (id_ok).
 */
#ifndef SOFTBACK_CUDA_IDS_CUH
#define SOFTBACK_CUDA_IDS_CUH

#include "cuda/device.cuh"

int64_t first_bad_id(const char *what, int64_t count, const int32_t *ids, int64_t least,
                     int64_t limit);

/* Whether an id is in 0..limit - 1. */
__device__ inline bool id_ok(int32_t id, int64_t limit)
{
    return 0 <= id && id < limit;
}

/*
 * The same for other checks in kernels. The kernel passes the index of the error to report_bad, and
 * the next download fails with `sentence`, in which %lld stands for the index.
 */
struct bad_question {
    unsigned long long number, *found;
};
bad_question ask_kernel(const char *sentence);

__device__ inline void report_bad(const bad_question &q, int64_t place)
{
    if (q.found)
        atomicMin(q.found, q.number << 48 | (unsigned long long)place);
}

/* For the device: ids_collect queues the download of findings; ids_settle, after the stream is
   synchronised, reports and clears them. */
void ids_collect();
void ids_ask_again(); /* called before a graph launch, which may ask */
bool ids_settle();

#endif
