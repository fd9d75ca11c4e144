/* Counters in a checkpoint's metadata, by name. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_COUNTERS_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_COUNTERS_H

#include "models/training/checkpoint_json.h"
#include "tensor/json.h"

/* Doubles and fingerprints are written as hexadecimal texts, exact to the bit. */
enum counter_type { WHOLE, SMALL, REAL, FLAG, MARK }; /* int64_t, int, double, bool, uint64_t */

struct counter {
    const char *name;
    enum counter_type type;
    size_t offset;
};

extern const struct counter state_counters[], best_counters[], base_counters[];

/* NULL: no memory. */
json_t *counters_to_json(const struct metadata *metadata, const struct counter *counters);

/* Reads counters that may be untrusted; NULL has none. The owner is what messages call it. */
bool counters_read(const char *owner, const json_t *all, const struct counter *counters,
                   struct metadata *metadata);

#endif
