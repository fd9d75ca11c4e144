#include "tests/support/trace.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <linux/ptrace.h> /* sys/ptrace.h does not compile after it */
#if defined(__x86_64__)
#include <sys/user.h>
#define CAN_CHANGE_CALLS true

/* Cancels the system call that the child is about to make, or shortens it. */
static void change_entry(pid_t child, enum trace_what what)
{
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    if (what == TRACE_FAIL)
        registers.orig_rax = (unsigned long long)-1;
    else if (registers.orig_rax == SYS_write && registers.rdx > 1)
        registers.rdx = 1;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
}

static void change_result(pid_t child, int error)
{
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    registers.rax = (unsigned long long)-error;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
}
#else
#define CAN_CHANGE_CALLS false
static void change_entry(pid_t child, enum trace_what what)
{
    (void)child, (void)what;
}

static void change_result(pid_t child, int error)
{
    (void)child, (void)error;
}
#endif

static bool is_counted(long number)
{
    static const long others[] = {SYS_mmap,           SYS_munmap,       SYS_mprotect, SYS_brk,
                                  SYS_madvise,        SYS_sigaltstack,  SYS_futex,    SYS_gettid,
                                  SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_tgkill,   SYS_getpid,
                                  SYS_exit_group};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] == number)
            return false;
    return true;
}

bool trace_can(enum trace_what what)
{
    return what == TRACE_WATCH || what == TRACE_KILL || CAN_CHANGE_CALLS;
}

/* Lets the child run to its next entry into or exit from a system call; false when it has ended. */
static bool step(pid_t child, int *status)
{
    for (int deliver = 0;; deliver = WSTOPSIG(*status)) {
        ptrace(PTRACE_SYSCALL, child, 0, deliver); /* fails when it has just been killed */
        if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status))
            return false;
        if (WSTOPSIG(*status) == (SIGTRAP | 0x80))
            return true;
    }
}

static void follow(struct trace *trace, pid_t child, enum trace_what what, int at, int error)
{
    int status = 0;
    bool fails = false;
    while (step(child, &status)) {
        struct ptrace_syscall_info info;
        ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && fails)
            change_result(child, error);
        fails = false;
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !is_counted((long)info.entry.nr))
            continue;
        if (trace->calls < TRACE_CALLS)
            trace->number[trace->calls] = (long)info.entry.nr;
        bool here = trace->calls++ == at;
        if (here && what == TRACE_KILL)
            kill(child, SIGKILL);
        fails = here && what == TRACE_FAIL;
        if (fails || what == TRACE_SHORT_WRITE)
            change_entry(child, what);
    }
    trace->killed = WIFSIGNALED(status);
    trace->result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct trace trace_run(int (*body)(const void *context), const void *context, enum trace_what what,
                       int at, int error)
{
    struct trace trace = {0};
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(0);
        raise(SIGSTOP);
        syscall(SYS_exit_group, body(context)); /* _exit could make other system calls */
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return trace;
    trace.possible = ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD) == 0;
    if (trace.possible)
        follow(&trace, child, what, at, error);
    return trace;
}
#else
bool trace_can(enum trace_what what)
{
    (void)what;
    return false;
}

struct trace trace_run(int (*body)(const void *context), const void *context, enum trace_what what,
                       int at, int error)
{
    (void)body, (void)context, (void)what, (void)at, (void)error;
    return (struct trace){0};
}
#endif
