/* Counts the memory that Jansson takes, so that claims can bound it. */
#ifndef SOFTBACK_TESTS_SUPPORT_JSON_MEMORY_H
#define SOFTBACK_TESTS_SUPPORT_JSON_MEMORY_H

#include <stdint.h>

/* From now on it is counted; starts the peak anew, from nothing. */
void json_memory_count(void);

extern int64_t json_memory_live, json_memory_peak; /* bytes */

#endif
