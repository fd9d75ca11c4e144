/*
 * Dropout for threads that share a row. Each thread of a warp draws the bits of eight elements and
 * passes them to the threads that process these elements.
 */
#ifndef SOFTBACK_CUDA_DROPOUT_ROW_CUH
#define SOFTBACK_CUDA_DROPOUT_ROW_CUH

#include "cuda/dropout_bits.cuh"
#include "cuda/row_group.cuh"

template <int GROUP> class dropout_row
{
  public:
    /* For rows of C elements that are contiguous in the unsharded tensor. */
    __device__ dropout_row(const dropout &call, const row_group<GROUP> &group, int64_t C)
        : call(call), lane(group.lane % WARP), step(STEPS),
          first(row_begin(call, group.row, C) + group.lane / WARP * WARP), drawn(0)
    {
    }

    /* Whether this thread's next element is dropped: element `lane`, then every GROUP-th. All
       threads of a warp must call it, even when their next element is past the end of the row. */
    __device__ bool next_is_dropped()
    {
        if (call.threshold == 0)
            return false;
        if (step == STEPS) {
            drawn = draw();
            step = 0;
        }
        const int64_t element = first + lane;
        const int64_t group = element / DROPOUT_GROUP - first / DROPOUT_GROUP;
        const uint32_t bits = __shfl_sync(0xffffffffu, drawn, step * GROUPS + (int)group);
        first += GROUP;
        step++;
        return bits >> element % DROPOUT_GROUP & 1;
    }

  private:
    /* The elements of a warp in one step are adjacent, in up to five groups of eight. */
    enum { GROUPS = WARP / DROPOUT_GROUP + 1, STEPS = WARP / GROUPS };

    __device__ static int64_t row_begin(const dropout &call, int64_t row, int64_t C)
    {
        int64_t n = C;
        return call.threshold == 0 ? 0 : place_of_element(&call.place, row * C, &n);
    }

    /* A bit for each element of group lane % GROUPS in the step lane / GROUPS from now: 1 if
       dropped. */
    __device__ uint32_t draw() const
    {
        const int64_t begin = first + lane / GROUPS * GROUP;
        const dropout_group bits(call, (uint64_t)(begin / DROPOUT_GROUP + lane % GROUPS));
        uint32_t dropped = 0;
        for (int e = 0; e < DROPOUT_GROUP; e++)
            dropped |= (bits.of(e) < call.threshold ? 1u : 0u) << e;
        return dropped;
    }

    const dropout &call;
    const int lane; /* of this thread in its warp */
    int step;       /* of those that are drawn */
    int64_t first;  /* the element of the warp's first thread */
    uint32_t drawn; /* by this thread */
};

#endif
