/* Recomputes rows of the weights of tiled attention, and of their gradient. */
#include "ops/cpu/attention_tiles.h"
#include "tensor/memory.h"

/* The requested rows, each of length Lk. */
struct request {
    const struct attention *a;
    const struct attention_tiled *f;          /* for the weights */
    const struct attention_tiled_backward *g; /* or for their gradient */
    int64_t first, count;
    real *rows;
};

/* a = exp(scale q k' + bias - m) / l */
static void rows_weights_tile(const struct request *r, const struct attention_tile *t,
                              const real *keys, real *x)
{
    const struct attention *a = r->a;
    struct rows q = rows_of(r->f->q, a->q, t->b, t->h);
    const real *stats = (const real *)r->f->stats + 2 * ((t->b * a->H + t->h) * a->Lq + t->i);
    tile_products(t, a->D, q.at + t->i * q.step, q.step, keys, x);
    for (int64_t i = 0; i < t->rows; i++) {
        tile_scores(t, i, r->f->bias, x + i * PITCH);
        tile_weights(t, i, score_factor(a, r->f->bias), stats + 2 * i, x + i * PITCH);
    }
}

/* da = dropout(dy v') */
static void rows_gradient_tile(const struct request *r, const struct attention_tile *t,
                               const real *values, real *x)
{
    const struct attention *a = r->a;
    struct rows dy = rows_of(r->g->dy, a->y, t->b, t->h);
    tile_products(t, a->Dv, dy.at + t->i * dy.step, dy.step, values, x);
    for (int64_t i = 0; i < t->rows; i++) {
        if (a->dropout.threshold > 0) {
            struct dropout_bits bits = tile_bits(t, i);
            tile_drop(t, &bits, x + i * PITCH, x + i * PITCH);
        }
        fill_blocked(t, i, 0, x + i * PITCH);
    }
}

/* All tiles of a block of keys of one head. `work` has room for the packed keys and a tile. */
static void rows_request_keys(const struct request *r, int64_t b, int64_t h, int64_t j, real *work)
{
    const struct attention *a = r->a;
    int64_t group = h / (a->H / a->G), depth = r->f ? a->D : a->Dv, keys = smaller(a->Lk - j, KEYS);
    struct rows k = r->f ? rows_of(r->f->k, a->k, b, group) : rows_of(r->g->v, a->v, b, group);
    real *x = work + KEYS * depth;
    CPU(gemm_pack_all)(depth, keys, k.at + j * k.step, k.step, work);
    for (int64_t i = r->first; i < r->first + r->count; i += QUERIES) {
        struct attention_tile t;
        if (!tile_at(a, b, h, i, j, &t))
            continue;
        t.rows = smaller(t.rows, r->first + r->count - i);
        if (r->f)
            rows_weights_tile(r, &t, work, x);
        else
            rows_gradient_tile(r, &t, work, x);
        for (int64_t n = 0; n < t.rows; n++)
            memcpy(r->rows + ((b * a->H + h) * r->count + i - r->first + n) * a->Lk + j + t.from,
                   x + n * PITCH + t.from, (size_t)(t.to - t.from) * sizeof *x);
    }
}

bool CPU(attention_rows)(const struct attention *a, const struct attention_tiled *f,
                         const struct attention_tiled_backward *g, int64_t first, int64_t count,
                         void *rows)
{
    bool ok = true;
    const struct request request = {a, f, g, first, count, rows};
    size_t bytes = (size_t)(KEYS * larger(a->D, a->Dv) + QUERIES * PITCH) * sizeof(real);
    memset(rows, 0, (size_t)(a->B * a->H * count * a->Lk) * sizeof(real));
#pragma omp parallel reduction(&& : ok) if (a->B * a->H * count * a->Lk * a->D > PARALLEL_WORK)
    {
        real *work = pool_take(memory_pool(), bytes);
        ok = work != NULL;
#pragma omp for schedule(dynamic)
        for (int64_t head = 0; head < a->B * a->H; head++)
            for (int64_t j = 0; ok && j < a->Lk; j += KEYS)
                rows_request_keys(&request, head / a->H, head % a->H, j, work);
        pool_give(memory_pool(), work, bytes);
    }
    return ok;
}
