/*
 * The ranks that a sequence is cut over, as attention needs them: each sends to one and receives
 * from another while it computes. Messages from one rank to another arrive in their order.
 */
#ifndef SOFTBACK_TENSOR_RING_H
#define SOFTBACK_TENSOR_RING_H

#include <stdbool.h>
#include <stddef.h>

struct ring {
    int rank, ranks;
    void *context;
    /* Starts to send host memory to a rank, and to receive from one; NULL, with a message, when it
       cannot. The memory is to be left alone until `finish` of what it returns. */
    void *(*start)(void *context, int to, const void *data, size_t bytes, int from, void *room,
                   size_t room_bytes);
    bool (*finish)(void *exchange);
};

#endif
