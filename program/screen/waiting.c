#include "program/screen/waiting.h"
#include <stdlib.h>
#include <unistd.h>

void waiting_shorten(char **argv)
{
#if defined(_OPENMP) && defined(__linux__)
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
        execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}
