#include "autograd/tape.h"
#include "autograd/node.h"
#include "autograd/watch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static _Thread_local struct open_tape stack[TAPE_DEPTH];
static _Thread_local int depth;
static _Atomic uint64_t last_serial; /* unique in the process, because threads may share tensors */

struct open_tape *tape_open(void)
{
    return depth > 0 ? &stack[depth - 1] : NULL;
}

bool tape_is_of_thread(uint64_t serial)
{
    for (int i = 0; i < depth; i++)
        if (stack[i].serial == serial)
            return true;
    return false;
}

bool tape_evaluates(void)
{
    return tape_open()->mode == SB_NO_RECORD && !tape_open()->runs_again;
}

struct open_tape *tape_need(const char *who)
{
    struct open_tape *tape = tape_open();
    if (!tape)
        return sb_fail("%s: no tape is open; call sb_tape_begin(&tape, SB_RECORD)", who);
    return tape->failed ? NULL : tape;
}

static int find(const sb_tape *handle)
{
    for (int i = depth - 1; handle && i >= 0; i--)
        if (stack[i].handle == handle)
            return i;
    return -1;
}

void sb_tape_begin_with(sb_tape *tape, sb_mode mode, const sb_context *context)
{
    bool open_already = find(tape) >= 0;
    if (!tape || depth == TAPE_DEPTH) {
        sb_fail(tape ? "tape_begin: %d tapes are open already; was one never closed?"
                     : "tape_begin: tape is NULL",
                TAPE_DEPTH);
        return;
    }
    struct open_tape *opened = &stack[depth];
    *opened = (struct open_tape){.handle = tape,
                                 .serial = tape->serial = ++last_serial,
                                 .mode = mode,
                                 .random = depth > 0 ? stack[depth - 1].random : NULL,
                                 .random_given = depth > 0 && stack[depth - 1].random_given,
                                 .context = context,
                                 .tf32 = depth > 0 && stack[depth - 1].tf32,
                                 .twins = depth > 0 ? stack[depth - 1].twins : NULL,
                                 .replicas = depth > 0 ? stack[depth - 1].replicas : NULL};
    depth++;
    failure_watch(&stack[depth - 1].failed);
    if (open_already)
        sb_fail("tape_begin: this tape is open already; an earlier one was never closed");
    else if (mode != SB_RECORD && mode != SB_NO_RECORD)
        sb_fail("tape_begin: %d is not a mode", (int)mode);
}

void sb_tape_begin(sb_tape *tape, sb_mode mode)
{
    sb_tape_begin_with(tape, mode, depth > 0 ? stack[depth - 1].context : NULL);
}

static void node_free(sb_node *node)
{
    node_free_data(node);
    for (int i = 0; i < node->inputs; i++)
        sb_tensor_release(node->in[i]);
    for (int i = 0; i < node->made; i++) { /* who retains an output has a constant */
        sb_tensor *y = node->out[i];
        y->requires_grad = y->keep = false;
        y->tape = 0;
        y->neighbour = y->rounds = NULL;
        sb_tensor_release(y);
    }
    if (node->release)
        node->release(node->object);
    memory_free(node);
}

/* Frees the innermost tape; true if nothing failed on it. */
static bool pop(void)
{
    struct open_tape *tape = &stack[depth - 1];
    bool ok = !tape->failed;
    watch_tell(WATCHED_DONE, NULL);
    for (sb_node *node = tape->last, *previous; node; node = previous) {
        previous = node->previous;
        node_free(node);
    }
    depth--;
    failure_watch(depth > 0 ? &stack[depth - 1].failed : NULL);
    if (depth == 0)
        failure_settled();
    return ok;
}

bool sb_tape_end(sb_tape *tape)
{
    int place = find(tape);
    if (place < 0)
        return sb_fail("tape_end: this tape is not open");
    int inner = depth - 1 - place;
    bool ok = true;
    for (int i = place; i < depth; i++)
        if (stack[i].visited)
            return sb_fail(
                "tape_end: backward still runs on this tape, or on one inside it; end it "
                "when backward has returned");
    while (depth > place)
        ok = pop() && ok;
    if (inner > 0)
        return sb_fail("tape_end: %d tape%s opened inside this one %s never closed%s%s", inner,
                       inner > 1 ? "s" : "", inner > 1 ? "were" : "was",
                       ok ? "" : "; before that: ", ok ? "" : sb_error());
    return ok;
}

sb_tensor *sb_tape_end_keep(sb_tape *tape, sb_tensor *y)
{
    sb_tensor_retain(y);
    if (!sb_tape_end(tape)) {
        sb_tensor_release(y);
        return sb_fail("%s", sb_error()); /* fails the outer tape too */
    }
    if (y && depth > 0)
        return sb_tape_own(y);
    sb_tensor_release(y);
    return y ? sb_fail("tape_end_keep: no tape is open around this one")
             : fail_null("tape_end_keep", "y");
}

void sb_tape_random(sb_tape *tape, sb_random *random)
{
    int place = find(tape);
    if (place < 0) {
        sb_fail("tape_random: this tape is not open");
        return;
    }
    stack[place].random = random;
    stack[place].random_given = true;
}

sb_tensor *sb_keep(sb_tensor *t)
{
    if (!t)
        return fail_null("keep", "t");
    if (!tensor_restore(t) || !tensor_readable("keep", t))
        return NULL;
    t->keep = true;
    return t;
}

bool tape_wants_grad(const struct open_tape *tape, const sb_tensor *t)
{
    bool leaf = t->tape == 0;
    return tape->mode == SB_RECORD && t->requires_grad && (leaf || t->tape == tape->serial);
}

/* ---- the watcher ---- */

static const struct watcher *watching;

void watch_operations(const struct watcher *watcher)
{
    watching = watcher;
}

bool watch_is_on(void)
{
    return watching != NULL;
}

void watch_tell(enum watched what, const sb_node *node)
{
    if (watching)
        watching->see(watching->context, what, node);
}
