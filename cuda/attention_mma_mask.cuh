/* Mask and dropout of tiles on tensor cores: which tiles are visited, and bits for pairs. */
#ifndef SOFTBACK_CUDA_ATTENTION_MMA_MASK_CUH
#define SOFTBACK_CUDA_ATTENTION_MMA_MASK_CUH

#include "cuda/attention_mma.cuh"

enum { MOST_POSITIONS = 1 << 30 };

/* What the mask keeps of a tile. Only SOME needs a test for each pair. */
enum tile_kind { NOTHING, SOME, WHOLE };

/* Testing block by block is worthwhile only for large blocks. */
__device__ inline tile_kind blocks_kind(const attention &a, const tile_place &t, int64_t last_query,
                                        int64_t last_key)
{
    enum { LEAST = 16 };
    const int64_t queries[2] = {t.i, last_query}, keys[2] = {t.j, last_key};
    tile_kind kind = WHOLE;
    for (int n = 0; n < a.mask.count; n++) {
        const mask_term &term = a.mask.term[n];
        if (term.kind == MASK_DENSE || (term.kind == MASK_BLOCKS && term.size < LEAST))
            kind = SOME;
        if (term.kind != MASK_BLOCKS || term.size < LEAST)
            continue;
        bool any, every;
        mask_blocks_kept(&term, t.b, t.h, queries, keys, &any, &every);
        if (!any)
            return NOTHING;
        kind = every ? kind : SOME;
    }
    return kind;
}

/* The keys that a mask keeps before dense terms: those of query i are from(i) .. to(i) - 1. Tiled
   kernels have fewer than 2^30 positions, and read this for each tile. */
struct key_band {
    int before, after, end;
    int whole, whole_end; /* tiles that begin in this range of what a block visits are WHOLE */
    bool biased;

    __device__ void set(const attention &a, int64_t b, const void *bias)
    {
        biased = bias != nullptr;
        const int64_t most = MOST_POSITIONS;
        int64_t backward = most, forward = most, keys = a.Lk;
        for (int n = 0; n < a.mask.count; n++) {
            const mask_term &term = a.mask.term[n];
            if (term.kind == MASK_BAND) {
                backward = smaller(backward, term.before);
                forward = smaller(forward, term.after);
            }
            if (term.kind == MASK_LENGTHS)
                keys = smaller(keys, term.lengths[b] - term.key);
        }
        before = (int)(backward < -most ? -most : backward);
        after = (int)(forward < -most ? -most : forward);
        end = (int)(keys < 0 ? 0 : keys);
        whole = whole_end = 0;
    }
    /* For a block of queries from i on, which visits keys. */
    template <int QUERIES, int KEYS> __device__ void set_whole_keys(const attention &a, int i)
    {
        if (a.mask.dense || (biased && i + QUERIES > a.Lq))
            return;
        whole = from((int)smaller(i + QUERIES, a.Lq) - 1);
        whole_end = to(i) - KEYS + 1;
    }
    /* For a block of keys from j on, which visits queries. */
    template <int QUERIES, int KEYS> __device__ void set_whole_queries(const attention &a, int j)
    {
        const int last = (int)smaller(j + KEYS, a.Lk) - 1;
        if (a.mask.dense || (biased && j + KEYS > a.Lk) || end <= last)
            return;
        whole = first_query(last);
        whole_end = queries_end(j, (int)a.Lq) - QUERIES + 1;
    }
    __device__ bool begins_whole(int first) const
    {
        return whole <= first && first < whole_end;
    }
    __device__ int from(int i) const
    {
        return i > before ? i - before : 0;
    }
    __device__ int to(int i) const
    {
        return i + after + 1 < end ? i + after + 1 : end;
    }
    /* The first query that keeps key j, and the one after the last. */
    __device__ int first_query(int j) const
    {
        return j > after ? j - after : 0;
    }
    __device__ int queries_end(int j, int Lq) const
    {
        return j + before + 1 < Lq ? j + before + 1 : Lq;
    }
};

