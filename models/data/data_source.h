/* The data of a source of batches. */
#ifndef SOFTBACK_MODELS_DATA_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_DATA_SOURCE_H

#include "models/data/data.h"

/* The data of sb_data_as_source; NULL, without a message, for other sources. */
sb_data *data_of_source(const sb_source *source);

#endif
