/*
 * A description: all of a model but its weights. It has values by name, all of them texts,
 * vocabularies by name, and the labels of classes. A model is built from a description and can
 * write one; files contain it (models/training/checkpoint.h).
 */
#ifndef SOFTBACK_MODELS_DESCRIPTION_H
#define SOFTBACK_MODELS_DESCRIPTION_H

#include "../tensor/communicator.h"
#include "text/vocabulary.h"

typedef struct sb_description sb_description;

/* A description of a model of this kind, a name that is copied. */
SB_API sb_description *sb_description_new(const char *kind);
SB_API void sb_description_free(sb_description *description);
SB_API const char *sb_description_kind(const sb_description *description);

/* Sets a value, or changes it. Values keep the order in which they were set first. */
SB_API bool sb_description_set(sb_description *description, const char *name, const char *value);
/* Sets a value to a number, in the fewest digits that restore its bits. */
SB_API bool sb_description_set_number(sb_description *description, const char *name, double value);

/* The value of this name; NULL, without a message, where there is none. */
SB_API const char *sb_description_get(const sb_description *description, const char *name);
/* The value of this name as a number in least..most. Fails when it is missing, not a number or out
   of range, as values of untrusted files may be. */
SB_API bool sb_description_number(const sb_description *description, const char *name, double least,
                                  double most, double *value);

/* The i-th value, in their order; NULL past the last. */
SB_API const char *sb_description_name(const sb_description *description, int64_t i);
SB_API const char *sb_description_value(const sb_description *description, int64_t i);

/* Adds a vocabulary, which is retained; one may have several names. */
SB_API bool sb_description_add_vocabulary(sb_description *description, const char *name,
                                          sb_vocabulary *vocabulary);
/* The vocabulary of this name, which the description owns; fails when there is none. */
SB_API sb_vocabulary *sb_description_vocabulary(const sb_description *description,
                                                const char *name);

/* Adds the label of the next class, and the i-th one; NULL past the last. */
SB_API bool sb_description_add_label(sb_description *description, const char *label);
SB_API const char *sb_description_label(const sb_description *description, int64_t i);

/* The ranks over which a model that is built from it is cut by heads (tensor parallelism); NULL,
   the default: it is whole. Files do not contain this. */
SB_API void sb_description_set_ranks(sb_description *description, sb_communicator *ranks);
SB_API sb_communicator *sb_description_ranks(const sb_description *description);

#endif
