/*
 * A kernel that accesses unmapped memory causes a segmentation fault. The signal handler does not
 * return to the instruction: like every kernel error, it switches to the host, which continues
 * after the kernel. Under the sanitizers, the sanitizers report faults.
 */
#include "emulator.h"
#include "sanitizers.h"
#include <signal.h>

namespace emulator
{

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction before[3]; /* the previous handlers */

static const char *explain(int number, const siginfo_t *info)
{
    const char *address = static_cast<const char *>(info->si_addr);
    if (number == SIGFPE)
        return "an integer was divided by zero, or its quotient does not fit";
    if (fiber_stack_is_full(address))
        return "the thread's stack is full: too many or too large local variables";
    if (info->si_code == SI_KERNEL)
        return "a vector was loaded or stored at an address that is not aligned to its size, or "
               "the "
               "address is wild";
    if (memory_holds(address))
        return "device memory was touched outside of any allocation";
    if (reinterpret_cast<uintptr_t>(address) < 4096)
        return "a null pointer was used";
    return "memory was touched that is not the device's";
}

static void on_fault(int number, siginfo_t *info, void *)
{
    if (running_grid && !fiber_is_host()) {
        fail_for_good(number == SIGFPE ? cudaErrorLaunchFailure : cudaErrorIllegalAddress);
        kernel_error("%s (at %p)", explain(number, info), info->si_addr);
    }
    if (number == SIGSEGV && memory_holds(info->si_addr))
        complain("the host touched device memory at %p", info->si_addr);
    for (int i = 0; i < 3; i++) /* return and fault again, for the previous handler */
        if (signals[i] == number)
            sigaction(number, &before[i], nullptr);
}

/* The handler needs a separate stack, in case that of the thread is full; each calling host thread
   must register it. */
void faults_catch()
{
    if (under_asan() || under_tsan())
        return;
    static char handler_stack[64 << 10];
    static thread_local bool named;
    static bool installed;
    if (!named) {
        stack_t stack = {};
        stack.ss_sp = handler_stack;
        stack.ss_size = sizeof handler_stack;
        named = sigaltstack(&stack, nullptr) == 0;
    }
    if (installed)
        return;
    installed = true;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; /* the handler may never return */
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &action, &before[i]);
}

} // namespace emulator
