/* The pool of threads: regions with one thread do not use it, and where it has too few, the rest
 * compute. */
#include "tensor/threads.h"
#include "tests/support/examples.h"
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_example(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    example_must_run(e, shapes, &in);
}

/* Small and large inputs, forwards and backwards. */
CPU_TEST(threads, a_region_of_one_thread_does_not_use_the_pool)
{
    cr_assert(sb_set_threads(1));
    const int64_t before = threads_entered();
    const int64_t usual = kernel_parallel_work;
    for_each_example(run_example);
    kernel_parallel_work = 0; /* all regions would be divided */
    for_each_example_once(run_example);
    kernel_parallel_work = usual;
    cr_expect(threads_entered() == before, "%lld parallel regions",
              (long long)(threads_entered() - before));
}

/* The memory of the process may grow by so many bytes. */
static bool limit_memory(size_t bytes)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const bool ok = file && fscanf(file, "%lu", &pages) == 1;
    if (file)
        fclose(file);
    const struct rlimit limit = {pages * (size_t)sysconf(_SC_PAGESIZE) + bytes, RLIM_INFINITY};
    return ok && setrlimit(RLIMIT_AS, &limit) == 0;
}

/* In a child: threads that are asked for are refused with a sentence, and a large sum, for which
   kernels would take two threads, is computed by one. Its exit code: 0 if so. */
static int compute_without_memory(void)
{
    sb_tensor *x = sb_tensor_full(SB_F32, SB_SHAPE(1000, 1000), 0.5);
    const int threads = sb_threads();
    if (!x || !limit_memory(1 << 20))
        return 2;
#ifndef _OPENMP
    return sb_set_threads(1024) && threads == 1 ? 0 : 6; /* they are made when they are needed */
#endif
    const bool refused = !sb_set_threads(64) && sb_threads() == threads &&
                         strstr(sb_error(), "threads: 64 threads cannot be made; ask for fewer");
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double sum = sb_tensor_value(sb_sum(x, SB_ALL, false));
    const bool ended = sb_tape_end(&tape);
    return !refused ? 3 : !ended ? 4 : sum == 500000 ? 0 : 5;
}

CPU_TEST(threads, those_that_cannot_be_made_are_an_ordinary_error)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(compute_without_memory());
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

CPU_TEST(threads, numbers_out_of_range_are_refused)
{
    cr_expect(!sb_set_threads(0));
    EXPECT_ERROR("threads: 0 is not in 1..1024");
    cr_expect(!sb_set_threads(1025));
    EXPECT_ERROR("threads: 1025 is not in 1..1024");
}
