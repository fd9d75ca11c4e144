/* A stored model in float64, and a batch of pairs for it. */
#ifndef SOFTBACK_PROGRAM_RUN_STORED_TWIN_H
#define SOFTBACK_PROGRAM_RUN_STORED_TWIN_H

#include "models/data/data.h"
#include "models/model_twin.h"

struct stored_twin_request {
    const char *path;        /* of the model */
    const char *data, *task; /* one of them: a file of pairs, or a built-in task */
    int64_t count;           /* of pairs in the batch */
};

struct stored_twin {
    struct model_twin twin;
    struct checkpoint *checkpoint;
    sb_pairs *pairs;
    sb_data *data;
};

/* The batch has the first pairs of the file, or of the task's held-out pairs. To be closed also
   after a failure. */
bool stored_twin_open(struct stored_twin *stored, const struct stored_twin_request *request);
void stored_twin_close(struct stored_twin *stored);

#endif
