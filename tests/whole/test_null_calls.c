/* Every exported function, from the list of the library's symbols, takes NULL without a crash. */
#include "tests/support/test.h"
#include "tests/whole/null_calls.h"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60 };

/* In a child, since a call may crash, keep what it is given, or end the process; and in a temporary
   folder, since some write a file. */
static int status_of(int i, volatile int *at)
{
    int status;
    const char *folder = test_temporary("");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        if (!freopen("/dev/null", "w", stdout) || chdir(folder))
            _exit(2);
        null_call(i, at);
        _exit(0);
    }
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

CPU_TEST(null_calls, no_exported_function_crashes)
{
    volatile int *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(at != MAP_FAILED);
    for (int i = 0; null_call_name(i); i++) {
        const int status = status_of(i, at);
        char argument[32] = "all arguments 0";
        if (*at > 0)
            snprintf(argument, sizeof argument, "argument %d NULL", *at);
        /* A sanitizer ends the process with a code; sb_communicator_abort is to end it. */
        const bool ends = strcmp(null_call_name(i), "sb_communicator_abort") == 0;
        cr_expect(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || ends), "%s with %s: status %x",
                  null_call_name(i), argument, (unsigned)status);
    }
    munmap((void *)(uintptr_t)at, sizeof *at);
}
