/*
 * The emulator's side of portable/tensor_core.cuh, where the layouts are described: mma.sync,
 * ldmatrix and cp.async, with the lanes' registers exactly as PTX has them.
 */
#ifndef SOFTBACK_EMULATOR_MMA_H
#define SOFTBACK_EMULATOR_MMA_H

#include "arithmetic.h"
#include "warp.h"
#include <math.h>

namespace emulator
{

void mma_m16n8k16(float *d, const uint32_t *a, const uint32_t *b, Site site);
void mma_m16n8k8(float *d, const uint32_t *a, const uint32_t *b, Site site);
/* `row`: the eight elements at this lane's address, for lanes below 8 matrices. */
void ldmatrix(uint32_t *registers, int matrices, bool transposed, const uint16_t *row, Site site);
void check_ldmatrix_row(const void *row, Site site);
void copy_start(int size, void *shared, const void *device, int bytes, Site site);
void copy_commit();
void copy_wait(int pending);

/* Each lane reads its own row here, in code that the sanitizers watch. */
static inline void ldmatrix_row(uint32_t *registers, int matrices, bool transposed,
                                const void *address, Site site)
{
    uint16_t row[8] = {};
    if (lane() < 8 * matrices) {
        check_ldmatrix_row(address, site);
        for (int column = 0; column < 8; column++)
            row[column] = static_cast<const uint16_t *>(address)[column];
    }
    ldmatrix(registers, matrices, transposed, row, site);
}

} // namespace emulator

static inline float fast_exp2(float x)
{
    const float power = emulator::inexact(exp2f(x), x, 2); /* 2^-22 is 2 to 4 ulps */
    return power < 0x1p-126f ? 0 : power;                  /* NaN stays */
}

static inline void forget_parts(uint32_t &)
{
}

static inline void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                     emulator::Site site = {})
{
    emulator::mma_m16n8k16(d, a, b, site);
}

static inline void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                    emulator::Site site = {})
{
    emulator::mma_m16n8k8(d, a, b, site);
}

static inline void ldmatrix_x4(uint32_t (&r)[4], const void *row, emulator::Site site = {})
{
    emulator::ldmatrix_row(r, 4, false, row, site);
}
static inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row, emulator::Site site = {})
{
    emulator::ldmatrix_row(r, 4, true, row, site);
}
static inline void ldmatrix_x2(uint32_t (&r)[2], const void *row, emulator::Site site = {})
{
    emulator::ldmatrix_row(r, 2, false, row, site);
}
static inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void *row, emulator::Site site = {})
{
    emulator::ldmatrix_row(r, 2, true, row, site);
}

static inline void cp_async16(void *shared, const void *device, int bytes = 16,
                              emulator::Site site = {})
{
    emulator::copy_start(16, shared, device, bytes, site);
}
template <int Bytes>
static inline void cp_async_if(bool wanted, void *shared, const void *device,
                               emulator::Site site = {})
{
    emulator::copy_start(Bytes, shared, wanted ? device : nullptr, wanted ? Bytes : 0, site);
}
static inline void cp_async_commit()
{
    emulator::copy_commit();
}
template <int Pending> static inline void cp_async_wait()
{
    emulator::copy_wait(Pending);
}

#endif
