#include "models/decoding/search.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool output_room(sb_decoded *output, int64_t *room)
{
    return memory_room(&output->ids, output->length, room, sizeof *output->ids) ||
           sb_fail("decode: out of memory");
}

double search_score(const sb_decoding_options *options, double log_probability, int64_t chosen)
{
    double alpha = options->length_penalty;
    if (options->beam_rule != SB_BEAM_BOUNDED && options->beam_width > 1)
        return log_probability / math_pow((double)chosen, alpha);
    return alpha == 0 ? log_probability
                      : log_probability / math_pow((5 + (double)chosen) / 6, alpha);
}

bool search_fail_values(const struct decoding_text *text)
{
    return sb_fail("decode: text %lld: no symbol has a probability above 0; check that the "
                   "model's parameters are finite",
                   (long long)text->index);
}

enum { SHORT = 64 }; /* up to so many are kept sorted in a scan of blocks of this size */

static int choices_by_probability(const void *a_, const void *b_)
{
    const struct choice *a = a_, *b = b_;
    if (a->log_p != b->log_p)
        return a->log_p > b->log_p ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* Collects the allowed symbols with a log-probability of at least `least`, in order of ids. */
static int64_t choices_collect(struct choosable from, int64_t V, const double log_p[], double least,
                               struct choice choices[])
{
    int64_t n = 0;
    for (int64_t id = 0; id < V; id++)
        if (search_allows(from, id) && !(log_p[id] < least))
            choices[n++] = (struct choice){log_p[id], (int32_t)id};
    return n;
}

static void choices_sort(int64_t n, struct choice choices[])
{
    qsort(choices, (size_t)n, sizeof *choices, choices_by_probability);
}

/* Whether any of `n` values is above `least`. */
static bool choices_any_above(int64_t n, const double values[], double least)
{
    int any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= values[i] > least;
    return any != 0;
}

/* Puts a symbol in its place among the n best of at most k; returns how many there are then. */
static int64_t choices_insert(int64_t n, int64_t k, struct choice c, struct choice choices[])
{
    if (n == k && !(c.log_p > choices[n - 1].log_p))
        return n;
    int64_t place = n < k ? n++ : n - 1;
    for (; place > 0 && c.log_p > choices[place - 1].log_p; place--)
        choices[place] = choices[place - 1];
    choices[place] = c;
    return n;
}

int64_t choices_best(struct choosable from, int64_t V, const double log_p[], int64_t k,
                     struct choice choices[])
{
    if (k > SHORT) {
        int64_t n = choices_collect(from, V, log_p, -INFINITY, choices);
        choices_sort(n, choices);
        return n < k ? n : k;
    }
    int64_t n = 0;
    for (int64_t first = 0; first < V; first += SHORT) {
        int64_t end = first + SHORT < V ? first + SHORT : V;
        if (n == k && !choices_any_above(end - first, log_p + first, choices[n - 1].log_p))
            continue;
        for (int64_t id = first; id < end; id++)
            if (search_allows(from, id))
                n = choices_insert(n, k, (struct choice){log_p[id], (int32_t)id}, choices);
    }
    return n;
}

/* The sum of the choices' weights p^(1/T), relative to a most probable one. */
static double choices_sum_weights(int64_t n, const struct choice choices[], double top, double T)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += math_exp((choices[i].log_p - top) / T);
    return sum;
}

static double choices_highest(int64_t n, const struct choice choices[])
{
    double top = choices[0].log_p;
    for (int64_t i = 1; i < n; i++)
        top = choices[i].log_p > top ? choices[i].log_p : top;
    return top;
}

/*
 * The nucleus: the fewest of n choices whose weights reach the share p of all, sorted. Choices
 * below (1 - p) / n of all need not be sorted: together they are less than 1 - p, so the others
 * reach p.
 */
static int64_t choices_nucleus(double p, double T, int64_t n, struct choice choices[])
{
    double top = choices_highest(n, choices), all = choices_sum_weights(n, choices, top, T),
           sum = 0;
    double least = top + T * math_log((1 - p) * all / (double)n);
    int64_t heavy = 0;
    for (int64_t i = 0; i < n; i++)
        if (choices[i].log_p >= least)
            choices[heavy++] = choices[i];
    choices_sort(heavy, choices);
    for (int64_t i = 0; i < heavy; i++) {
        sum += math_exp((choices[i].log_p - top) / T);
        if (sum >= p * all)
            return i + 1;
    }
    return heavy;
}

struct choice choices_draw(const sb_decoding_options *o, struct choosable from, int64_t V,
                           const double log_p[], double uniform, struct choice choices[])
{
    const double T = o->temperature;
    int64_t n = o->top_k > 0 ? choices_best(from, V, log_p, o->top_k, choices)
                             : choices_collect(from, V, log_p, -INFINITY, choices);
    if (n > 0 && o->top_p < 1)
        n = choices_nucleus(o->top_p, T, n, choices);
    if (n == 0)
        return (struct choice){NAN, -1};
    double top = choices_highest(n, choices), all = choices_sum_weights(n, choices, top, T),
           sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += math_exp((choices[i].log_p - top) / T);
        if (uniform * all < sum)
            return choices[i];
    }
    return choices[n - 1];
}

/* ---- for loops of others ---- */

/* Whether all logits of a row are numbers or -inf, and one is a number. */
static bool sample_check_row(int64_t V, const double logits[], int64_t i)
{
    bool any = false;
    for (int64_t c = 0; c < V; c++) {
        if (isnan(logits[c]) || logits[c] == INFINITY)
            return sb_fail("sample: symbol %lld of row %lld has the logit %s; it must be a number, "
                           "or -inf to leave the symbol out",
                           (long long)c, (long long)i, isnan(logits[c]) ? "NaN" : "+inf");
        any = any || logits[c] > -INFINITY;
    }
    return any || sb_fail("sample: row %lld of the logits has no finite number", (long long)i);
}

static bool sample_rows(const sb_decoding_options *o, int64_t n, int64_t V, double *log_p,
                        struct choice *choices, sb_tensor *logits, sb_random *random, int32_t *ids)
{
    const struct choosable any = {.never = -1};
    if (!sb_tensor_read(logits, log_p))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!sample_check_row(V, log_p + i * V, i))
            return false;
        ids[i] = choices_draw(o, any, V, log_p + i * V, sb_random_uniform(random), choices).id;
    }
    return true;
}

bool sb_sample(sb_tensor *logits, const sb_decoding_options *options, sb_random *random,
               int32_t ids[])
{
    if (!logits || !random || !ids)
        return fail_null("sample", !logits ? "logits" : random ? "ids" : "random");
    const int rank = sb_tensor_rank(logits);
    if (rank < 1 || rank > 2)
        return sb_fail("sample: logits have %d axes, expected (V) or (n, V)", rank);
    sb_decoding_options o;
    if (!decoding_complete_sampling(options, &o))
        return false;
    if (tensor_size(logits) == 0)
        return sb_fail("sample: logits are %s: there is no symbol to draw",
                       tensor_shape(logits).text);
    const int64_t n = rank == 2 ? sb_tensor_dim(logits, 0) : 1, V = sb_tensor_dim(logits, rank - 1);
    double *log_p = memory_new((size_t)(n * V) * sizeof *log_p);
    struct choice *choices = memory_new((size_t)V * sizeof *choices);
    const bool ok = log_p && choices ? sample_rows(&o, n, V, log_p, choices, logits, random, ids)
                                     : sb_fail("sample: out of memory") != NULL;
    memory_free(log_p);
    memory_free(choices);
    return ok;
}
