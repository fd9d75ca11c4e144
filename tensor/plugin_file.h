/* Plug-ins: shared libraries that are found and opened at run time. */
#ifndef SOFTBACK_TENSOR_PLUGIN_FILE_H
#define SOFTBACK_TENSOR_PLUGIN_FILE_H

#include <stdbool.h>

/*
 * Opens a plug-in and finds the function that it exports as `symbol`, whose pointer is put where
 * `function` points. A name without a slash is looked for beside the library or program that holds
 * this function, then where the system looks for libraries. NULL, with a message that begins with
 * `who`, when it cannot be opened.
 */
void *plugin_file_open(const char *who, const char *name, const char *symbol, void *function);
void plugin_file_close(void *library);

#endif
