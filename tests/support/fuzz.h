/* For targets of libFuzzer, see fuzz.sh. */
#ifndef SOFTBACK_TESTS_SUPPORT_FUZZ_H
#define SOFTBACK_TESTS_SUPPORT_FUZZ_H

#include "tensor/error.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s; the last error is \"%s\"\n", what, sb_error());
    abort();
}

#endif
