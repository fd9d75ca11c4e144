/* CUDA graphs: work that is captured once and launched repeatedly (tensor/plugin.h). */
#ifndef SOFTBACK_CUDA_GRAPH_CUH
#define SOFTBACK_CUDA_GRAPH_CUH

#include "cuda/device.cuh"

/* Prepares graphs. graph_functions is the table for the plug-in. */
bool graph_ready();
struct plugin_graphs graph_functions();

/* A copy of data that is uploaded during capture, which the graph uploads at each launch; or
   NULL. */
const void *graph_keep(const void *from, size_t bytes);

#endif
