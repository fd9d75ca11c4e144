/*
 * What every file of cuda/ begins with: the stream that all work is queued on, how a launch's
 * failure becomes a message, scratch memory, and how a file gives its row of kernels.
 *
 * cuda/<op>.cu is the twin of ops/cpu/<op>.c: the same functions in the same order, as templates
 * over the element type T, and the formula of each reads the same. A function queues its kernels
 * and returns; what goes wrong while they run is reported by the next download.
 */
#ifndef SOFTBACK_CUDA_DEVICE_CUH
#define SOFTBACK_CUDA_DEVICE_CUH

#include "cuda/launch.cuh"
#include "cuda/real.cuh"
#include "tensor/plugin.h"

extern const struct plugin_host *host;
extern cudaStream_t stream;

/* Whether a call of CUDA's went well; otherwise fails with "<who>: <what CUDA says>". */
bool cuda_ok(cudaError_t error, const char *who);

/* Whether a graph is being noted (graph.cu). */
extern bool capturing;

/* The same for the launches since the last call. */
bool launched(const char *operation);

/* Scratch memory for the kernels that a function queues: given back when it returns. */
class scratch
{
  public:
    scratch(const char *operation, size_t bytes) : bytes(bytes), block(host->take(bytes))
    {
        if (!block)
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

/* The file's row: KERNELS(softmax, forward<T>, backward<T>); for float and double, and where it is
   KERNELS_AND_BF16, for bf16 too. What an operation has no row for, it computes in f32
   (ops/call.h). The order is that of sb_dtype. */
#define KERNELS_OF(op, bf16_kernels, ...)                                                          \
    template <class T> const struct op##_kernels op##_kernels_of = {__VA_ARGS__};                  \
    extern const struct plugin_row op##_cuda_row;                                                  \
    const struct plugin_row op##_cuda_row = {                                                      \
        #op, {&op##_kernels_of<float>, &op##_kernels_of<double>, bf16_kernels}}
#define KERNELS(op, ...) KERNELS_OF(op, nullptr, __VA_ARGS__)
#define KERNELS_AND_BF16(op, ...) KERNELS_OF(op, &op##_kernels_of<bf16>, __VA_ARGS__)

/* Blocks for n threads' work in blocks of `size`; kernels go on in strides of the whole grid. */
inline unsigned blocks_for(int64_t n, int size)
{
    const int64_t MOST = 65535;
    int64_t blocks = (n + size - 1) / size;
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks < MOST ? blocks : MOST);
}

enum { THREADS = 256 }; /* of a block whose threads have nothing to do with each other */

/* for (int64_t i : every one of n elements), shared out among the grid's threads */
#define GRID_STRIDE(i, n)                                                                          \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n);                      \
         i += (int64_t)gridDim.x * blockDim.x)

#endif
