/* Ranks within one process: a plug-in that keeps messages in memory, with one thread for each
   rank. */
#ifndef SOFTBACK_TESTS_SUPPORT_MAILBOX_H
#define SOFTBACK_TESTS_SUPPORT_MAILBOX_H

#include "tensor/ranks.h"
#include "tests/support/test.h"

struct mailbox;

struct mailbox *mailbox_open(int ranks);
void mailbox_close(struct mailbox *mailbox);
/* The communicator of a rank, until the end of the test. */
sb_communicator *mailbox_rank(struct mailbox *mailbox, int rank);
int64_t mailbox_sent(const sb_communicator *c); /* the number of bytes that the rank has sent */

/* Calls the body once for each rank, each in a thread of its own. Where a device is in use, which
   is one for all of them, they take turns: another rank runs when this one waits for a message. */
void mailbox_run(int ranks, void (*body)(sb_communicator *c, void *context), void *context);

/* ---- parts of tensors, as ranks hold them ---- */

/* The `here` elements of t along an axis that a piece describes: a leaf, which requires a gradient
   if it is real. */
sb_tensor *share_part(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here);

/* Adds x to those elements of t. */
void share_add(sb_tensor *t, int axis, const sb_piece *piece, const sb_tensor *x);

#endif
