/*
 * What the library and the plug-in of a device tell each other. Both include this file, the plug-in
 * as C++; neither links a symbol of the other but the one that opens it.
 */
#ifndef SOFTBACK_TENSOR_PLUGIN_H
#define SOFTBACK_TENSOR_PLUGIN_H

#include "tensor/dtype.h"
#include <stdint.h>

/* What the library gives. */
struct plugin_host {
    uint64_t abi; /* of all headers that both sides read; first, so that it can always be read */
    void *(*fail)(const char *format, ...)SB_PRINTF(1, 2); /* sb_fail */
    /* The device's memory, from the caching pool. A kernel's scratch memory may be given back when
       the kernel is queued: whoever gets it next is queued behind. */
    void *(*take)(size_t bytes);
    void (*give)(void *block, size_t bytes);
};

/* An operation's kernels for each real dtype: pointers to struct <operation>_kernels. */
struct plugin_row {
    const char *operation;
    const void *row[SB_REAL_DTYPES];
};

/* What the plug-in gives. */
struct plugin {
    const char *description; /* the device: name, memory, versions */
    void *(*system_take)(size_t bytes);
    void (*system_give)(void *block);
    void (*poison)(void *block, size_t bytes);
    bool (*upload)(void *to, const void *host, size_t bytes);
    bool (*download)(void *host, const void *from, size_t bytes);
    bool (*copy)(void *to, const void *from, size_t bytes);
    bool (*zero)(void *to, size_t bytes);
    bool (*synchronize)(void);
    const struct plugin_row *const *rows; /* ends with NULL */
};

/* The function that a plug-in exports as "softback_plugin"; NULL, having failed with a message. */
typedef const struct plugin *plugin_open(const struct plugin_host *host);

#endif
