/* The flat buffers behind a set of parameters, for optimisers, clipping, averaging and files. */
#ifndef SOFTBACK_NN_FLAT_H
#define SOFTBACK_NN_FLAT_H

#include "nn/parameters.h"
#include "tensor/storage.h"

/* Moves all parameters that are not yet there into the flat buffers, and gives the gradients of
   those that are not frozen their places. False when out of memory; then values and gradients are
   unchanged. False also while shares of a batch read the set; parameters_lay_out is for them. */
bool parameters_flatten(sb_parameters *set);
bool parameters_lay_out(sb_parameters *set);

/* The values alone, for a model that is not trained. */
bool parameters_join(sb_parameters *set);

/* Between parameters_share(set, true), which fails if it was called already, and (set, false),
   shares of a batch read the set (nn/shares.h), and what would change it fails. */
bool parameters_share(sb_parameters *set, bool begin);
bool parameters_may_change(const char *who, const sb_parameters *set);

/* The flat buffers: all values, and the gradients of the parameters that are not frozen, in the
   same order. Moments of optimisers and averages have the layout of the gradients. The gradient of
   a parameter is stale unless its grad_current is set. NULL before the first parameters_flatten. */
sb_tensor *parameters_values(const sb_parameters *set);
sb_tensor *parameters_gradients(const sb_parameters *set);

/*
 * From now on `fits` is called for each parameter before it is allocated. So a model is built only
 * if its parameters match the tensors of a file, and sizes in a hostile file allocate no memory.
 * NULL ends this.
 */
typedef bool parameters_check(const void *context, const char *name, int rank, const int64_t *dim);
void parameters_restrict(sb_parameters *set, parameters_check *fits, const void *context);

/* A number that changes with the layout of the gradients, when parameters are added, frozen or
   thawed; 0 before the first parameters_flatten. */
int64_t parameters_layout(const sb_parameters *set);
bool parameters_is_frozen(const sb_parameters *set, int64_t i);

/* A position in a set. parameters_return removes the parameters that were added after it and
   restores the random stream. The set must not be flattened in between. */
struct parameters_mark {
    int64_t count, size;
    sb_random random;
    sb_communicator *ranks;
};
struct parameters_mark parameters_mark(const sb_parameters *set);
void parameters_return(sb_parameters *set, const struct parameters_mark *mark);

/* Zeroes the stale parts of the gradient buffer, so that one pass can read all of it, or `count`
   elements from `first` on. */
void parameters_settle_gradients(sb_parameters *set);
bool parameters_settle_part(sb_parameters *set, int64_t first, int64_t count);

/*
 * This rank's part of a parameter: the unsharded tensor has rows of `of` numbers, and this rank
 * holds the columns first .. first + here - 1.
 */
struct part {
    int64_t rows, here, of, first;
};
struct part parameters_part(const sb_parameters *set, int64_t i);
/* Whether parameter i is distributed over ranks, and the ranks; NULL: none. */
bool parameters_is_cut(const sb_parameters *set, int64_t i);
sb_communicator *parameters_ranks(const sb_parameters *set);
/* Stores the shape of the unsharded parameter i in dim; returns its rank. */
int parameters_whole(const sb_parameters *set, int64_t i, int64_t dim[SB_MAX_RANK]);

/* The offset of parameter i in a flat buffer, which is as long as the values or as the gradients;
   past the last one, its size. */
int64_t parameters_offset(const sb_parameters *set, const sb_tensor *flat, int64_t i);
/* The parameter that holds an element of a flat buffer. */
int64_t parameters_at(const sb_parameters *set, const sb_tensor *flat, int64_t element);

/* ---- parts.c: distributed parameters, gathered and scattered again, for files and for tests ----
 */

/*
 * The unsharded values of `count` parameters from number `first` on, concatenated in a new tensor
 * (n) on the CPU. `flat` is a flat buffer: of the parameters, or of gradients or moments, which
 * frozen parameters have none of. All ranks call it and get the same.
 */
sb_tensor *parts_join(const sb_parameters *set, const sb_tensor *flat, int64_t first,
                      int64_t count);

/* The inverse: copies this rank's part of such a tensor into the flat buffer. */
bool parts_take(const sb_parameters *set, sb_tensor *flat, int64_t first, int64_t count,
                const sb_tensor *whole);

/* The number of unsharded values of the parameters that the flat buffer has. */
int64_t parts_size(const sb_parameters *set, const sb_tensor *flat, int64_t first, int64_t count);

#endif
