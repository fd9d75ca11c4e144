/*
 * The syntax in which nvcc and a plain C++ compiler differ. Every kernel uses these macros:
 *
 *     LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...);
 *     SHARED(float, tile, [32][33]);            one variable of a block, any number of dimensions
 *     SHARED_ALIGNED(16, float, tile, [32][36]);   the same, for vector loads and ldmatrix
 *     DYNAMIC_SHARED(float, buffer);            the launch's shared_bytes, 16-byte aligned
 *     RESTRICTED(const float) x                 a parameter: const float *__restrict__ x
 *
 * A kernel whose template arguments contain a comma stands in parentheses:
 * LAUNCH((attention<64, 32>), ...). As with <<<>>>, errors of a launch come from
 * cudaGetLastError().
 */
#ifndef SOFTBACK_EMULATOR_LAUNCH_CUH
#define SOFTBACK_EMULATOR_LAUNCH_CUH

#include <cuda_runtime.h>

#ifdef SOFTBACK_EMULATOR

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    emulator::launch(#kernel, emulator::Site(), kernel, grid, block, shared_bytes, stream,         \
                     ##__VA_ARGS__)
/* A static variable would be shared by all blocks, zeroed, and without a red zone. So each
   declaration stores only the offset of the variable in the block's shared memory; the first thread
   of a block to reach it allocates the variable. */
#define SHARED_ALIGNED(alignment, type, name, ...)                                                 \
    static emulator::SharedPlace name##_place;                                                     \
    auto &name = emulator::shared_variable<type __VA_ARGS__>(name##_place, alignment)
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emulator::shared_memory)
#define RESTRICTED(...) emulator::Restricted<__VA_ARGS__>

#else

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define SHARED_ALIGNED(alignment, type, name, ...)                                                 \
    __shared__ __align__(alignment)                                                                \
    type name __VA_ARGS__
#define DYNAMIC_SHARED(type, name)                                                                 \
    extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];                         \
    type *name = reinterpret_cast<type *>(dynamic_shared_memory)
#define RESTRICTED(...) __VA_ARGS__ *__restrict__

#endif

#define SHARED(type, name, ...) SHARED_ALIGNED(alignof(type), type, name, ##__VA_ARGS__)

#endif
