/* The time of each operation of a training step, and its memory: softback bench train --profile. */
#include "autograd/node.h"
#include "autograd/watch.h"
#include "nn/flat.h"
#include "nn/shares_run.h"
#include "ops/attention.h"
#include "ops/loss.h"
#include "program/bench/bench.h"
#include "tensor/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the work of an operation, counted from the shapes of its node ---- */

/*
 * Operations are those of matrix products alone, 2 for each multiply-add:
 *
 *     linear              2 rows in out; backward as much for each of x and weight
 *     matmul              2 elements of y, inner size; backward as much for each input
 *     linear_cross_entropy  as linear; forward also computes the gradients, or backward computes
 *                         the logits again
 *     attention           2 kept pairs H (D + Dv); backward twice that, and tiled backward also
 *                         computes q k' again
 *
 * Kept pairs are those within each query's range of keys, by causal, window and lengths; pairs that
 * a dense mask removes within it are counted too. Bytes: forward reads every input and writes every
 * output once; backward reads dy and every input, and writes each gradient that is wanted, once.
 */
struct cost {
    double operations, again, bytes; /* again: to compute what was not stored */
};

static double cost_bytes_of(const sb_tensor *t)
{
    return (double)tensor_bytes(t);
}

static bool cost_is_named(const sb_node *node, const char *name)
{
    return strcmp(node->operation->name, name) == 0;
}

/* Pairs of a query and a key in its range, over all sentences. */
static double cost_kept_pairs(const struct attention *a)
{
    double pairs = 0;
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t i = 0; i < a->Lq; i++) {
            const struct key_range keys = mask_range(&a->mask, b, i, i, a->Lk);
            pairs += keys.to > keys.from ? (double)(keys.to - keys.from) : 0;
        }
    return pairs;
}

/* Composed attention keeps its weights (B, H, Lq, Lk). */
static bool cost_stores_weights(const sb_node *node, const struct attention *a)
{
    const sb_tensor *kept = node->made > 1 ? node->out[1] : node->saves ? node->saved[0] : NULL;
    return kept && kept->rank == 4 && kept->dim[3] == a->Lk;
}

/* Whether forward has already computed the gradients. */
static bool cost_gives_early(const sb_node *node)
{
    const struct cross_entropy_options *options = node->options;
    return cost_is_named(node, "linear_cross_entropy") && options->early;
}

/* How many of the product's two operands require a gradient. */
static double cost_operands_wanted(const sb_node *node)
{
    double wanted = 0;
    for (int i = 0; i < 2 && i < node->inputs; i++)
        wanted += tape_wants_grad(tape_open(), node->in[i]);
    return wanted;
}

/* The products of forward, and those that backward computes again. */
static struct cost cost_products(const sb_node *node)
{
    struct cost cost = {0};
    if (cost_is_named(node, "linear") || cost_is_named(node, "linear_cross_entropy"))
        cost.operations = 2 * (double)tensor_size(node->in[0]) * (double)node->in[1]->dim[0];
    if (cost_is_named(node, "linear")) /* of a group each output is a product */
        cost.operations *= (double)node->made;
    if (cost_is_named(node, "linear_cross_entropy"))
        cost.again = cost_gives_early(node) ? 0 : cost.operations;
    if (strncmp(node->operation->name, "matmul", strlen("matmul")) == 0 && node->made > 0) {
        const sb_tensor *a = node->in[0];
        const int axis = cost_is_named(node, "matmul_tn") ? a->rank - 2 : a->rank - 1;
        cost.operations = 2 * (double)tensor_size(node->out[0]) * (double)a->dim[axis];
    }
    if (cost_is_named(node, "attention")) {
        const struct attention *a = node->options; /* both algorithms' options begin with it */
        const double pairs = 2 * cost_kept_pairs(a) * (double)a->H;
        cost.operations = pairs * (double)(a->D + a->Dv);
        cost.again = cost_stores_weights(node, a) ? 0 : pairs * (double)a->D;
    }
    return cost;
}

/* Once it has run. */
static struct cost cost_forward(const sb_node *node)
{
    struct cost cost = cost_products(node);
    cost.again = 0;
    cost.operations *= cost_gives_early(node) ? 1 + cost_operands_wanted(node) : 1;
    for (int i = 0; i < node->inputs; i++)
        cost.bytes += cost_bytes_of(node->in[i]);
    for (int i = 0; i < node->made; i++)
        cost.bytes += cost_bytes_of(node->out[i]);
    return cost;
}