/* What a block has results for: it does not store those beyond Lq or Lk. */
enum tile_owner { OWNS_PAIRS, OWNS_QUERIES, OWNS_KEYS };

/* All threads of the block get the same result. A tile that extends beyond Lq or Lk is not whole,
   unless the block owns these rows and no bias is read there. */
template <tile_owner OWNER, int QUERIES, int KEYS>
__device__ tile_kind kind_of(const attention &a, const key_band &band, const tile_place &t)
{
    const int i = (int)t.i, j = (int)t.j, Lq = (int)a.Lq, Lk = (int)a.Lk;
    const int last = (i + QUERIES < Lq ? i + QUERIES : Lq) - 1;
    const int last_key = (j + KEYS < Lk ? j + KEYS : Lk) - 1;
    const int from = band.from(i), to = band.to(last);
    if (to <= from || last_key < from || to <= j)
        return NOTHING;
    /* from the last query's first key to the first query's last key: the keys of all queries */
    const bool whole = ((OWNER == OWNS_QUERIES && !band.biased) || i + QUERIES <= Lq) &&
                       ((OWNER == OWNS_KEYS && !band.biased) || j + KEYS <= Lk) &&
                       band.from(last) <= j && last_key < band.to(i);
    const tile_kind kind = a.mask.dense ? blocks_kind(a, t, last, last_key) : WHOLE;
    return kind == WHOLE && !whole ? SOME : kind;
}

/* Bits of a tile's pairs: key 32 w + e of a query is bit e of word w. */
template <int QUERIES, int KEYS> struct pair_bits {
    enum { WORDS = KEYS / 32 };
    uint32_t keep[QUERIES][WORDS], stay[QUERIES][WORDS];
};

/* A word with ones in the bits from .. to - 1, clipped to the word. */
__device__ inline uint32_t ones(int from, int to)
{
    const uint32_t below = to >= 32 ? ~0u : to <= 0 ? 0 : (1u << to) - 1;
    return from <= 0 ? below : from >= 32 ? 0 : below & ~0u << from;
}

/* The kept keys among 32. */
__device__ inline uint32_t keep_word(const attention &a, const key_band &band, const tile_place &t,
                                     int i, int j)
{
    if (i >= a.Lq)
        return 0;
    uint32_t word = ones(band.from(i) - j, band.to(i) - j);
    for (int e = 0; a.mask.dense && e < 32; e++)
        if ((word >> e & 1) && !mask_keeps(a.mask, t.b, t.h, i, j + e))
            word &= ~(1u << e);
    return word;
}

/* The pairs among 32 that dropout keeps. The place must be flat: other places need more registers
   than these kernels have. */
__device__ inline uint32_t stay_word(const attention &a, const tile_place &t, int64_t i, int64_t j)
{
    const place &whole = a.dropout.place;
    const int64_t row = (t.b * a.H + t.h) * a.Lq + i, groups = (a.Lk + 7) / 8;
    const int64_t first = (uint64_t)whole.offset / DROPOUT_GROUP + row * groups + j / 8;
    uint32_t word = 0;
    for (int g = 0; g < 4; g++) {
        const dropout_group bits(a.dropout, first + g);
        for (int e = 0; e < 8; e++)
            word |= (uint32_t)(bits.of(e) >= a.dropout.threshold) << (8 * g + e);
    }
    return word;
}

/* Sets the bits that a tile's threads read: of the mask if the tile is not whole, and of dropout if
   it drops any. */
template <int THREADS, int QUERIES, int KEYS>
__device__ void set_bits(pair_bits<QUERIES, KEYS> &bits, const attention &a, const key_band &band,
                         const tile_place &t, tile_kind kind, bool drops)
{
    enum { WORDS = KEYS / 32 };
    if (kind != SOME && !drops)
        return;
    for (int n = threadIdx.x; n < QUERIES * WORDS; n += THREADS) {
        const int r = n / WORDS, w = n % WORDS;
        if (kind == SOME)
            bits.keep[r][w] = keep_word(a, band, t, (int)t.i + r, (int)t.j + 32 * w);
        if (drops)
            bits.stay[r][w] = stay_word(a, t, t.i + r, t.j + 32 * w);
    }
}

