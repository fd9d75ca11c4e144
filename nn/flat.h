/* The flat buffers behind a set of parameters, for optimisers, clipping, averaging and files. */
#ifndef SOFTBACK_NN_FLAT_H
#define SOFTBACK_NN_FLAT_H

#include "nn/parameters.h"
#include "tensor/storage.h"

/* Moves all parameters into the flat buffers, where they are not yet. False when there is no
   memory; the parameters then stay where they were. */
bool parameters_flatten(sb_parameters *set);

/* The buffers, (size): values, and gradients, in which a parameter's part is stale unless its
   grad_current is set. NULL before the first parameters_flatten. */
sb_tensor *parameters_values(const sb_parameters *set);
sb_tensor *parameters_gradients(const sb_parameters *set);

/*
 * From here on asks `fits` for each parameter before it is made. So a model is built for the
 * tensors of a file and no others, and sizes that a hostile file only claims take no memory. NULL
 * ends it.
 */
typedef bool parameters_check(const void *context, const char *name, int rank, const int64_t *dim);
void parameters_restrict(sb_parameters *set, parameters_check *fits, const void *context);

/* A position in a set. parameters_return removes the parameters that were added after it, and sets
   the random stream back. The set must not have been flattened in between. */
struct parameters_mark {
    int64_t count, size;
    sb_random random;
    sb_communicator *ranks;
};
struct parameters_mark parameters_mark(const sb_parameters *set);
void parameters_return(sb_parameters *set, const struct parameters_mark *mark);

/* Zeroes the stale parts of the gradient buffer, so that a pass may run over all of it; or over
   `count` elements from number `first` on. */
void parameters_settle_gradients(sb_parameters *set);
bool parameters_settle_part(sb_parameters *set, int64_t first, int64_t count);

/*
 * A parameter as rows of the whole, `of` numbers each, of which `here`, from number `first` on, lie
 * here: rows of `here` numbers.
 */
struct part {
    int64_t rows, here, of, first;
};
struct part parameters_part(const sb_parameters *set, int64_t i);
/* Whether this rank holds only a part of parameter i, and which ranks hold such parts; NULL: none.
 */
bool parameters_is_cut(const sb_parameters *set, int64_t i);
sb_communicator *parameters_ranks(const sb_parameters *set);
/* A fingerprint as sb_parameters_fingerprint makes it, of those that are cut or of the others. */
uint64_t parameters_fingerprint(const sb_parameters *set, bool cut);
/* The shape of the whole of parameter i, into dim; how many axes it has. */
int parameters_whole(const sb_parameters *set, int64_t i, int64_t dim[SB_MAX_RANK]);

/* The parameter that holds element i of the flat buffers. */
int64_t parameters_at(const sb_parameters *set, int64_t element);
/* Where parameter i begins in the flat buffers; past the last: where they end. */
int64_t parameters_offset(const sb_parameters *set, int64_t i);

#endif
