#include "autograd/tape.h"
#include "autograd/listener.h"
#include "autograd/node.h"
#include "autograd/watch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static _Thread_local struct open_tape stack[TAPE_DEPTH];
static _Thread_local int depth;
static _Atomic uint64_t last_serial; /* unique in the process, whose threads may share tensors */

struct open_tape *tape_open(void)
{
    return depth > 0 ? &stack[depth - 1] : NULL;
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

void sb_tape_begin(sb_tape *tape, sb_mode mode)
{
    bool open_already = find(tape) >= 0;
    if (!tape || depth == TAPE_DEPTH) {
        sb_fail(tape ? "tape_begin: %d tapes are open already; was one never closed?"
                     : "tape_begin: tape is NULL",
                TAPE_DEPTH);
        return;
    }
    struct open_tape *opened = &stack[depth];
    *opened = depth > 0 ? stack[depth - 1] : (struct open_tape){0};
    opened->handle = tape;
    opened->serial = tape->serial = ++last_serial;
    opened->mode = mode;
    opened->failed = opened->backward_ran = false;
    opened->listener = NULL;
    opened->last = NULL;
    depth++;
    failure_watch(&stack[depth - 1].failed);
    if (open_already)
        sb_fail("tape_begin: this tape is open already; an earlier one was never closed");
    else if (mode != SB_RECORD && mode != SB_NO_RECORD)
        sb_fail("tape_begin: %d is not a mode", (int)mode);
}

static void become_constant(sb_tensor *t)
{
    t->requires_grad = false;
    t->tape = 0;
    t->keep = false;
}

static void node_free(sb_node *node)
{
    node_let_go(node);
    for (int i = 0; i < node->inputs; i++)
        sb_tensor_release(node->in[i]);
    for (int i = 0; i < node->made; i++) {
        become_constant(node->out[i]);
        sb_tensor_release(node->out[i]);
    }
    if (node->release)
        node->release(node->object);
    memory_free(node);
}

/* Frees the innermost tape; true when nothing failed on it. */
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
        return sb_fail("%s", sb_error()); /* fails the tape around too */
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
    if (place < 0)
        sb_fail("tape_random: this tape is not open");
    else
        stack[place].random = random;
}

sb_piece sb_piece_zigzag(int64_t length, int ranks, int rank, int64_t *here)
{
    const int64_t chunks = 2 * (int64_t)ranks, other = chunks - 1 - rank;
    const int64_t first = length * rank / chunks, turn = length * (rank + 1) / chunks - first;
    const int64_t second = length * other / chunks;
    *here = turn + length * (other + 1) / chunks - second;
    return turn > 0 ? (sb_piece){length, first, turn, second} : (sb_piece){length, second, 0, 0};
}

static bool is_piece(const sb_piece *piece)
{
    return piece->of >= 0 && piece->first >= 0 && piece->turn >= 0 && piece->second >= 0;
}

void sb_tape_share(sb_tape *tape, const sb_share *share)
{
    int place = find(tape);
    const sb_share s = share ? *share : (sb_share){0};
    if (place < 0)
        sb_fail("tape_share: this tape is not open");
    else if (!is_piece(&s.sentences) || !is_piece(&s.heads) || !is_piece(&s.source) ||
             !is_piece(&s.target))
        sb_fail("tape_share: a piece has a negative number");
    else
        stack[place].share = s;
}

int tape_runs(int64_t here, struct run run[2])
{
    static const sb_piece all = {0};
    const struct open_tape *tape = tape_open();
    share_runs(tape ? share_sequence(&tape->share, tape->rows) : &all, here, run);
    return run[1].count > 0 ? 2 : 1;
}

void tape_ring(sb_tape *tape, sb_communicator *ring)
{
    int place = find(tape);
    if (place < 0)
        sb_fail("tape_ring: this tape is not open");
    else
        stack[place].ring = ring;
}

void tape_packs(sb_tape *tape, struct packed_weights *packed)
{
    int place = find(tape);
    if (place < 0)
        sb_fail("tape_packs: this tape is not open");
    else
        stack[place].packed = packed;
}

void tape_sequences(enum sequence rows, enum sequence keys)
{
    if (depth > 0) {
        stack[depth - 1].rows = rows;
        stack[depth - 1].keys = keys;
    }
}

void tape_heads(sb_piece heads)
{
    if (depth > 0)
        stack[depth - 1].share.heads = heads;
}

void tape_listen(sb_tape *tape, const struct listener *listener)
{
    int place = find(tape);
    if (place < 0)
        sb_fail("tape_listen: this tape is not open");
    else
        stack[place].listener = listener;
}

sb_tensor *sb_keep(sb_tensor *t)
{
    if (!t)
        return fail_null("keep", "t");
    if (!tensor_readable("keep", t))
        return NULL;
    t->keep = true;
    return t;
}

bool tape_wants_grad(const struct open_tape *tape, const sb_tensor *t)
{
    bool leaf = t->tape == 0;
    return tape->mode == SB_RECORD && t->requires_grad && (leaf || t->tape == tape->serial);
}
