/* softback bench: what training, decoding and single operations cost on a device. */
#include "program/bench/bench.h"
#include "program/screen/command.h"
#include "program/screen/machine_options.h"
#include "program/screen/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    const char *name;
    bool (*measure)(struct bench *bench);
};

static const struct part parts[] = {
    {"train", bench_train},         {"decode", bench_decode},     {"operations", bench_operations},
    {"attention", bench_attention}, {"products", bench_products},
};

enum { PARTS = sizeof parts / sizeof parts[0], KEY_QUICK = 1, KEY_TABS, KEY_PROFILE };

struct bench_request {
    bool part[PARTS], any, quick, tabs, profile;
};

static void bench_choose(struct bench_request *request, const char *name, struct argp_state *state)
{
    for (int i = 0; i < PARTS; i++)
        if (strcmp(name, parts[i].name) == 0) {
            request->part[i] = request->any = true;
            return;
        }
    options_refuse(state, "\"%s\" is none of train, decode, operations, attention, products", name);
}

static error_t bench_parse(int key, char *argument, struct argp_state *state)
{
    struct bench_request *request = state->input;
    switch (key) {
    case KEY_QUICK:
        request->quick = true;
        return 0;
    case KEY_TABS:
        request->tabs = true;
        return 0;
    case KEY_PROFILE:
        request->profile = true;
        return 0;
    case ARGP_KEY_ARG:
        bench_choose(request, argument, state);
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

static void bench_print_limit(const struct bench *bench, enum bench_limit limit, const char *name,
                              const char *unit)
{
    static const char *const ways[] = {"memory", "f32", "bf16"};
    const struct bench_row row = {.group = "limit",
                                  .name = name,
                                  .way = ways[limit],
                                  .amount = bench->limit[limit],
                                  .unit = unit};
    if (bench->limit[limit] > 0)
        bench_print(bench, &row);
}

/* Before each part, so that other load on the machine slows both the limits and the part. */
static bool bench_measure_limits(struct bench *bench)
{
    if (!bench_limits(bench))
        return false;
    const char *product = bench->gpu ? "matrix product" : "multiply-adds";
    bench_print_limit(bench, BENCH_COPY, "copy", "B/s");
    bench_print_limit(bench, BENCH_F32, product, "FLOP/s");
    bench_print_limit(bench, BENCH_BF16, product, "FLOP/s");
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

static int bench(const struct bench_request *request)
{
    const bool emulated = strstr(sb_device_description(sb_device_in_use()), "emulated") != NULL;
    struct bench bench = {.quick = request->quick || emulated,
                          .tabs = request->tabs,
                          .profile = request->profile,
                          .gpu = sb_device_in_use() != sb_device_cpu()};
    bench_print_device(&bench);
    if (bench.quick && !bench.tabs)
        puts("Sizes are tiny: this shows that everything runs, not how fast.");
    bool ok = true;
    for (int i = 0; ok && i < PARTS; i++)
        if (request->part[i] || !request->any)
            ok = bench_measure_limits(&bench) && parts[i].measure(&bench);
    bench_end(&bench);
    return ok ? EXIT_OK : command_failed("bench");
}

static int bench_run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        MACHINE_OPTIONS(0),
        {"quick", KEY_QUICK, NULL, 0, "tiny sizes: check only that everything runs", 0},
        {"profile", KEY_PROFILE, NULL, 0,
         "also print the time of each operation of a training step", 0},
        {"tabs", KEY_TABS, NULL, 0, "print tab-separated values, for programs", 0},
        {0}};
    const struct argp argp = {
        options,
        bench_parse,
        "[train] [decode] [operations] [attention] [products]",
        "Measures training steps (forward, backward and Adam; dropout 0.1; f32 and bf16; sizes "
        "toy, usual (the defaults of train), tiny and base), a decoding step with a KV cache, "
        "memory-bound operations, tiled and composed attention, and the built-in matrix product "
        "in turns with OpenBLAS. Prints times, and shares of this device's limits: the bandwidth "
        "of a large copy and the FLOP/s of products.",
        NULL,
        NULL,
        NULL};
    struct bench_request request = {0};
    int wrong = command_parse(&argp, "bench", argc, argv, &request);
    return wrong < 0 ? bench(&request) : wrong;
}

const struct command command_bench = {"bench", "measures training, decoding and attention",
                                      bench_run};
