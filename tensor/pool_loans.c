#include "tensor/pool_loans.h"
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_ROOM = 64 };

/* The first slot for a block: the upper bits of a product (Fibonacci hashing, Knuth 1973). */
static size_t home(const struct pool_loans *loans, const void *block)
{
    uint64_t hash = (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (loans->room - 1);
}

static size_t next(const struct pool_loans *loans, size_t place)
{
    return (place + 1) & (loans->room - 1);
}

static void put(struct pool_loans *loans, struct pool_loan loan)
{
    size_t place = home(loans, loan.block);
    while (loans->loan[place].block)
        place = next(loans, place);
    loans->loan[place] = loan;
    loans->count++;
}

static bool grow(struct pool_loans *loans)
{
    struct pool_loans larger = {.room = loans->room ? 2 * loans->room : FIRST_ROOM};
    larger.loan = calloc(larger.room, sizeof *larger.loan);
    if (!larger.loan)
        return false;
    for (size_t i = 0; i < loans->room; i++)
        if (loans->loan[i].block)
            put(&larger, loans->loan[i]);
    free(loans->loan);
    *loans = larger;
    return true;
}

bool pool_loans_add(struct pool_loans *loans, void *block, int class)
{
    if (2 * (loans->count + 1) > loans->room && !grow(loans))
        return false;
    put(loans, (struct pool_loan){block, class});
    return true;
}

/* Empties a slot. Later entries, up to the next empty slot, move up if the gap would otherwise end
   their search. */
static void empty(struct pool_loans *loans, size_t gap)
{
    size_t mask = loans->room - 1;
    for (size_t place = next(loans, gap); loans->loan[place].block; place = next(loans, place)) {
        size_t from = home(loans, loans->loan[place].block);
        if (((place - from) & mask) >= ((place - gap) & mask)) {
            loans->loan[gap] = loans->loan[place];
            gap = place;
        }
    }
    loans->loan[gap].block = NULL;
    loans->count--;
}

int pool_loans_take(struct pool_loans *loans, const void *block)
{
    if (loans->count == 0)
        return -1;
    for (size_t place = home(loans, block); loans->loan[place].block; place = next(loans, place))
        if (loans->loan[place].block == block) {
            int class = loans->loan[place].class;
            empty(loans, place);
            return class;
        }
    return -1;
}

void pool_loans_trim(struct pool_loans *loans)
{
    if (loans->count > 0)
        return;
    free(loans->loan);
    *loans = (struct pool_loans){0};
}
