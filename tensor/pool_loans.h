/*
 * Blocks of a pool that are lent for less than they hold: whoever gives one back only knows how
 * much was asked for.
 *
 * A hash table by address, with linear probing. It lies in memory of its own, since a pool may
 * serve a device whose memory the host cannot touch.
 */
#ifndef SOFTBACK_TENSOR_POOL_LOANS_H
#define SOFTBACK_TENSOR_POOL_LOANS_H

#include <stdbool.h>
#include <stddef.h>

struct pool_loan {
    void *block; /* NULL: no loan */
    int class;
};

struct pool_loans {
    struct pool_loan *loan;
    size_t count, room; /* room is 0 or a power of two, at most half full */
};

/* Notes the class of a block; false without memory. */
bool pool_loans_add(struct pool_loans *loans, void *block, int class);

/* The class of a block, which is forgotten; -1 when it is no loan. */
int pool_loans_take(struct pool_loans *loans, const void *block);

/* Frees the table, unless there are loans in it. */
void pool_loans_trim(struct pool_loans *loans);

#endif
