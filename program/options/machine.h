/* The options --threads and --device, which several commands share. */
#ifndef SOFTBACK_PROGRAM_OPTIONS_MACHINE_H
#define SOFTBACK_PROGRAM_OPTIONS_MACHINE_H

#include "program/options/options.h"

/* --threads alone, and both; they take effect at once. */
extern const struct field threads_fields[], machine_fields[];

/* Prints a device: "cpu     AVX-512 kernels, 2 threads, ...". */
void machine_print_cpu(void);
void machine_print_cuda(void);

#endif
