/* Tensors of a set of parameters in files: one reader and one writer for parameters, optimisers
   and checkpoints, also where ranks hold parts of the set. */
#ifndef SOFTBACK_NN_STORED_H
#define SOFTBACK_NN_STORED_H

#include "nn/optimiser.h"
#include "tensor/safetensors.h"

/* One tensor of a file, with the unsharded shape of parameter i. */
struct stored {
    char *name;
    int64_t i;       /* -1: it is `flat`, of any shape */
    sb_tensor *flat; /* a buffer that has it from element `at` on; NULL: the parameter itself */
    int64_t at;
};

/* To be freed with stored_free, also after a failure. */
struct stored_list {
    sb_parameters *set;
    int64_t n, room;
    struct stored *item;
};

/* Adds an item, with a copy of its name after a prefix; `flat` is retained. */
bool stored_add(struct stored_list *list, const char *prefix, const char *name,
                const struct stored *item);
void stored_free(struct stored_list *list);

/* ---- writing; ranks that hold parts of the set call it together, and the first one writes ---- */

/* The fingerprint that a file of these tensors has. */
bool stored_fingerprint(const struct stored_list *list, uint64_t *fingerprint);

/* Writes the file, as sb_safetensors_save does; is_new: it must not exist. */
bool stored_save(const char *path, const struct stored_list *list, bool is_new, int pairs,
                 const char *const metadata[][2]);

/* ---- reading ---- */

/* An open file, whose tensors are read at most once. */
struct stored_file {
    sb_safetensors *tensors; /* NULL: not open */
    bool *was_read;          /* tensor i */
    uint64_t sum;            /* of the terms of those (nn/fingerprint.h) */
};

bool stored_open(struct stored_file *file, const char *path);
void stored_close(struct stored_file *file);

/* Reads the values of an item; fails if the file has none of its name, dtype and shape. */
bool stored_read(struct stored_file *file, const struct stored_list *list, int64_t item);

/* Reads the tensors that were not read yet, and stores the fingerprint of the file. */
bool stored_read_rest(struct stored_file *file, uint64_t *fingerprint);

/* ---- the state of an optimiser ---- */

/*
 * Its moments are the tensors "optimiser.moment.0.NAME" and ".1.NAME". "optimiser.steps" is there
 * if parameters have taken different numbers of steps, for lack of a gradient. The metadata are the
 * kind of the optimiser and its numbers: whole ones, and reals in hexadecimal, exact to the bit.
 */
enum { STATE_NUMBERS = 6, STATE_PAIRS = 1 + STATE_NUMBERS };
struct state_text {
    const char *pair[STATE_PAIRS][2];
    char number[STATE_NUMBERS][40];
};
void optimiser_write(const sb_optimiser *optimiser, struct state_text *text);
bool optimiser_list(const sb_optimiser *optimiser, struct stored_list *list);

struct optimiser_counts {
    int64_t steps;
    double rate; /* from sb_optimiser_set_rate; NAN: none was set */
    sb_plateau plateau;
};
bool optimiser_read_counts(const struct stored_file *file, struct optimiser_counts *counts);

/* Reads all of it. A failure changes nothing, unless it is read in place, which needs less memory.
 */
bool optimiser_read(struct stored_file *file, sb_optimiser *optimiser, bool in_place);

#endif
