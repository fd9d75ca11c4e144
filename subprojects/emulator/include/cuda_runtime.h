/*
 * CUDA C++ for a plain C++17 compiler: with this folder on the include path, g++ and clang++
 * compile a .cu file (-x c++), and its kernels run on the host, one fiber for each CUDA thread
 * (README.md has the command). Parts of CUDA that are not emulated are not declared, so their use
 * fails at compile time.
 *
 * __shared__ is left undefined on purpose: no C++ variable behaves like it. Kernels write
 * SHARED(...) from portable/launch.cuh.
 */
#ifndef SOFTBACK_EMULATOR_CUDA_RUNTIME_H
#define SOFTBACK_EMULATOR_CUDA_RUNTIME_H

#define SOFTBACK_EMULATOR 1 /* for code that differs here */

#define __global__ __attribute__((unused))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

#include <initializer_list>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vector_types.h"

#include "cuda_runtime_api.h"

#include "kernel.h"

#include "arithmetic.h"
#include "atomic.h"
#include "warp.h"

#endif
