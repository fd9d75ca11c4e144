/*
 * Parameters: a set of the named weights of a model, which owns them.
 *
 * Names are dotted paths, "encoder.layers.0.self_attention.query.weight". One flat buffer has all
 * values and another all gradients, in the order in which the parameters were added, so that an
 * optimiser step, clipping and averaging are one pass each.
 */
#ifndef SOFTBACK_NN_PARAMETERS_H
#define SOFTBACK_NN_PARAMETERS_H

#include "../tensor/communicator.h"
#include "../tensor/random.h"
#include "../tensor/tensor.h"

typedef struct sb_parameters sb_parameters;

typedef enum {
    SB_INITIAL_XAVIER, /* uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio 2010) */
    SB_INITIAL_NORMAL, /* normal with standard deviation `value` > 0 */
    SB_INITIAL_CONSTANT,
} sb_initial_kind;

typedef struct {
    sb_initial_kind kind;
    double value;
} sb_initial;

/* An empty set of parameters: of f32 by sb_parameters_new, of any real dtype by sb_parameters_of.
   The seed determines the initial weights, drawn in the order of sb_parameters_add. */
SB_API sb_parameters *sb_parameters_new(uint64_t seed);
SB_API sb_parameters *sb_parameters_of(sb_dtype dtype, uint64_t seed);
/* Models and optimisers of the set must not be used afterwards. NULL is allowed. */
SB_API void sb_parameters_free(sb_parameters *set);

/*
 * Adds a parameter, a leaf that requires a gradient. The set owns it; it is valid as long as the
 * set. For SB_INITIAL_XAVIER a matrix is (out, in). Fails when the name is taken, empty, or
 * longer than 200 bytes.
 */
SB_API sb_tensor *sb_parameters_add(sb_parameters *set, const char *name, int rank,
                                    const int64_t *dim, sb_initial initial);

/* Whether parameters that are added from now on get their initial values, as they do at first;
   those of others, but for adapters (lora.h), are undefined until they are read, so that loading a
   large model writes its memory once. */
SB_API void sb_parameters_draw(sb_parameters *set, bool draw);

/* How a parameter is distributed over ranks: each rank holds an equal part of an axis, in rank
   order. */
typedef struct {
    sb_communicator *ranks; /* NULL: not distributed */
    int axis;
} sb_cut;

/* Adds a distributed parameter: this rank's part of a parameter of shape (dim), with the
   same initial values as without ranks. All distributed parameters of a set use the same ranks.
   Fails also when the axis cannot be split into equal parts. */
SB_API sb_tensor *sb_parameters_add_cut(sb_parameters *set, const char *name, int rank,
                                        const int64_t *dim, sb_initial initial, sb_cut cut);

SB_API sb_dtype sb_parameters_dtype(const sb_parameters *set);
SB_API int64_t sb_parameters_count(const sb_parameters *set); /* the number of tensors */
SB_API int64_t sb_parameters_size(const sb_parameters *set); /* the number of values on this rank */
SB_API const char *sb_parameters_name(const sb_parameters *set, int64_t i);
SB_API sb_tensor *sb_parameters_get(const sb_parameters *set, int64_t i);
/* The parameter of that name; NULL, without a message, when there is none. */
SB_API sb_tensor *sb_parameters_find(const sb_parameters *set, const char *name);

/* The name of the first parameter without a gradient, from number *i on; sets *i past it. NULL when
   there is none. */
SB_API const char *sb_parameters_without_gradient(const sb_parameters *set, int64_t *i);

/* Clears all gradients, as zero_grad does in PyTorch. Fails in a loss in shares (nn/shares.h). */
SB_API bool sb_parameters_clear(sb_parameters *set);

/*
 * Clips the gradient by its global norm: with n the norm of all gradients together,
 * g *= min(1, limit / (n + 1e-6)), as clip_grad_norm_ in PyTorch. Stores n, that before clipping,
 * in *norm unless it is NULL. For a training loop that looks at gradients between backward and the
 * step; the option clip of an optimiser does the same within its step.
 *
 * Fails, and leaves the gradients unchanged, when the limit is not a positive number, when no
 * parameter has a gradient, and when the norm is not finite: the message names the first such
 * parameter. With tensor parallelism all ranks call it. Source: Pascanu, Mikolov and Bengio 2013.
 */
SB_API bool sb_parameters_clip(sb_parameters *set, double limit, double *norm);

/* The fingerprint of all values on this rank, for comparing them to the bit, with their names,
   dtype and shapes. A model's file has the same, and `softback info` prints it. */
SB_API uint64_t sb_parameters_fingerprint(const sb_parameters *set);

#endif
