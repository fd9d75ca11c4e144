/* Parameters and the state of an optimiser in files of the safetensors format, for training loops
   of one's own. sb_checkpoint_save stores a trainer (models/training/model_file.h). */
#ifndef SOFTBACK_NN_PARAMETERS_FILE_H
#define SOFTBACK_NN_PARAMETERS_FILE_H

#include "optimiser.h"

/*
 * Writes the parameters whose names match (nn/groups.h; NULL: all) under their names. An existing
 * file is replaced atomically. Fails when no parameter matches, when ranks hold parts of the set,
 * and when the file cannot be written.
 */
SB_API bool sb_parameters_save(const sb_parameters *set, const char *pattern, const char *path);

/* What was read, and what a file and a set do not have in common; to be freed with
   sb_loaded_free. */
typedef struct {
    int64_t count;   /* parameters that were read */
    char *missing;   /* names of parameters that match, but are not in the file, one a line */
    char *left_over; /* names of tensors in the file that match, but are not in the set */
} sb_loaded;

/*
 * Reads the parameters whose names match (NULL: all). Reals of any dtype are converted to that of
 * the set, and adapters that were added by name get the file's scale. Fails, and changes nothing,
 * when a shape differs, a tensor is not of reals, or an adapter (nn/lora.h) has another scale, and
 * without `loaded` also when anything is missing or left over: the message names the first. Fails
 * as well when nothing was read, and when ranks hold parts of the set.
 */
SB_API bool sb_parameters_load(sb_parameters *set, const char *pattern, const char *path,
                               sb_loaded *loaded);
SB_API void sb_loaded_free(sb_loaded *loaded);

/*
 * The optimiser's whole state: moments under the names of their parameters, the numbers of steps,
 * what a plateau schedule has seen, and a rate from sb_optimiser_set_rate. After loading it into an
 * optimiser of the same kind, with the same parameters frozen, steps continue with the same bits.
 */
SB_API bool sb_optimiser_save(const sb_optimiser *optimiser, const char *path);
/* Fails, and changes nothing, when the file is of another kind of optimiser, or its moments are not
   those of the parameters that are trained. */
SB_API bool sb_optimiser_load(sb_optimiser *optimiser, const char *path);

#endif
