/*
 * Tensor cores, asynchronous copies and a fast power of 2. Each wrapper is one instruction of PTX;
 * include/mma.h has the same functions in C++.
 *
 * Fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), lane = 4 group + part:
 *
 *     a[0..3]  two bf16 each: rows group, group + 8, group, group + 8; columns 2 part + {0, 1}, and
 *              8 columns further in a[2] and a[3]
 *     b[0..1]  two bf16 each: rows 2 part + {0, 1}, and 8 rows further in b[1]; column group
 *     d[0..3]  rows group, group, group + 8, group + 8; columns 2 part + {0, 1} of each
 *
 * A fragment of mma.m16n8k8 has one float of tf32 where that of m16n8k16 has two bf16:
 *
 *     a[0..3]  rows group, group + 8, group, group + 8; column part, and part + 4 in a[2] and a[3]
 *     b[0..1]  rows part and part + 4; column group
 *
 * tf32 has the sign, the exponent and 10 bits of the fraction of a float; the other 13 bits are 0.
 *
 * ldmatrix loads these from rows of eight bf16 in shared memory, each 16-byte aligned: lane l gives
 * the address of row l % 8 of matrix l / 8, and register j receives matrix j. Four floats are such
 * a row too.
 */
#ifndef SOFTBACK_EMULATOR_TENSOR_CORE_CUH
#define SOFTBACK_EMULATOR_TENSOR_CORE_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#ifdef SOFTBACK_EMULATOR
#include "mma.h"
#else

/* 2^x with a relative error of 2^-22; subnormal results become 0. exp2f needs three times as many
   instructions. */
static __device__ __forceinline__ float fast_exp2(float x)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

/* No instruction: what the compiler computed from the word before, it forgets, and computes it
   again from the word instead of holding two floats in registers. */
static __device__ __forceinline__ void forget_parts(uint32_t &word)
{
    asm volatile("" : "+r"(word));
}

/* d += a b, all 32 lanes together. */
static __device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4],
                                                         const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d += a b, all 32 lanes together. */
static __device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4],
                                                        const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

static __device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Lanes 0 to 15 give the rows; what the others pass is not read. */
static __device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}

static __device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Starts a copy of 16 bytes from device memory to shared memory, both 16-byte aligned. Of the
   source only the first `bytes` (0 to 16) are read; the rest of the destination becomes 0. */
static __device__ __forceinline__ void cp_async16(void *shared, const void *device, int bytes = 16)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(device), "r"(bytes)
                 : "memory");
}

/* The same for all of 4, 8 or 16 bytes, aligned to as many, or for none: then the source is not
   read, and may be any address. */
template <int Bytes>
static __device__ __forceinline__ void cp_async_if(bool wanted, void *shared, const void *device)
{
    if (Bytes == 16)
        asm volatile("{\n\t.reg .pred unwanted;\n\t"
                     "setp.eq.u32 unwanted, %2, 0;\n\t"
                     "cp.async.cg.shared.global [%0], [%1], 16, unwanted;\n\t}" ::"r"(
                         shared_address(shared)),
                     "l"(device), "r"((uint32_t)wanted)
                     : "memory");
    else
        asm volatile("{\n\t.reg .pred unwanted;\n\t"
                     "setp.eq.u32 unwanted, %2, 0;\n\t"
                     "cp.async.ca.shared.global [%0], [%1], %3, unwanted;\n\t}" ::"r"(
                         shared_address(shared)),
                     "l"(device), "r"((uint32_t)wanted), "n"(Bytes)
                     : "memory");
}

/* Closes the group of the copies that this thread has started since the last commit. */
static __device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most the last `Pending` groups of this thread are pending. Other threads see the
   copies after a barrier. */
template <int Pending> static __device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

#endif
#endif
