/* Counts the memory that Jansson allocates, so that tests can bound it. */
#ifndef SOFTBACK_TESTS_SUPPORT_JSON_MEMORY_H
#define SOFTBACK_TESTS_SUPPORT_JSON_MEMORY_H

#include <stdint.h>

/* Starts counting, with a peak of 0. */
void json_memory_count(void);

extern int64_t json_memory_live, json_memory_peak; /* bytes */

#endif
