#include "tensor/dtype.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[SB_DTYPES] = {{"f32", 4}, {"f64", 8}, {"bf16", 2}, {"dual", 16}, {"i32", 4}, {"bool", 1}};

static bool is_known(sb_dtype dtype)
{
    return (unsigned)dtype < SB_DTYPES;
}

const char *sb_dtype_name(sb_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].name : "unknown dtype";
}

size_t sb_dtype_bytes(sb_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].bytes : 0;
}

bool sb_dtype_is_real(sb_dtype dtype)
{
    return dtype == SB_F32 || dtype == SB_F64 || dtype == SB_BF16 || dtype == SB_DUAL;
}
