/* The internals of tapes and nodes, for the library's own files. */
#ifndef SOFTBACK_AUTOGRAD_NODE_H
#define SOFTBACK_AUTOGRAD_NODE_H

#include "autograd/operation.h"
#include "autograd/tape.h"
#include "tensor/storage.h"

enum { NODE_SAVED = 4, TAPE_DEPTH = 64 };

struct sb_node {
    sb_node *previous;
    const sb_operation *operation;
    int inputs, outputs, made, saves; /* `made` of `outputs` exist so far */
    uint64_t fresh;                   /* bit i: write dx of input i instead of adding to it */
    uint64_t f32;                     /* bit i: see node_writes_f32 */
    uint64_t writes;                  /* tensor_writes() when forward read the inputs */
    bool widened; /* inputs are casts of bf16, and outputs will be cast to bf16 (ops/call.h) */
    sb_tensor **in, **out; /* in the node's own block */
    sb_tensor *saved[NODE_SAVED];
    void *options;
    void (*release)(
        void *object); /* for a node that is no operation, but an object that the tape owns */
    void *object;
};

/* An open tape: one entry in a thread's stack of tapes. */
struct open_tape {
    const sb_tape *handle;
    uint64_t serial;
    sb_mode mode;
    bool failed, backward_ran;
    bool visited;    /* backward goes through its nodes */
    bool runs_again; /* what it computes is computed again for backward (recomputation.h) */
    bool tf32;       /* products of f32 on a GPU round their operands to TF32 (nn/precision.h) */
    sb_random *random;
    bool random_given;         /* by sb_tape_random, for this tape or an outer one; NULL too */
    const sb_context *context; /* for operations (ops/context.h); NULL: zero */
    struct twins *twins;       /* of a dual tape (autograd/dual_tape.h), else NULL */
    struct replicas *replicas; /* of leaves (autograd/replicas.h), also on inner tapes; or NULL */
    sb_node *last;
};

/* The innermost open tape, or NULL. */
struct open_tape *tape_open(void);

/* Whether a tape with this serial number is open in this thread. */
bool tape_is_of_thread(uint64_t serial);

/* Whether the open tape computes for evaluation or decoding alone, which need not have the bits of
   training. */
bool tape_evaluates(void);

/* The open tape; NULL, with `who` opening the message, when none is open or it has failed. */
struct open_tape *tape_need(const char *who);

/* Whether backward on the tape computes a gradient for t. */
bool tape_wants_grad(const struct open_tape *tape, const sb_tensor *t);

/* Gives an object to the open tape, which calls release(object) at its end. On failure, releases it
   immediately and returns NULL. Returns the object. */
void *tape_own_object(void *object, void (*release)(void *object), const char *who);

/* Like sb_node_new, for inputs whose real dtypes may differ. */
sb_node *node_new_mixed(const sb_operation *operation, int inputs, sb_tensor *const in[],
                        int outputs, const void *options, size_t options_bytes);

/* Makes a tensor that the tape already owns the node's output. */
sb_tensor *node_adopt(sb_node *node, sb_tensor *y);

/* Like sb_node_output, for an output that shares the data of input 0 from element `offset` on. */
sb_tensor *node_view(sb_node *node, int64_t offset, int rank, const int64_t *dim);

/*
 * Like sb_node_output, for outputs that lie in one block, from element `offset` of it on. Backward
 * makes their gradients in one block too, at the same offsets, so that a kernel can go through all
 * of them as it went through the outputs. The caller makes the block, with node_block_room elements
 * for each output, and then closes it: outputs keep it.
 */
sb_tensor *node_block_output(sb_node *node, sb_tensor *block, int64_t offset, int rank,
                             const int64_t *dim);
void node_block_close(sb_tensor *block); /* NULL is allowed */

/* Outputs of a block begin where kernels can read 16 bytes. */
static inline int64_t node_block_room(int64_t elements)
{
    return (elements + 7) / 8 * 8;
}

/*
 * From input `first` on, backward can write dx in f32 where the input is bf16. If such an input is
 * the bf16 copy of an f32 leaf (a parameter in mixed precision), dx is the leaf's gradient, so that
 * sums are not rounded, and the copy gets no gradient unless it is kept (sb_keep).
 */
void node_writes_f32(sb_node *node, int first);

/* The tensor to whose gradient backward adds for input i: the input, or the leaf it rounds. */
sb_tensor *node_target(const sb_node *node, int i);

/* For a backward where dx of input 0 is dy in another shape: uses dy itself as dx, without a copy.
   Returns false if that is impossible, because dx exists already or dy has other readers; then the
   caller copies or adds. */
bool node_forward_gradient(sb_node *node);

/* Releases the inputs and saved tensors of a node. Leaves that require a gradient stay until the
   tape ends, so that a later failure can clear their gradients. */
void node_free_data(sb_node *node);

/* The name of input i, from the operation's "x weight bias"; the last name if there are fewer. */
struct input_name {
    char text[32];
};
struct input_name input_name(const sb_operation *operation, int i);

#endif
