/* Internal functions of data. */
#ifndef SOFTBACK_MODELS_DATA_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_DATA_SOURCE_H

#include "models/data/data.h"

/* The data of sb_data_as_source; NULL, without a message, for other sources. */
sb_data *data_of_source(const sb_source *source);

/* The options with every default filled in; `owner` begins the message of a failure. */
bool data_complete(const char *owner, const sb_data_options *given, sb_data_options *options);

#endif
