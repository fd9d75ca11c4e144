/* Plug-ins: shared libraries that are opened at run time. */
#ifndef SOFTBACK_TENSOR_PLUGIN_FILE_H
#define SOFTBACK_TENSOR_PLUGIN_FILE_H

#include <stdbool.h>

/*
 * Opens a plug-in and stores the address of its function `symbol` in *function. A name without a
 * slash is searched for in the folder of the library or program that contains this function, then
 * on the system's library path. Returns NULL, with a message that begins with `who`, on failure.
 */
void *plugin_file_open(const char *who, const char *name, const char *symbol, void *function);
void plugin_file_close(void *library);

#endif
