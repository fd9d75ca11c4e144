/* Traces the system calls of a process, to test what it leaves when one of them fails or the
   process dies there. Calls about memory and signals are not counted, because sanitizers make some
   at arbitrary times. */
#ifndef SOFTBACK_TESTS_SUPPORT_TRACE_H
#define SOFTBACK_TESTS_SUPPORT_TRACE_H

#include <stdbool.h>

enum trace_what {
    TRACE_WATCH,       /* nothing happens */
    TRACE_KILL,        /* SIGKILL before the call takes effect */
    TRACE_FAIL,        /* the call is not made and fails with `error`; x86-64 only */
    TRACE_SHORT_WRITE, /* every write writes one byte only; x86-64 only */
};

enum { TRACE_CALLS = 4096 };

struct trace {
    bool possible; /* tracing works here; otherwise nothing else is set */
    int calls;     /* how many system calls there were */
    long number[TRACE_CALLS];
    bool killed;
    int result; /* what the body returned, unless it was killed */
};

/* Whether trace_run can do this here. */
bool trace_can(enum trace_what what);

/* Runs the body in a child process and lets `what` happen at its system call `at`, from 0. */
struct trace trace_run(int (*body)(const void *context), const void *context, enum trace_what what,
                       int at, int error);

#endif
