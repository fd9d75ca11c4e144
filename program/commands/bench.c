/* softback bench: what training, decoding and single operations cost on a device. */
#include "program/bench/bench.h"
#include "program/options/options.h"
#include <stdio.h>
#include <string.h>

static const struct part {
    const char *name, *group; /* of rows */
} parts[] = {
    {"train", "train"},         {"decode", "decode"},    {"operations", "operation"},
    {"attention", "attention"}, {"products", "product"},
};

enum { PARTS = sizeof parts / sizeof parts[0] };

struct bench_request {
    struct bench bench;
    bool rows, worker;
    struct texts parts;
};

#define ROW(member) FIELD(struct bench_request, member)

static const struct field bench_fields[] = {
    {.rows = machine_fields},
    {"quick", ROW(bench.quick), "tiny sizes: check only that everything runs"},
    {"profile", ROW(bench.profile), "also print the time of each operation of a training step"},
    {"tabs", ROW(bench.tabs), "print tab-separated values, for programs"},
    {"rows", ROW(rows), "list what is measured, for programs, and measure nothing"},
    {"worker", ROW(worker), "answer the lines of standard input, for tests/bench/compare.py"},
    {ARGUMENTS(struct bench_request, parts)},
    {0}};
#undef ROW

static bool bench_check_parts(const struct texts *wanted)
{
    for (int i = 0; i < wanted->count; i++) {
        bool known = false;
        for (int k = 0; k < PARTS; k++)
            known |= strcmp(wanted->text[i], parts[k].name) == 0;
        if (!known)
            return command_misused(
                "\"%s\" is none of train, decode, operations, attention, products",
                wanted->text[i]);
    }
    return true;
}

static void bench_print_device(const struct bench *bench)
{
    const sb_device *device = sb_device_in_use();
    if (bench->tabs)
        printf("device\t%s\t%s\n", sb_device_name(device), sb_device_description(device));
    else if (device == sb_device_cpu())
        machine_print_cpu();
    else
        machine_print_cuda();
}

static bool bench(struct bench *bench, const struct texts *wanted)
{
    bench->quick |= strstr(sb_device_description(sb_device_in_use()), "emulated") != NULL;
    bench->gpu = sb_device_in_use() != sb_device_cpu();
    bench_print_device(bench);
    if (bench->quick && !bench->tabs)
        puts("Sizes are tiny: this shows that everything runs, not how fast.");
    bool ok = true;
    for (int i = 0; ok && i < PARTS; i++)
        if (texts_want(wanted, parts[i].name))
            ok = bench_rows(bench, parts[i].group);
    bench_end(bench);
    return ok || command_failed();
}

static bool bench_run(struct options *o)
{
    struct bench_request r = {0};
    if (!options_read(o, &r) || !bench_check_parts(&r.parts))
        return false;
    if (r.rows)
        return bench_list() || command_failed();
    if (!r.worker)
        return bench(&r.bench, &r.parts);
    bench_worker();
    return true;
}

const struct command command_bench = {
    .summary = "measures training, decoding and attention",
    .arguments = "[train] [decode] [operations] [attention] [products]",
    .help =
        "Measures training steps (forward, backward and Adam; dropout 0.1; f32 and bf16; sizes "
        "toy, usual (the defaults of train), tiny and base), greedy decoding, a decoding step with "
        "a "
        "KV cache, memory-bound operations, tiled and composed attention, and the built-in matrix "
        "product in turns with OpenBLAS. Prints times, and shares of this device's limits: the "
        "bandwidth of a large copy and the FLOP/s of products.",
    .fields = bench_fields,
    .run = bench_run,
};