static struct cost cost_backward(const sb_node *node)
{
    struct cost cost = cost_products(node);
    const bool shares = node->inputs > 1 && !cost_is_named(node, "attention");
    for (int i = 0; i < node->inputs; i++) {
        const bool wants = tape_wants_grad(tape_open(), node->in[i]);
        cost.bytes += cost_bytes_of(node->in[i]) * (wants ? 2 : 1);
    }
    for (int i = 0; i < node->made; i++)
        cost.bytes += cost_bytes_of(node->out[i]);
    cost.operations *= cost_gives_early(node) ? 0 : shares ? cost_operands_wanted(node) : 2;
    return cost;
}

/* ---- memory ---- */

/* Bytes of one step, without those that were in use before there was a model. */
struct step_memory {
    int64_t outside;
    int64_t start;    /* before the step: weights, gradients, optimiser, data */
    int64_t backward; /* when backward begins: also what forward keeps for it */
    int64_t peak;
    int64_t before; /* the running forward began; a negative number: none runs */
};

int64_t bench_memory_live(void)
{
    return sb_device_memory(sb_device_in_use()).live_bytes;
}

/* Sees what a watcher sees (autograd/watch.h), and returns how many bytes the forward that has just
   finished keeps; 0 after anything else. */
static int64_t memory_see(struct step_memory *m, enum watched what)
{
    const int64_t live = bench_memory_live() - m->outside,
                  kept = m->before < 0 ? 0 : live - m->before;
    m->before = what == WATCHED_FORWARD ? live : -1;
    if (what == WATCHED_BACKWARD && m->backward == 0)
        m->backward = live;
    return kept;
}

static int64_t memory_bytes(const sb_tensor *t)
{
    return t ? sb_tensor_size(t) * (int64_t)sb_dtype_bytes(sb_tensor_dtype(t)) : 0;
}

static void memory_print(const struct bench *bench, const struct step_memory *m, const char *name,
                         const char *way, const sb_parameters *weights)
{
    const int64_t values = memory_bytes(parameters_values(weights));
    const int64_t gradients = memory_bytes(parameters_gradients(weights));
    const int64_t shares = shares_bytes(weights);
    const struct {
        const char *what;
        int64_t bytes;
    } parts[] = {{"weights", values},
                 {"gradients of weights", gradients},
                 {"gradients of shares", shares},
                 {"optimiser, data, tables", m->start - values - gradients - shares},
                 {"kept for backward", m->backward - m->start},
                 {"more during backward", m->peak - m->backward},
                 {"peak", m->peak}};
    if (!bench->tabs)
        printf("memory of %s, %s:\n", name, way);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (bench->tabs)
            printf("memory\t%s\t%s\t%s\t%lld\n", name, way, parts[i].what,
                   (long long)parts[i].bytes);
        else
            printf("  %-24s %9.2f MB %5.1f %%\n", parts[i].what, 1e-6 * (double)parts[i].bytes,
                   100 * (double)parts[i].bytes / (double)m->peak);
    fflush(stdout);
}

/* ---- time ---- */

enum { MOST_LINES = 128, STEPS = 10 };

struct line {
    const char *name;
    bool backward;
    int64_t calls;
    double seconds, kept; /* bytes */
    struct cost cost;
};

struct profile {
    struct line line[MOST_LINES];
    int lines;
    struct line *running; /* since `begun`; NULL: none */
    const sb_node *node;  /* whose forward is running */
    double begun, seconds, between;
    struct step_memory memory;
};

static struct line *profile_find(struct profile *p, const char *name, bool backward)
{
    for (int i = 0; i < p->lines; i++)
        if (p->line[i].backward == backward && strcmp(p->line[i].name, name) == 0)
            return &p->line[i];
    if (p->lines == MOST_LINES) /* the last line sums up the rest */
        return &p->line[MOST_LINES - 1];
    p->line[p->lines] = (struct line){.name = name, .backward = backward};
    return &p->line[p->lines++];
}

static void profile_add(struct line *line, struct cost cost)
{
    line->cost.operations += cost.operations;
    line->cost.again += cost.again;
    line->cost.bytes += cost.bytes;
}

