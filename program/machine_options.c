#include "program/machine_options.h"
#include "ops/gemm.h"
#include "program/command.h"
#include "program/foreign.h"
#include "program/options.h"
#include "tensor/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void machine_choose_device(const char *word, struct argp_state *state)
{
    const sb_device *device = NULL;
    if (strcmp(word, "auto") == 0 || strcmp(word, "cuda") == 0)
        device = sb_device_cuda();
    else if (strcmp(word, "cpu") != 0)
        options_refuse(state, "--device: \"%s\" is none of cpu, cuda, auto", word);
    if (!device && strcmp(word, "cuda") == 0)
        argp_failure(state, EXIT_FAILED, 0, "%s", sb_error());
    sb_use_device(device);
}

error_t machine_option(int key, const char *argument, struct argp_state *state)
{
    switch (key) {
    case KEY_THREADS:
        if (!sb_set_threads((int)options_count(state, "threads", argument, 1, 1024)))
            options_fail(state);
        return 0;
    case KEY_DEVICE:
        machine_choose_device(argument, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Settings that make OpenBLAS compute with kernels or blocks of another processor. */
static void machine_print_blas_settings(void)
{
    static const char *const names[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
    for (int i = 0; gemm_blas() && i < 2; i++) {
        const char *value = getenv(names[i]);
        if (value)
            printf("note    %s is set to \"%s\", which makes OpenBLAS slower on most processors; "
                   "unset it\n",
                   names[i], foreign(value));
    }
}

void machine_print_cpu(void)
{
    printf("cpu     %s kernels, %d %s, products by %s\n", kernel_cpu_name(), sb_threads(),
           sb_threads() == 1 ? "thread" : "threads", gemm_library());
    machine_print_blas_settings();
}

void machine_print_cuda(void)
{
    const sb_device *cuda = sb_device_cuda();
    printf("%s%s\n", cuda ? "cuda    " : "", cuda ? sb_device_description(cuda) : sb_error());
}
