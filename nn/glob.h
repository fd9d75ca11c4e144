/* Patterns of names, as a shell has them for files. */
#ifndef SOFTBACK_NN_GLOB_H
#define SOFTBACK_NN_GLOB_H

#include <stdbool.h>

/* Whether a name matches one of the patterns, which commas separate. "*" stands for any characters,
   none included, and "?" for one: "encoder.*,*.bias". */
bool glob_matches(const char *patterns, const char *name);

#endif
