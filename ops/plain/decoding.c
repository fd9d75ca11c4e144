#include "ops/decoding.h"
#include "ops/plain/real.h"

/* The symbols that a step of decoding has chosen, for the next step and the
   host. */
static bool decoding_note(const struct decoding_note *n)
{
    const real *log_p = n->log_p;
    double *noted = n->noted + *n->position % n->steps * n->B * 2;
    for (int64_t b = 0; b < n->B; b++) {
        noted[2 * b] = n->best[b];
        noted[2 * b + 1] = real_value(log_p[b]);
        n->ids[b] = n->best[b];
        n->lengths[b]++;
    }
    (*n->position)++;
    return true;
}

/* The candidates of a slot. Row `noted` becomes the host's copy of what was
   read. */
static void decoding_collect(const struct decoding_beam *f, int64_t row,
                             double *noted, struct decoding_candidate c[])
{
    const int32_t *best = f->best + row * f->reads;
    const real *log_p = (const real *)f->log_p + row * f->reads;
    const int64_t slots = f->width + 1;
    const int32_t slot = (int32_t)(row % slots);
    int64_t n = 0;
    for (int64_t i = 0; i < f->reads; i++) {
        const double p = real_value(log_p[i]), sum = f->sum[row] + p;
        noted[2 + 2 * i] = best[i];
        noted[3 + 2 * i] = p;
        if (n < slots && (best[i] == f->end || best[i] >= f->first))
            c[n++] = (struct decoding_candidate){sum == sum ? sum : -INFINITY,
                                                 slot, best[i]};
    }
    while (n < slots)
        c[n++] = (struct decoding_candidate){-INFINITY, slot, -1};
}

/* Makes a candidate the hypothesis of this row. */
static void decoding_put(const struct decoding_beam *f, int64_t row,
                         const struct decoding_candidate *c, double *noted)
{
    noted[0] = f->from[row] = c->slot;
    noted[1] = f->ids[row] = c->id;
    f->sum[row] = c->sum;
}

static void decoding_extend_text(const struct decoding_beam *f, int64_t text,
                                 double *noted)
{
    struct decoding_candidate all[DECODING_SLOTS * DECODING_SLOTS];
    const int64_t slots = f->width + 1, n = slots * slots, first = text * slots,
                  pitch = 2 + 2 * f->reads, greedy = f->greedy[text];
    for (int64_t s = 0; s < slots; s++)
        decoding_collect(f, first + s, noted + s * pitch, all + s * slots);
    f->greedy[text] = -1;
    for (int64_t s = 0; s < slots; s++)
        decoding_put(
            f, first + s,
            &(struct decoding_candidate){-INFINITY, (int32_t)s, f->end},
            noted + s * pitch);
    for (int64_t i = 0; i < n; i++) {
        const bool is_greedy = greedy >= 0 && i == greedy * slots;
        const int64_t place = decoding_place(f, n, all, &all[i]);
        const int64_t s = place < f->width ? place : f->width;
        if (!decoding_goes_on(f, &all[i]) || (s == f->width && !is_greedy))
            continue;
        decoding_put(f, first + s, &all[i], noted + s * pitch);
        if (is_greedy)
            f->greedy[text] = (int32_t)s;
    }
}

/* A step of beam search. */
static bool decoding_extend(const struct decoding_beam *f)
{
    const int64_t rows = f->texts * (f->width + 1),
                  of_text = (f->width + 1) * (2 + 2 * f->reads);
    double *noted = f->noted + *f->position % f->steps * f->texts * of_text;
    for (int64_t text = 0; text < f->texts; text++)
        decoding_extend_text(f, text, noted + text * of_text);
    for (int64_t row = 0; row < rows; row++)
        f->lengths[row]++;
    (*f->position)++;
    return true;
}

/* Byte by byte: what all slots have there, and what each has from now on. */
static bool decoding_rearrange(const struct decoding_caches *c)
{
    for (int64_t i = 0; i < c->count * c->texts; i++) {
        const struct decoding_cache *cache = &c->cache[i / c->texts];
        const int64_t text = i % c->texts, stride = cache->stride;
        const int32_t *from = c->from + text * c->slots;
        char *data = (char *)cache->data + text * c->slots * stride;
        for (int64_t byte = 0; byte < *c->position * cache->bytes; byte++) {
            char was[DECODING_SLOTS];
            for (int64_t s = 0; s < c->slots; s++)
                was[s] = data[s * stride + byte];
            for (int64_t s = 0; s < c->slots; s++)
                data[s * stride + byte] = was[from[s]];
        }
    }
    return true;
}

KERNELS(decoding) = {decoding_note, decoding_extend, decoding_rearrange};
