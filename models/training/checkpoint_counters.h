/* The counters in a checkpoint's metadata, by name. Doubles and fingerprints are hexadecimal texts,
   exact to the bit. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_COUNTERS_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_COUNTERS_H

#include "models/training/checkpoint_json.h"
#include "tensor/json.h"

/* double, int64_t, int, bool, uint64_t, struct kept (an object of fingerprints by step) */
enum counter_type { REAL, WHOLE, SMALL, FLAG, MARK, MODELS };

struct counter {
    const char *name;
    enum counter_type type;
    size_t offset;
};

/* Ended by one without a name. */
extern const struct counter state_counters[], best_counters[], base_counters[];

/* NULL without memory. */
json_t *counters_to_json(const struct metadata *metadata, const struct counter *counters);

/* Reads those of an object, which may be untrusted, or none where it is NULL; `owner` names it in
   messages. */
bool counters_read(const char *owner, const json_t *object, const struct counter *counters,
                   struct metadata *metadata);

#endif
