/* Which softback this is. */
#ifndef SOFTBACK_TENSOR_VERSION_H
#define SOFTBACK_TENSOR_VERSION_H

#include "error.h"

/* Of the headers. Programs built for one minor version run with all of its patches. */
#define SB_VERSION_MAJOR 0
#define SB_VERSION_MINOR 2
#define SB_VERSION_PATCH 0

/* The library's own, as in "0.2.0". */
SB_API const char *sb_version(void);

#endif
