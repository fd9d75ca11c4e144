/* The counters in a checkpoint's metadata, by name. Doubles and fingerprints are hexadecimal texts,
   exact to the bit. */
#ifndef SOFTBACK_MODELS_TRAINING_METADATA_COUNTERS_H
#define SOFTBACK_MODELS_TRAINING_METADATA_COUNTERS_H

#include "models/training/metadata.h"
#include "tensor/json.h"

/* One counter, bound to metadata: its one non-NULL pointer says type and place. */
struct counter {
    const char *name;
    int64_t *whole;    /* not negative */
    uint64_t *natural; /* a whole number too */
    double *real;
    bool *flag;
    uint64_t *mark;    /* a fingerprint */
    struct kept *kept; /* an object: fingerprints by step */
};

enum { MOST_COUNTERS = 24 };

struct counters {
    const char *owner;                    /* in messages: "state" */
    struct counter at[MOST_COUNTERS + 1]; /* ended by one without a name */
};

struct counters counters_of_state(struct metadata *metadata);
struct counters counters_of_best(struct metadata *metadata);
struct counters counters_of_base(struct metadata *metadata);

/* NULL without memory. */
json_t *counters_to_json(const struct counters *counters);

/* Reads those of an object, which may be untrusted, or none where it is NULL. */
bool counters_read(const struct counters *counters, const json_t *object);

#endif
