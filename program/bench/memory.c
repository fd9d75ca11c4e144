#include "program/bench/memory.h"
#include "nn/flat.h"
#include "nn/shares_run.h"
#include "tensor/device.h"
#include <stdio.h>

int64_t bench_memory_live(void)
{
    return sb_device_memory(sb_device_in_use()).live_bytes;
}

void bench_memory_start(struct bench_memory *m, int64_t outside)
{
    sb_device_reset_peak(sb_device_in_use());
    *m = (struct bench_memory){
        .outside = outside, .start = bench_memory_live() - outside, .before = -1};
}

int64_t bench_memory_see(struct bench_memory *m, enum watched what)
{
    const int64_t live = bench_memory_live() - m->outside,
                  kept = m->before < 0 ? 0 : live - m->before;
    m->before = what == WATCHED_FORWARD ? live : -1;
    if (what == WATCHED_BACKWARD && m->backward == 0)
        m->backward = live;
    return kept;
}

void bench_memory_end(struct bench_memory *m)
{
    m->peak = sb_device_memory(sb_device_in_use()).peak_bytes - m->outside;
}

static int64_t memory_bytes(const sb_tensor *t)
{
    return t ? sb_tensor_size(t) * (int64_t)sb_dtype_bytes(sb_tensor_dtype(t)) : 0;
}

void bench_memory_print(const struct bench *bench, const struct bench_memory *m, const char *name,
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
