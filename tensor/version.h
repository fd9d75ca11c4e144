/* The version of softback. */
#ifndef SOFTBACK_TENSOR_VERSION_H
#define SOFTBACK_TENSOR_VERSION_H

#include "error.h"

/* The version of the headers. A program runs with all patch versions of the minor version that it
   was built for. */
#define SB_VERSION_MAJOR 0
#define SB_VERSION_MINOR 2
#define SB_VERSION_PATCH 0

/* The version of the library, as in "0.2.0". */
SB_API const char *sb_version(void);

#endif
