/* The options --threads and --device, which several commands share. */
#ifndef SOFTBACK_PROGRAM_SCREEN_MACHINE_OPTIONS_H
#define SOFTBACK_PROGRAM_SCREEN_MACHINE_OPTIONS_H

#include <argp.h>

/* Entries for a command's list of options. */
#define MACHINE_OPTIONS(group)                                                                     \
    {"threads", KEY_THREADS, "N", 0, "threads to use; results do not depend on it [all cores]",    \
     group},                                                                                       \
    {                                                                                              \
        "device", KEY_DEVICE, "WORD", 0,                                                           \
            "compute on cpu, cuda (or cuda:1, the second GPU), or auto (cuda if available) [cpu]", \
            group                                                                                  \
    }

enum machine_key { KEY_THREADS = 600, KEY_DEVICE };

/* Handles such an option; ARGP_ERR_UNKNOWN for other keys. */
error_t machine_option(int key, const char *argument, struct argp_state *state);

/* Prints a device: "cpu     AVX-512 kernels, 2 threads, ...". */
void machine_print_cpu(void);
void machine_print_cuda(void);

#endif
