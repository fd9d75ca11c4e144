/* Products of matrices of bf16, with f32 sums. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/gemm_builtin.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

#if REAL_IS_FLOAT
/* Whether pairs along k are contiguous and aligned to words in every row. */
static bool gemm_has_pairs(bool along_rows, const uint16_t *x, int64_t ldx)
{
    return !along_rows || (ldx % 2 == 0 && (uintptr_t)x % sizeof(uint32_t) == 0);
}

static void gemm_widen(int64_t rows, int64_t columns, const uint16_t *x, int64_t ldx, real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            y[r * columns + c] = sb_bf16_widen(x[r * ldx + c]);
}

/* The general case: multiplies f32 copies. */
static bool gemm_multiply_widened(const struct product *s, const uint16_t *a, const uint16_t *b)
{
    const int64_t rows_a = s->transpose_a ? s->k : s->m, columns_a = s->transpose_a ? s->m : s->k;
    const int64_t rows_b = s->transpose_b ? s->n : s->k, columns_b = s->transpose_b ? s->k : s->n;
    const int64_t size_a = rows_a * columns_a;
    const size_t bytes = (size_t)(size_a + rows_b * columns_b) * sizeof(real);
    real *wide = pool_take(memory_pool(), bytes);
    if (!wide)
        return false;
    gemm_widen(rows_a, columns_a, a, s->lda, wide);
    gemm_widen(rows_b, columns_b, b, s->ldb, wide + size_a);
    struct product f32 = *s;
    f32.bf16 = false;
    f32.a = wide;
    f32.lda = columns_a;
    f32.b = wide + size_a;
    f32.ldb = columns_b;
    const bool ok = CPU(gemm_multiply)(&f32, true);
    pool_give(memory_pool(), wide, bytes);
    return ok;
}

bool CPU(gemm_bf16)(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
                    int64_t ldc)
{
    struct product s = {transpose_a, transpose_b, m,          n, k,   a,           lda,
                        b,           ldb,         (real)beta, c, ldc, .bf16 = true};
    if (k % 2 != 0 || !gemm_has_pairs(!transpose_a, a, lda) || !gemm_has_pairs(transpose_b, b, ldb))
        return gemm_multiply_widened(&s, a, b);
    s.k = k / 2;
    return CPU(gemm_multiply)(&s, true);
}
#endif
