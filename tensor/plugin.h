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

/* Work that is queued once and then again as a whole, at the cost of one launch: a CUDA graph. */
struct plugin_graph;
struct plugin_graphs {
    /* From `begin` to `end` what is queued is noted and not run. Memory that it takes must stay its
       own; what is uploaded is kept and uploaded again each time. Nothing can be downloaded. */
    bool (*begin)(void);
    /* NULL, with a message, when something in between cannot be part of a graph. */
    struct plugin_graph *(*end)(void);
    /* Queues it all. What was drawn at a position of a random stream is now drawn `offset` further
       on (ops/dropout.h). */
    bool (*launch)(struct plugin_graph *graph, uint64_t offset);
    void (*free)(struct plugin_graph *graph); /* NULL is allowed */
    const uint64_t *offset;                   /* in the device's memory */
};

/* What the plug-in gives. */
struct plugin {
    const char *description; /* the device: name, memory, versions */
    void *(*system_take)(size_t bytes);
    void (*system_give)(void *block);
    /* Memory of the host that the device reads and writes by itself, also after a call that queued
       this has returned: pinned. */
    void *(*staging_take)(size_t bytes);
    void (*staging_give)(void *block);
    void (*poison)(void *block, size_t bytes);
    bool (*upload)(void *to, const void *host, size_t bytes);
    bool (*download)(void *host, const void *from, size_t bytes);
    bool (*copy)(void *to, const void *from, size_t bytes);
    bool (*zero)(void *to, size_t bytes);
    bool (*synchronize)(void);
    struct plugin_graphs graphs;
    const struct plugin_row *const *rows; /* ends with NULL */
};

/* The function that a plug-in exports as "softback_plugin"; NULL, having failed with a message. */
typedef const struct plugin *plugin_open(const struct plugin_host *host);

#endif
