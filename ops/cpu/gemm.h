/*
 * Matrix products of the CPU: C = A B + beta C, row-major; see ops/gemm.h.
 *
 * gemm_parallel  by several threads: the built-in product, or BLAS where there is one and the
 *                matrices are large; the bits do not depend on the number of threads
 * gemm_serial    the same on the calling thread, for use inside a parallel loop
 * gemm_builtin   never BLAS, by several threads unless it is called in a parallel loop: each row of
 *                C depends on that row of A, on B and on k alone, not on m or on where the row
 *                is, so that a sequence decodes alike in every batch
 *
 * gemm_weight    gemm_builtin for A W' with a W (n, k) that gemm_pack_weight has packed: the same
 *                bits, and nothing is left to pack
 * gemm_bf16      gemm_parallel of bf16, with products and sums in f32; of f32's rows alone
 *
 * They return true, except gemm_bf16, which returns false when out of memory.
 */
#ifndef SOFTBACK_OPS_CPU_GEMM_H
#define SOFTBACK_OPS_CPU_GEMM_H

#include "ops/cpu/real.h"
#include "ops/gemm.h"

gemm_function CPU(gemm_parallel), CPU(gemm_serial), CPU(gemm_builtin), CPU(gemm_bf16);

/* packed holds out, rounded up to whole vectors, times in numbers: gemm_weight_size. */
int64_t CPU(gemm_weight_size)(int64_t out, int64_t in);
void CPU(gemm_pack_weight)(int64_t out, int64_t in, const real *weight, real *packed);
bool CPU(gemm_weight)(int64_t m, int64_t n, int64_t k, const real *a, const real *packed, real *c);

double CPU(gemm_peak)(int64_t rounds);

#endif
