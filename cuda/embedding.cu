#include "cuda/divisor.cuh"
#include "cuda/ids.cuh"
#include "cuda/pack.cuh"
#include "cuda/row_group.cuh"
#include "ops/indexing.h"

namespace
{

template <class T> int64_t first_bad(int64_t count, int64_t V, const void *ids)
{
    return first_bad_id("embedding: ids", count, (const int32_t *)ids, 0, V);
}

/* A row has C elements in `packs` packs. */
template <class T>
__global__ void look_up(int64_t count, int64_t V, int64_t C, divisor packs,
                        RESTRICTED(const T) table, RESTRICTED(const int32_t) ids, RESTRICTED(T) y)
{
    GRID_STRIDE(n, count * packs.d)
    {
        const int64_t i = packs.quotient(n), c = (n - i * packs.d) * PACK<T>;
        const pack<T> part =
            id_ok(ids[i], V) ? pack<T>::load(table + ids[i] * C + c, C - c) : pack<T>::all((T)NAN);
        part.store(y + i * C + c, C - c);
    }
}

template <class T>
bool forward(int64_t count, int64_t V, int64_t C, const void *table, const void *ids, void *y)
{
    const int64_t packs = pack_count(C, PACK<T>);
    LAUNCH_EACH(count * packs, (look_up<T>), count, V, C, divisor(packs), (const T *)table,
                (const int32_t *)ids, (T *)y);
    return launched("embedding");
}

/*
 * y_i = table[ids_i]. An id may occur many times, and its rows of dy must be added in the same
 * order in every run. So ids are processed in slabs; each slab is sorted, and then one block for
 * each id of the slab adds all of its rows.
 */
const int64_t SLAB = 4096;
enum { ROW_PACKS = WARP, ROWS = 4 };

/* The sorted ids of a slab: position p has id number from[p]. same[p] is the number of equal ids at
   the first position of an id, and 0 at the others. */
struct sorted_ids {
    int32_t *from, *same;
};

/* Counting sort: the position of an id is the number of ids that are smaller, or equal and earlier.
   One warp counts for each id. */
__global__ void sort_ids(int count, RESTRICTED(const int32_t) ids, sorted_ids sorted)
{
    const row_group<WARP> group;
    if (group.row >= count)
        return;
    const int i = (int)group.row;
    const int32_t id = ids[i];
    int smaller = 0, earlier = 0, same = 0;
    for (int j = group.lane; j < count; j += WARP) {
        smaller += ids[j] < id;
        earlier += ids[j] == id && j < i;
        same += ids[j] == id;
    }
    smaller = group.sum(smaller);
    earlier = group.sum(earlier);
    same = group.sum(same);
    if (group.lane == 0) {
        sorted.from[smaller + earlier] = i;
        sorted.same[smaller + earlier] = earlier == 0 ? same : 0;
    }
}

/* A block has ROW_PACKS packs of dtable's row; ROWS threads for each pack share the rows of dy. */
template <class T>
__global__ void add_rows(int count, int64_t V, int64_t C, int64_t padding, divisor chunks,
                         sorted_ids sorted, RESTRICTED(const int32_t) ids, RESTRICTED(const T) dy,
                         RESTRICTED(T) dtable)
{
    typedef real_pack<T> reals;
    SHARED(reals, part, [ROWS][ROW_PACKS]);
    for (int64_t unit = blockIdx.x; unit < count * chunks.d; unit += gridDim.x) {
        const int64_t place = chunks.quotient(unit), chunk = unit - place * chunks.d;
        const int same = sorted.same[place];
        const int64_t id = ids[sorted.from[place]], c = (chunk * ROW_PACKS + threadIdx.x) * PACK<T>;
        if (same == 0 || id == padding || !id_ok((int32_t)id, V))
            continue; /* the whole block goes on */
        reals sum = reals::all(0);
        for (int n = threadIdx.y; n < same; n += ROWS) {
            const reals term = reals::load(dy + sorted.from[place + n] * C + c, C - c);
            for (int e = 0; e < PACK<T>; e++)
                sum.of[e] += term.of[e];
        }
        part[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && c < C) {
            T *const to = dtable + id * C + c;
            reals total = reals::load(to, C - c);
            for (int row = 0; row < ROWS && row < same; row++)
                for (int e = 0; e < PACK<T>; e++)
                    total.of[e] += part[row][threadIdx.x].of[e];
            total.store(to, C - c);
        }
        __syncthreads(); /* before `part` is written again */
    }
}

template <class T>
bool backward(int64_t count, int64_t V, int64_t C, int64_t padding, const void *ids_,
              const void *dy, void *dtable)
{
    if (count * C == 0)
        return true;
    const int64_t longest = count < SLAB ? count : SLAB;
    const scratch memory("embedding", 2 * (size_t)longest * sizeof(int32_t));
    if (!memory)
        return false;
    const sorted_ids sorted = {memory.as<int32_t>(), memory.as<int32_t>() + longest};
    const int64_t chunks = pack_count(C, ROW_PACKS * PACK<T>);
    for (int64_t begin = 0; begin < count; begin += SLAB) {
        const int n = (int)(count - begin < SLAB ? count - begin : SLAB);
        const int32_t *ids = (const int32_t *)ids_ + begin;
        LAUNCH(sort_ids, dim3(row_blocks<WARP>(n)), dim3(ROW_THREADS), 0, stream, n, ids, sorted);
        LAUNCH((add_rows<T>), dim3(blocks_for(n * chunks, 1)), dim3(ROW_PACKS, ROWS), 0, stream, n,
               V, C, padding, divisor(chunks), sorted, ids, (const T *)dy + begin * C, (T *)dtable);
    }
    return launched("embedding");
}

} // namespace

KERNELS_AND_BF16(embedding, first_bad<T>, forward<T>, backward<T>);
