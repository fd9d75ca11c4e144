#include "ops/gemm.h"
#include "program/options/options.h"
#include "program/screen/foreign.h"
#include "tensor/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 4 };

/* Whether a word is "cuda" or "cuda:" and a number, which is 0 without one. */
static bool machine_is_cuda(const char *word, int *number)
{
    const size_t name = strlen("cuda");
    *number = 0;
    if (strncmp(word, "cuda", name) != 0)
        return false;
    word += name;
    if (*word == '\0')
        return true;
    const size_t digits = *word == ':' ? strspn(word + 1, "0123456789") : 0;
    *number = atoi(word + 1);
    return digits > 0 && digits <= MOST_DIGITS && word[1 + digits] == '\0';
}

static bool machine_take_device(const struct field *field, void *unused, const char *word)
{
    (void)field, (void)unused;
    const sb_device *device = NULL;
    int number;
    const bool cuda = machine_is_cuda(word, &number);
    if (!cuda && strcmp(word, "auto") != 0 && strcmp(word, "cpu") != 0)
        return sb_fail("--device: \"%s\" is none of cpu, cuda, cuda:0, cuda:1, ..., auto", word);
    if (strcmp(word, "cpu") != 0 && sb_choose_cuda(number))
        device = sb_device_cuda();
    if (!device && cuda)
        return option_unavailable();
    sb_use_device(device);
    return true;
}

static bool machine_take_threads(const struct field *field, void *unused, const char *value)
{
    int threads;
    const struct field count = {field->name, FIELD_SMALL, 0, NULL, .least = 1, .most = 1024};
    (void)unused;
    return field_write(&count, &threads, value) && sb_set_threads(threads);
}

const struct field threads_fields[] = {
    {"threads", FIELD_OTHER, .help = "threads to use; results do not depend on it [all cores]",
     .take = machine_take_threads},
    {0}};

const struct field machine_fields[] = {
    {.rows = threads_fields},
    {"device", FIELD_OTHER, .argument = "WORD", .take = machine_take_device,
     .help = "compute on cpu, cuda (or cuda:1, the second GPU), or auto (cuda if available) "
             "[cpu]"},
    {0}};

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
