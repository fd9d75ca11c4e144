/* The threads that kernels run on: OpenMP's, or the calling one alone in a build without it. */
#include "tensor/device.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MOST_THREADS = 1024 };

bool sb_set_threads(int threads)
{
    if (threads < 1 || threads > MOST_THREADS)
        return sb_fail("threads: %d is not in 1..%d", threads, MOST_THREADS);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
    return true;
}

int sb_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}
