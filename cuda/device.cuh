/*
 * Included first by every file of cuda/: the stream for all work, error messages of launches,
 * scratch memory, and the definition of a file's row of kernels.
 *
 * cuda/<op>.cu is the twin of ops/cpu/<op>.c: the same functions in the same order, as templates
 * over the element type T, with the same formulas. (attention.cu is that of tiled attention too.) A
 * function queues its kernels and returns; the next download reports errors while they run.
 */
#ifndef SOFTBACK_CUDA_DEVICE_CUH
#define SOFTBACK_CUDA_DEVICE_CUH

#include "cuda/real.cuh"
#include "tensor/plugin.h"
#include <launch.cuh>

extern const struct plugin_host *host;
extern cudaStream_t stream;

/* True if a CUDA call succeeded; otherwise fails with "<who>: <CUDA's message>". */
bool cuda_ok(cudaError_t error, const char *who);

/* CUDA graphs (graph.cu): work that is captured once and launched repeatedly (tensor/plugin.h).
   Whether one is being captured; the preparation; the table for the plug-in; and a copy of data
   that is uploaded during capture, which the graph uploads at each launch, or NULL. */
extern bool capturing;
bool graph_ready();
struct plugin_graphs graph_functions();
const void *graph_keep(const void *from, size_t bytes);

/* Like cuda_ok, for the launches since the last call. */
bool launched(const char *operation);

/* Scratch memory for the kernels that a function queues; freed when the function returns. */
class scratch
{
  public:
    scratch(const char *operation, size_t bytes) : bytes(bytes)
    {
        const uint64_t failures = host->failures();
        block = host->take(bytes);
        if (!block && host->failures() == failures)
            host->fail("%s: out of memory for %zu bytes of scratch on cuda", operation, bytes);
    }
    ~scratch()
    {
        host->give(block, bytes);
    }
    scratch(const scratch &) = delete;
    explicit operator bool() const
    {
        return block != nullptr;
    }
    template <class T> T *as() const
    {
        return static_cast<T *>(block);
    }

  private:
    size_t bytes;
    void *block;
};

/* Defines the file's rows: KERNELS(softmax, forward<T>, backward<T>) for float and double,
   KERNELS_AND_BF16 for bf16 too. Without a bf16 row, an operation computes in f32 (ops/call.h). The
   order is that of sb_dtype. */
#define KERNELS_OF(op, bf16_kernels, ...)                                                          \
    template <class T> const struct op##_kernels op##_kernels_of = {__VA_ARGS__};                  \
    extern const struct plugin_row op##_cuda_row;                                                  \
    const struct plugin_row op##_cuda_row = {                                                      \
        #op, {&op##_kernels_of<float>, &op##_kernels_of<double>, bf16_kernels}}
#define KERNELS(op, ...) KERNELS_OF(op, nullptr, __VA_ARGS__)
#define KERNELS_AND_BF16(op, ...) KERNELS_OF(op, &op##_kernels_of<bf16>, __VA_ARGS__)

/* The most blocks of a grid-stride loop. The emulator gets few, so that these loops run more than
   once at the sizes of tests. */
#ifdef SOFTBACK_EMULATOR
enum { MOST_BLOCKS = 5 };
#else
enum { MOST_BLOCKS = 65535 };
#endif

/* The number of blocks of `size` threads for n elements; kernels use grid-stride loops. */
inline unsigned blocks_for(int64_t n, int size)
{
    const int64_t blocks = (n + size - 1) / size, most = MOST_BLOCKS;
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

enum { THREADS = 256 }; /* of a block whose threads are independent */

/* A grid-stride loop: for each i < n, distributed over the threads of the grid. */
#define GRID_STRIDE(i, n)                                                                          \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n);                      \
         i += (int64_t)gridDim.x * blockDim.x)

/* Queues a kernel with such a loop over n elements, if there are any. */
#define LAUNCH_EACH(n, kernel, ...)                                                                \
    do {                                                                                           \
        if ((n) > 0)                                                                               \
            LAUNCH(kernel, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, stream, __VA_ARGS__);   \
    } while (0)

#endif
