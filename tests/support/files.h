/* Files of tests: small texts. */
#ifndef SOFTBACK_TESTS_SUPPORT_FILES_H
#define SOFTBACK_TESTS_SUPPORT_FILES_H

#include <stdbool.h>

void put(const char *path, const char *text);
bool holds(const char *path, const char *text);

#endif
