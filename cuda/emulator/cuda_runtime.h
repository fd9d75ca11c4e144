/*
 * CUDA C++ for a plain C++17 compiler: with this folder on the include path, g++ and clang++
 * compile a .cu file (-x c++), and its kernels run on the host, one fiber for each CUDA thread.
 * Parts of CUDA that this project does not use are not declared, so their use fails at compile
 * time.
 *
 *     g++ -x c++ -std=c++17 -fno-strict-aliasing -I. -Icuda/emulator kernel.cu -x none \
 *         cuda/emulator/?*.cpp
 *
 * (Kernels access arrays of numbers as arrays of vectors, which strict aliasing forbids.)
 * emulator.h lists the environment variables and the files.
 *
 * __shared__ is left undefined on purpose: no C++ variable behaves like it. Kernels write
 * SHARED(...) from cuda/launch.cuh.
 */
#ifndef SOFTBACK_EMULATOR_CUDA_RUNTIME_H
#define SOFTBACK_EMULATOR_CUDA_RUNTIME_H

#ifndef SOFTBACK_CUDA_EMULATED
#define SOFTBACK_CUDA_EMULATED 1
#endif

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