/* The bits of the keys of one of a lane's queries, shifted so that column 8 n + 2 part + e is bit 8
   n + e. */
template <int WORDS> struct row_bits {
    uint32_t word[WORDS];

    __device__ bool has(int n, int e) const
    {
        return word[n / 4] >> (8 * (n % 4) + e % 2) & 1;
    }
};

template <int WORDS> __device__ row_bits<WORDS> bits_of(const uint32_t *words, bool all)
{
    row_bits<WORDS> bits;
    for (int w = 0; w < WORDS; w++)
        bits.word[w] = all ? ~0u : words[w] >> (2 * lane_part());
    return bits;
}

/* All of a query's keys. */
template <int WORDS> __device__ uint64_t whole_row(const uint32_t *words)
{
    return WORDS == 1 ? words[0] : (uint64_t)words[WORDS - 1] << 32 | words[0];
}

/*
 * The current tile of a block. It is in shared memory, one for each stage, to save registers.
 */
struct mma_tile {
    tile_place t;
    int64_t group;  /* of the heads that share keys */
    int64_t end;    /* of the keys, or of the heads */
    tile_kind kind; /* NOTHING at the end */
};

/* The next tile of keys for a block of queries that is not fully masked. */
template <int QUERIES, int KEYS>
__device__ void next_keys(const attention &a, const key_band &band, mma_tile &tile)
{
    tile.kind = band.begins_whole((int)tile.t.j + KEYS) ? WHOLE : NOTHING;
    if (tile.kind == WHOLE) {
        tile.t.j += KEYS;
        return;
    }
    for (tile.t.j += KEYS; tile.kind == NOTHING && tile.t.j < tile.end; tile.t.j += KEYS)
        tile.kind = kind_of<OWNS_QUERIES, QUERIES, KEYS>(a, band, tile.t);
    tile.t.j -= KEYS;
}

/* The first such tile. */
template <int QUERIES, int KEYS>
__device__ mma_tile first_keys(const attention &a, const key_band &band, int64_t b, int64_t h,
                               int64_t i)
{
    const int first = band.from((int)i) / KEYS * KEYS;
    const tile_place before = {b, h, i, first - KEYS};
    mma_tile tile = {before, h / (a.H / a.G), band.to((int)smaller(i + QUERIES, a.Lq) - 1),
                     NOTHING};
    next_keys<QUERIES, KEYS>(a, band, tile);
    return tile;
}

/* Starts loading a tile of keys, if there is one, for a block of queries. */
template <class S, class Memory>
__device__ void load_keys(Memory &m, int stage, const attention &a, const void *k, const void *v,
                          const mma_tile &tile, const key_band &band, bool draws, bool aligned)
{
    typedef typename S::number number;
    const tile_place &t = tile.t;
    const int64_t count = a.Lk - t.j;
    if (threadIdx.x == 0)
        m.tile[stage] = tile;
    if (tile.kind != NOTHING) {
        load_rows<S::D, S::COLUMNS, S::THREADS>(
            m.k[stage], rows_from(rows_of<number>(k, a.k, t.b, tile.group), t.j), count, a.D,
            aligned);
        load_rows<S::D, S::COLUMNS, S::THREADS>(
            m.v[stage], rows_from(rows_of<number>(v, a.v, t.b, tile.group), t.j), count, a.Dv,
            aligned);
        set_bits<S::THREADS>(m.bits[stage], a, band, t, tile.kind, draws);
    }
    cp_async_commit();
}

__host__ __device__ inline int64_t block_count(int64_t n, int rows)
{
    return (n + rows - 1) / rows;
}

#endif
