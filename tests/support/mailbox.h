/* Ranks within one process: a plug-in whose messages lie in memory, and a thread for each rank. */
#ifndef SOFTBACK_TESTS_SUPPORT_MAILBOX_H
#define SOFTBACK_TESTS_SUPPORT_MAILBOX_H

#include "tensor/ranks.h"

struct mailbox;

struct mailbox *mailbox_open(int ranks);
void mailbox_close(struct mailbox *mailbox);
/* The communicator of a rank, to be closed. */
sb_communicator *mailbox_rank(struct mailbox *mailbox, int rank);
int64_t mailbox_sent(const sb_communicator *c); /* how many bytes the rank has sent so far */

/* Calls the body once for each rank, each in a thread of its own; context[rank] may be told apart
   by the body through sb_communicator_rank. */
void mailbox_run(int ranks, void (*body)(sb_communicator *c, void *context), void *context);

#endif
