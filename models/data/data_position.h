/* Where data stand, for the trainer. */
#ifndef SOFTBACK_MODELS_DATA_DATA_POSITION_H
#define SOFTBACK_MODELS_DATA_DATA_POSITION_H

#include "models/data/data.h"

/* Goes back to where sb_data_tell said that they stood; unlike sb_data_seek this cannot fail. The
   last batch lives on. */
void data_return(sb_data *data, sb_data_position position);

#endif
