/*
 * Tensor-core instructions: a warp's registers together hold small matrices. The layouts are those
 * of the PTX ISA (portable/tensor_core.cuh).
 */
#include "mma.h"
#include "emulator.h"

namespace emulator
{

namespace
{

struct Product {
    float *d;
    const uint32_t *a, *b;
};

struct Rows {
    uint32_t *registers;
    const uint16_t *row;
    int matrices;
    bool transposed;
};

} // namespace

static float bf16_of(uint32_t pair, int which)
{
    return __uint_as_float(which ? pair & 0xffff0000u : pair << 16);
}

static void check_lanes(Thread *const lanes[32], const char *what)
{
    for (int i = 0; i < 32; i++)
        if (!lanes[i])
            kernel_error("%s: lane %d has ended; the instruction needs all 32", what, i);
}

/* The operands of a product, with up to 16 terms for each sum. */
struct Matrices {
    float a[16][16], b[16][8];
};

static void gather_bf16(Thread *const lanes[32], Matrices &m)
{
    for (int i = 0; i < 32; i++) {
        const Product &own = *static_cast<const Product *>(lanes[i]->operands);
        int group = i / 4, part = i % 4;
        for (int which = 0; which < 2; which++) {
            for (int j = 0; j < 4; j++)
                m.a[group + j % 2 * 8][part * 2 + which + j / 2 * 8] = bf16_of(own.a[j], which);
            for (int j = 0; j < 2; j++)
                m.b[part * 2 + which + j * 8][group] = bf16_of(own.b[j], which);
        }
    }
}

/* What a device does with 13 further bits is not documented. */
static float tf32_of(uint32_t bits)
{
    const float x = __uint_as_float(bits);
    if ((bits & 0x1fff) != 0)
        kernel_error("mma.sync: %.9g is not a tf32, whose last 13 bits are 0",
                     static_cast<double>(x));
    return x;
}

static void gather_tf32(Thread *const lanes[32], Matrices &m)
{
    for (int i = 0; i < 32; i++) {
        const Product &own = *static_cast<const Product *>(lanes[i]->operands);
        int group = i / 4, part = i % 4;
        for (int j = 0; j < 4; j++)
            m.a[group + j % 2 * 8][part + j / 2 * 4] = tf32_of(own.a[j]);
        for (int j = 0; j < 2; j++)
            m.b[part + j * 4][group] = tf32_of(own.b[j]);
    }
}

/* d += a b, where each sum has `terms` terms. */
static void multiply(Thread *const lanes[32], const Matrices &m, int terms)
{
    float sum[16][8] = {};
    if (settings().rounding) {
        for (int i = 0; i < 32; i++)
            for (int j = 0; j < 4; j++) {
                float &d = static_cast<const Product *>(lanes[i]->operands)->d[j];
                d = tensor_core_sum(d, m.a[i / 4 + j / 2 * 8], 1, &m.b[0][i % 4 * 2 + j % 2], 8,
                                    terms);
            }
        return;
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < terms; k++)
            for (int column = 0; column < 8; column++)
                sum[row][column] += m.a[row][k] * m.b[k][column];
    for (int i = 0; i < 32; i++) {
        const Product &own = *static_cast<const Product *>(lanes[i]->operands);
        for (int j = 0; j < 4; j++)
            own.d[j] += sum[i / 4 + j / 2 * 8][i % 4 * 2 + j % 2];
    }
}

static void multiply_bf16(Thread *const lanes[32])
{
    check_lanes(lanes, "mma.sync");
    Matrices m;
    gather_bf16(lanes, m);
    multiply(lanes, m, 16);
}

static void multiply_tf32(Thread *const lanes[32])
{
    check_lanes(lanes, "mma.sync");
    Matrices m;
    gather_tf32(lanes, m);
    multiply(lanes, m, 8);
}

void mma_m16n8k16(float *d, const uint32_t *a, const uint32_t *b, Site site)
{
    Product product = {d, a, b};
    running_thread->operands = &product;
    warp_meet("mma.sync", 0xffffffffu, site, multiply_bf16);
}

void mma_m16n8k8(float *d, const uint32_t *a, const uint32_t *b, Site site)
{
    Product product = {d, a, b};
    running_thread->operands = &product;
    warp_meet("mma.sync tf32", 0xffffffffu, site, multiply_tf32);
}

/* Lane 4 row + part receives elements 2 part and 2 part + 1 of that row, or of that column. */
static void distribute(Thread *const lanes[32])
{
    check_lanes(lanes, "ldmatrix");
    for (int i = 0; i < 32; i++) {
        const Rows &own = *static_cast<const Rows *>(lanes[i]->operands);
        for (int matrix = 0; matrix < own.matrices; matrix++) {
            uint32_t pair = 0;
            for (int which = 0; which < 2; which++) {
                int across = i / 4, along = i % 4 * 2 + which;
                int row = own.transposed ? along : across;
                int column = own.transposed ? across : along;
                const void *giver = lanes[matrix * 8 + row]->operands;
                uint32_t element = static_cast<const Rows *>(giver)->row[column];
                pair |= element << which * 16;
            }
            own.registers[matrix] = pair;
        }
    }
}

void ldmatrix(uint32_t *registers, int matrices, bool transposed, const uint16_t *row, Site site)
{
    Rows rows = {registers, row, matrices, transposed};
    running_thread->operands = &rows;
    warp_meet("ldmatrix", 0xffffffffu, site, distribute);
}

void check_ldmatrix_row(const void *row, Site site)
{
    if (!is_shared(row, 16))
        kernel_error("ldmatrix at %s:%d: the row is not in shared memory", site.file, site.line);
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
        kernel_error("ldmatrix at %s:%d: the row is not 16-byte aligned", site.file, site.line);
}

} // namespace emulator
