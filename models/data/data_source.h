/* From a source back to the data behind it. */
#ifndef SOFTBACK_MODELS_DATA_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_DATA_SOURCE_H

#include "models/data/data.h"

/* What sb_data_as_source was given; NULL, without a message, where the source is another one. */
sb_data *data_of_source(const sb_source *source);

#endif
