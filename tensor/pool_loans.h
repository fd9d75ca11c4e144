/*
 * The blocks of a pool that are larger than the requests they serve: the caller that frees one only
 * knows the size that it requested.
 *
 * A hash table by address, with linear probing. It has separate memory, since a pool may serve a
 * device whose memory the host cannot access.
 */
#ifndef SOFTBACK_TENSOR_POOL_LOANS_H
#define SOFTBACK_TENSOR_POOL_LOANS_H

#include <stdbool.h>
#include <stddef.h>

struct pool_loan {
    void *block; /* NULL: an empty slot */
    int class;
};

struct pool_loans {
    struct pool_loan *loan;
    size_t count, room; /* room is 0 or a power of two, at most half full */
};

/* Stores the class of a block; false when out of memory. */
bool pool_loans_add(struct pool_loans *loans, void *block, int class);

/* Removes a block and returns its class; -1 when it is not in the table. */
int pool_loans_take(struct pool_loans *loans, const void *block);

/* Frees the table unless it has entries. */
void pool_loans_trim(struct pool_loans *loans);

#endif
