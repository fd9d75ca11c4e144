/*
 * Parameters: the named weights of a model, and their one owner.
 *
 * Names are dotted paths, "encoder.layers.0.self_attention.query.weight". All data lie in one flat
 * buffer and all gradients in another, in the order in which the parameters were added, so that an
 * optimiser's step, clipping and averaging are one pass each.
 */
#ifndef SOFTBACK_NN_PARAMETERS_H
#define SOFTBACK_NN_PARAMETERS_H

#include "../tensor/communicator.h"
#include "../tensor/random.h"
#include "../tensor/tensor.h"

typedef struct sb_parameters sb_parameters;

typedef enum {
    SB_INITIAL_XAVIER, /* uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio 2010) */
    SB_INITIAL_NORMAL, /* normal, deviation `value` */
    SB_INITIAL_CONSTANT,
} sb_initial_kind;

typedef struct {
    sb_initial_kind kind;
    double value;
} sb_initial;

/* An empty set of f32 parameters (sb_parameters_of: of any real dtype). Initial weights are drawn
   from the seed, one after the other. */
SB_API sb_parameters *sb_parameters_new(uint64_t seed);
SB_API sb_parameters *sb_parameters_of(sb_dtype dtype, uint64_t seed);
/* Models and optimisers made from the set must not be used after this. NULL is allowed. */
SB_API void sb_parameters_free(sb_parameters *set);

/*
 * Adds a parameter, a leaf that requires a gradient. The set owns it; the pointer stays valid as
 * long as the set. For SB_INITIAL_XAVIER a matrix is (out, in).
 * Fails when the name is taken, empty, or longer than 200 bytes.
 */
SB_API sb_tensor *sb_parameters_add(sb_parameters *set, const char *name, int rank,
                                    const int64_t *dim, sb_initial initial);

/* How ranks hold a parameter: each an equal part of an axis, in the order of their ranks. */
typedef struct {
    sb_communicator *ranks; /* NULL: one, which holds all of it */
    int axis;
} sb_cut;

/* The same for a parameter of which this rank holds a part, that of the weights which the whole,
   (dim), would have begun with. All that are cut in a set are cut over the same ranks. Fails also
   when the axis cannot be cut into equal parts. */
SB_API sb_tensor *sb_parameters_add_cut(sb_parameters *set, const char *name, int rank,
                                        const int64_t *dim, sb_initial initial, sb_cut cut);

SB_API sb_dtype sb_parameters_dtype(const sb_parameters *set);
SB_API int64_t sb_parameters_count(const sb_parameters *set); /* how many tensors */
SB_API int64_t sb_parameters_size(const sb_parameters *set);  /* how many numbers in all, here */
SB_API const char *sb_parameters_name(const sb_parameters *set, int64_t i);
SB_API sb_tensor *sb_parameters_get(const sb_parameters *set, int64_t i);
/* NULL, without a message, when there is none of that name. */
SB_API sb_tensor *sb_parameters_find(const sb_parameters *set, const char *name);

/* The first parameter, from number `*i` on, that backward left without a gradient: its name, with
 *i set past it; NULL when there is none. */
SB_API const char *sb_parameters_without_gradient(const sb_parameters *set, int64_t *i);

/* Forgets all gradients. */
SB_API void sb_parameters_clear(sb_parameters *set);

/* A 64-bit fingerprint (FNV-1a) of all values here, the same wherever the bits are the same. */
SB_API uint64_t sb_parameters_fingerprint(const sb_parameters *set);

#endif