/* Stops the clock of the operation that has just finished, and starts that of the next one. */
static void profile_see(void *context, enum watched what, const sb_node *node)
{
    struct profile *p = context;
    const double now = bench_clock();
    if (p->running)
        p->running->seconds += now - p->begun;
    else
        p->between += now - p->begun;
    const int64_t kept = memory_see(&p->memory, what);
    if (p->node) {
        profile_add(p->running, cost_forward(p->node));
        p->running->kept += (double)kept;
    }
    p->node = what == WATCHED_FORWARD ? node : NULL;
    p->running = node ? profile_find(p, node->operation->name, what == WATCHED_BACKWARD) : NULL;
    if (p->running)
        p->running->calls++;
    if (what == WATCHED_BACKWARD)
        profile_add(p->running, cost_backward(node));
    p->begun = bench_clock();
}

static int profile_longer(const void *a, const void *b)
{
    const double x = ((const struct line *)a)->seconds, y = ((const struct line *)b)->seconds;
    return (x < y) - (x > y);
}

/* Blank where there is nothing to tell. */
static void profile_print_number(bool known, int width, int decimals, double x)
{
    if (known)
        printf(" %*.*f", width, decimals, x);
    else
        printf(" %*s", width, "");
}

static void profile_print_line(const struct bench *bench, const struct profile *p, const char *name,
                               const struct line *l)
{
    const double n = STEPS, rate = l->seconds > 0 ? 1e-9 / l->seconds : 0;
    const char *way = l->calls == 0 ? "" : l->backward ? "backward" : "forward";
    const struct cost *c = &l->cost;
    if (bench->tabs) {
        printf("profile\t%s\t%s\t%s\t%.9g\t%.9g\t%.15g\t%.15g\t%.15g\t%.15g\n", name, l->name, way,
               (double)l->calls / n, l->seconds / n, c->operations / n, c->again / n, c->bytes / n,
               l->kept / n);
        return;
    }
    printf("  %-24s %-8s %6.0f %9.3f ms %5.1f %%", l->name, way, (double)l->calls / n,
           1e3 * l->seconds / n, 100 * l->seconds / p->seconds);
    profile_print_number(c->operations > 0, 9, 3, 1e-9 * c->operations / n);
    profile_print_number(c->again > 0, 7, 3, 1e-9 * c->again / n);
    profile_print_number(c->operations > 0, 8, 1, (c->operations + c->again) * rate);
    if (c->bytes > 0 || l->kept > 0) {
        profile_print_number(c->bytes > 0, 9, 2, 1e-6 * c->bytes / n);
        profile_print_number(c->bytes > 0, 7, 1, c->bytes * rate);
    }
    if (l->kept > 0)
        printf(" %8.2f", 1e-6 * l->kept / n);
    putchar('\n');
}

static void profile_print(const struct bench *bench, struct profile *p, const char *name,
                          const char *way)
{
    qsort(p->line, (size_t)p->lines, sizeof p->line[0], profile_longer);
    if (!bench->tabs)
        printf("profile of %s, %s: %.3f ms a step\n  %-24s %-8s %6s %12s %7s %9s %7s %8s %9s %7s "
               "%8s\n",
               name, way, 1e3 * p->seconds / STEPS, "operation", "", "calls", "time", "share",
               "GFLOP", "again", "GFLOP/s", "MB", "GB/s", "MB kept");
    for (int i = 0; i < p->lines; i++)
        profile_print_line(bench, p, name, &p->line[i]);
    const struct line rest = {.name = "between tapes: optimiser", .seconds = p->between};
    profile_print_line(bench, p, name, &rest);
    fflush(stdout);
}

bool bench_profile(struct bench *bench, const char *name, const char *way, bench_once *once,
                   void *context, const sb_parameters *weights, int64_t outside)
{
    struct profile p = {.lines = 0};
    const struct watcher watcher = {profile_see, &p};
    for (int i = 0; i < 3; i++) /* the first allocates memory */
        if (once(context) < 0)
            return false;
    watch_operations(&watcher);
    bool ok = true;
    for (int i = 0; ok && i < STEPS; i++) {
        sb_device_reset_peak(sb_device_in_use());
        p.memory = (struct step_memory){
            .outside = outside, .start = bench_memory_live() - outside, .before = -1};
        p.begun = bench_clock();
        const double seconds = once(context);
        profile_see(&p, WATCHED_DONE, NULL);
        p.memory.peak = sb_device_memory(sb_device_in_use()).peak_bytes - outside;
        p.seconds += seconds;
        ok = seconds >= 0;
    }
    watch_operations(NULL);
    if (ok) {
        profile_print(bench, &p, name, way);
        memory_print(bench, &p.memory, name, way, weights);
    }
    return ok;
}
