#include "cuda/rows.cuh"

#define DECLARE(op) extern const struct plugin_row op##_cuda_row;
#define POINTER(op) &op##_cuda_row,

OPERATIONS(DECLARE)

const struct plugin_row *const cuda_rows[] = {OPERATIONS(POINTER) nullptr};
