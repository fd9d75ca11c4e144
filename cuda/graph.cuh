/* Graphs: work that is noted once and launched again as a whole (tensor/plugin.h). */
#ifndef SOFTBACK_CUDA_GRAPH_CUH
#define SOFTBACK_CUDA_GRAPH_CUH

#include "cuda/device.cuh"

/* Makes ready what graphs need; the functions for the plug-in's table. */
bool graph_ready();
struct plugin_graphs graph_functions();

/* A copy of what is uploaded while a graph is noted, which the graph uploads each time; or NULL. */
const void *graph_keep(const void *from, size_t bytes);

#endif
