/*
 * The interface between the library and the plug-in of a device. Both include this file, the
 * plug-in as C++. The only symbol between them is the function that opens the plug-in.
 */
#ifndef SOFTBACK_TENSOR_PLUGIN_H
#define SOFTBACK_TENSOR_PLUGIN_H

#include "tensor/dtype.h"
#include <stdint.h>

/* What the library provides. */
struct plugin_host {
    uint64_t abi; /* hash of all headers that both sides include; the first member, so that it is
                     always readable */
    void *(*fail)(const char *format, ...)SB_PRINTF(1, 2); /* sb_fail */
    uint64_t (*failures)(void);                            /* failure_count */
    /* Device memory from the caching pool. Scratch memory can be returned as soon as its kernel is
       queued, because the next user is queued after it. */
    void *(*take)(size_t bytes);
    void (*give)(void *block, size_t bytes);
    int device; /* the number of the GPU to use */
};

/* An operation's kernels for each real dtype: pointers to struct <operation>_kernels. */
struct plugin_row {
    const char *operation;
    const void *row[SB_REAL_DTYPES];
};

/* A CUDA graph: work that is captured once and then repeated with one launch. */
struct plugin_graph;
struct plugin_graphs {
    /* From `begin` to `end` queued work is captured and not run. Memory allocated meanwhile must
       stay reserved for the graph; uploads are kept and repeated with each launch. Downloads
       fail. */
    bool (*begin)(void);
    /* NULL, with a message, when some of the work cannot be part of a graph. */
    struct plugin_graph *(*end)(void);
    /* Launches the graph. `offset` is added to all positions of random streams (ops/dropout.h). */
    bool (*launch)(struct plugin_graph *graph, uint64_t offset);
    void (*free)(struct plugin_graph *graph); /* NULL is allowed */
    const uint64_t *offset;                   /* in device memory */
};

/* What the plug-in provides. */
struct plugin {
    const char *description; /* the device: name, memory, versions */
    void (*enter)(void);     /* before a thread launches kernels */
    void *(*system_take)(size_t bytes);
    void (*system_give)(void *block);
    /* Pinned host memory, which the device reads and writes asynchronously. */
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

/* The function that a plug-in exports as "softback_plugin"; returns NULL, with a message, on
   failure. */
typedef const struct plugin *plugin_open(const struct plugin_host *host);

#endif
