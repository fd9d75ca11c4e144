/* The inside of tapes and nodes, for the library's own files. */
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
    uint64_t fresh;                   /* bit i: dx of input i is to be written, not added to */
    bool widened; /* inputs are casts of bf16, to which outputs are to be cast (ops/call.h) */
    sb_tensor **in, **out; /* in the node's own block */
    sb_tensor *saved[NODE_SAVED];
    void *options;
    void (*release)(void *object); /* instead of an operation: an object that the tape owns */
    void *object;
};

/* An open tape: one entry of a thread's stack of them. */
struct open_tape {
    const sb_tape *handle;
    uint64_t serial;
    sb_mode mode;
    bool failed, backward_ran;
    sb_random *random;
    const sb_context *context; /* for operations (ops/context.h); NULL: a zero one */
    sb_node *last;
};

/* The innermost open tape, or NULL. */
struct open_tape *tape_open(void);

/* The open tape; NULL, with a message in the name of `who`, when none is open or it has failed. */
struct open_tape *tape_need(const char *who);

/* Whether backward on the tape computes a gradient for t. */
bool tape_wants_grad(const struct open_tape *tape, const sb_tensor *t);

/* Hands an object to the open tape, which calls release(object) at its end; at once on failure.
   Returns the object, or NULL. */
void *tape_own_object(void *object, void (*release)(void *object), const char *who);

/* Makes a tensor that the tape owns already the node's output. */
sb_tensor *node_adopt(sb_node *node, sb_tensor *y);

/* Like sb_node_output: an output that shares the data of input 0 from element `offset` on. */
sb_tensor *node_view(sb_node *node, int64_t offset, int rank, const int64_t *dim);

/* For a backward in which dx of input 0 is dy in another shape: makes dy that gradient, so that
   nothing is copied. False when it must be copied or added: when there is a gradient already, or
   somebody else may read dy or hold dx. */
bool node_hand_on(sb_node *node);

/* Drops what a node holds on to for backward: saved tensors and inputs. Leaves that want a gradient
   stay listed until the tape ends, so that a failure later on can take it back. */
void node_let_go(sb_node *node);

/* The name of input i, out of the operation's "x weight bias"; the last when there are fewer. */
struct input_name {
    char text[32];
};
struct input_name input_name(const sb_operation *operation, int i);

#endif
