/*
 * What dropout drops of a row, told to the threads that share the row as they go over it. Each
 * thread of a warp draws the bits of eight elements and hands them to the threads that have these.
 */
#ifndef SOFTBACK_CUDA_DROPOUT_ROW_CUH
#define SOFTBACK_CUDA_DROPOUT_ROW_CUH

#include "cuda/dropout_bits.cuh"
#include "cuda/row_group.cuh"

template <int GROUP> class dropout_row
{
  public:
    /* For rows of C elements, each of which lies together in the whole. */
    __device__ dropout_row(const dropout &call, const row_group<GROUP> &group, int64_t C)
        : call(call), lane(group.lane % WARP), step(STEPS),
          first(row_begin(call, group.row, C) + group.lane / WARP * WARP), drawn(0)
    {
    }

    /* Whether this thread's next element is dropped: its lane's, then every GROUP-th. All threads
       of a warp must call it, also those whose next element lies past the row's end. */
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
    /* A warp's elements of one step lie side by side, in up to five groups of eight. */
    enum { GROUPS = WARP / DROPOUT_GROUP + 1, STEPS = WARP / GROUPS };

    __device__ static int64_t row_begin(const dropout &call, int64_t row, int64_t C)
    {
        int64_t n = C;
        return call.threshold == 0 ? 0 : place_of_element(&call.place, row * C, &n);
    }

    /* A bit for each element of group lane % GROUPS of the step lane / GROUPS from now: dropped? */
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
