#include "program/bench/profile.h"
#include "autograd/watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 128, STEPS = 10 };

struct line {
    const char *name;
    bool backward;
    int64_t calls;
    double seconds, kept; /* bytes */
    struct bench_cost cost;
};

struct profile {
    struct line line[MOST_LINES];
    int lines;
    struct line *running; /* since `begun`; NULL: none */
    const sb_node *node;  /* whose forward is running */
    double begun, seconds, between;
    struct bench_memory memory;
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

static void profile_add(struct line *line, struct bench_cost cost)
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
    const int64_t kept = bench_memory_see(&p->memory, what);
    if (p->node) {
        profile_add(p->running, bench_cost_forward(p->node));
        p->running->kept += (double)kept;
    }
    p->node = what == WATCHED_FORWARD ? node : NULL;
    p->running = node ? profile_find(p, node->operation->name, what == WATCHED_BACKWARD) : NULL;
    if (p->running)
        p->running->calls++;
    if (what == WATCHED_BACKWARD)
        profile_add(p->running, bench_cost_backward(node));
    p->begun = bench_clock();
}

static int profile_longer(const void *a, const void *b)
{
    const double x = ((const struct line *)a)->seconds, y = ((const struct line *)b)->seconds;
    return (x < y) - (x > y);
}

static void profile_print_line(const struct bench *bench, const struct profile *p, const char *name,
                               const struct line *l)
{
    const double n = STEPS, rate = l->seconds > 0 ? 1e-9 / l->seconds : 0;
    const char *way = l->calls == 0 ? "" : l->backward ? "backward" : "forward";
    if (bench->tabs) {
        printf("profile\t%s\t%s\t%s\t%.9g\t%.9g\t%.15g\t%.15g\t%.15g\t%.15g\n", name, l->name, way,
               (double)l->calls / n, l->seconds / n, l->cost.operations / n, l->cost.again / n,
               l->cost.bytes / n, l->kept / n);
        return;
    }
    printf("  %-24s %-8s %6.0f %9.3f ms %5.1f %%", l->name, way, (double)l->calls / n,
           1e3 * l->seconds / n, 100 * l->seconds / p->seconds);
    if (l->cost.operations > 0)
        printf(" %9.3f", 1e-9 * l->cost.operations / n);
    else
        printf(" %9s", "");
    if (l->cost.again > 0)
        printf(" %7.3f", 1e-9 * l->cost.again / n);
    else
        printf(" %7s", "");
    if (l->cost.operations > 0)
        printf(" %8.1f", (l->cost.operations + l->cost.again) * rate);
    else
        printf(" %8s", "");
    if (l->cost.bytes > 0)
        printf(" %9.2f %7.1f", 1e-6 * l->cost.bytes / n, l->cost.bytes * rate);
    else if (l->kept > 0)
        printf(" %9s %7s", "", "");
    if (l->kept > 0)
        printf(" %8.2f", 1e-6 * l->kept / n);
    putchar('\n');
}

static void print_profile(const struct bench *bench, struct profile *p, const char *name,
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
        bench_memory_start(&p.memory, outside);
        p.begun = bench_clock();
        const double seconds = once(context);
        profile_see(&p, WATCHED_DONE, NULL);
        bench_memory_end(&p.memory);
        p.seconds += seconds;
        ok = seconds >= 0;
    }
    watch_operations(NULL);
    if (ok) {
        print_profile(bench, &p, name, way);
        bench_memory_print(bench, &p.memory, name, way, weights);
    }
    return ok;
}
