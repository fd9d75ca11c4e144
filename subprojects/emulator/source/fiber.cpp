/*
 * A fiber is a separate call stack. A switch saves the callee-saved registers on this stack, stores
 * its top, loads the top of the other stack, and restores its registers. The other fiber then
 * returns from the call in which it switched away. Nothing runs in parallel, and there are no
 * system calls: a switch costs about as much as two function calls, so 1024 CUDA threads can wait
 * for each other thousands of times in a millisecond.
 *
 * On x86-64 the switch has fifteen instructions; elsewhere, or with -DSOFTBACK_EMULATOR_UCONTEXT,
 * it is swapcontext, which is many times slower since it also sets the signal mask by a system
 * call.
 */
#include "emulator.h"
#include "sanitizers.h"
#include <sys/mman.h>

#if defined(__x86_64__) && defined(__linux__) && !defined(SOFTBACK_EMULATOR_UCONTEXT)
#define IN_ASSEMBLER 1
#else
#define IN_ASSEMBLER 0
#include <ucontext.h>
#endif

namespace emulator
{

const size_t stack_bytes = 256 << 10;
/* As large as the local variables of a CUDA thread may be: a stack overflow lands here and not in
   the next stack. Only touched pages cost memory. */
const size_t guard_bytes = 512 << 10;

struct Fiber {
    const void *stack; /* its lowest address; guard_bytes below it are inaccessible */
    size_t stack_size;
    void (*entry)();
    bool started;
    void *tsan;       /* the thread sanitizer's handle */
    void *fake_stack; /* the address sanitizer's state while it waits */
#if IN_ASSEMBLER
    void *top; /* of the stack, while it waits */
#else
    ucontext_t context;
#endif
};

static Fiber host; /* the stack of the program that called */
static Fiber *running = &host;
static Fiber *left; /* the previous fiber */

#if IN_ASSEMBLER
/* Saves the callee-saved registers of the System V ABI. Floating-point modes are the same in all
   fibers, so they are not saved. */
extern "C" __attribute__((visibility("hidden"))) void emulator_switch(void **from, void *to);
asm(".text\n"
    ".globl emulator_switch\n"
    ".hidden emulator_switch\n"
    ".type emulator_switch, @function\n"
    "emulator_switch:\n"
    "    push %rbp\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    push %r13\n"
    "    push %r14\n"
    "    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n"
    "    pop %r14\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    pop %rbp\n"
    "    ret\n"
    ".size emulator_switch, . - emulator_switch\n");
#endif

/* The first code on a stack after a switch to it, and so the end of each switch. */
static void arrived()
{
    if (!__sanitizer_finish_switch_fiber)
        return;
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(running->fake_stack, &bottom, &bytes);
    if (left == &host) {
        host.stack = bottom;
        host.stack_size = bytes;
    }
}

static void begin()
{
    arrived();
    running->entry();
}

static void set_start(Fiber *fiber)
{
    char *end = static_cast<char *>(const_cast<void *>(fiber->stack)) + stack_bytes;
#if IN_ASSEMBLER
    /* If all stacks began at the same page offset, their tops would compete for the same few lines
       of the first-level cache. */
    static unsigned made;
    void **top = reinterpret_cast<void **>(end - made++ * 5 % 61 * 64 - 128);
    *--top = nullptr; /* `begin` would return to here; it also aligns the stack as in a call */
    *--top = reinterpret_cast<void *>(begin);
    for (int preserved = 0; preserved < 6; preserved++)
        *--top = nullptr;
    fiber->top = top;
#else
    (void)end;
    getcontext(&fiber->context);
    fiber->context.uc_stack = {};
    fiber->context.uc_stack.ss_sp = const_cast<void *>(fiber->stack);
    fiber->context.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber->context, begin, 0);
#endif
}

static char *stack_new()
{
    void *memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        complain("no memory for another stack");
        abort();
    }
    mprotect(memory, guard_bytes, PROT_NONE);
    return static_cast<char *>(memory) + guard_bytes;
}

Fiber *fiber_new(void (*entry)())
{
    Fiber *fiber = new Fiber();
    fiber->stack = stack_new();
    fiber->stack_size = stack_bytes;
    fiber->entry = entry;
    fiber_restart(fiber);
    return fiber;
}

void fiber_restart(Fiber *fiber)
{
    unpoison(const_cast<void *>(fiber->stack), stack_bytes);
    if (under_tsan()) {
        if (fiber->tsan)
            __tsan_destroy_fiber(fiber->tsan);
        fiber->tsan = __tsan_create_fiber(0);
    }
    fiber->fake_stack = nullptr;
    set_start(fiber);
}

void fiber_switch(Fiber *to)
{
    Fiber *from = running;
    const unsigned no_order = 1; /* a switch orders nothing: only barriers do */
    if (from == &host && under_tsan())
        host.tsan = __tsan_get_current_fiber();
    left = from;
    running = to;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_size);
    if (under_tsan())
        __tsan_switch_to_fiber(to->tsan, no_order);
#if IN_ASSEMBLER
    emulator_switch(&from->top, to->top);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived();
}

void fiber_switch_to_host()
{
    fiber_switch(&host);
}

bool fiber_is_host()
{
    return running == &host;
}

bool fiber_stack_is_full(const void *address)
{
    const char *stack = static_cast<const char *>(running->stack);
    const char *byte = static_cast<const char *>(address);
    return byte < stack && byte >= stack - guard_bytes;
}

} // namespace emulator
