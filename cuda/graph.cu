#include "cuda/ids.cuh"
#include <string.h>

bool capturing;

/* A copy of uploaded data for a graph, in pinned memory. */
struct kept_block {
    kept_block *next;
    alignas(16) unsigned char data[];
};

struct plugin_graph {
    cudaGraphExec_t exec;
    kept_block *kept;
};

static kept_block *kept; /* of the graph that is being captured */
static uint64_t *offset; /* on the device */

const void *graph_keep(const void *from, size_t bytes)
{
    void *memory;
    if (!cuda_ok(cudaMallocHost(&memory, sizeof(kept_block) + bytes), "upload"))
        return nullptr;
    kept_block *block = static_cast<kept_block *>(memory);
    block->next = kept;
    kept = block;
    return memcpy(block->data, from, bytes);
}

static void graph_free_kept(kept_block *block)
{
    while (block) {
        kept_block *next = block->next;
        cudaFreeHost(block);
        block = next;
    }
}

bool graph_ready()
{
    return cuda_ok(cudaMalloc((void **)&offset, sizeof *offset), "graph") &&
           cuda_ok(cudaMemsetAsync(offset, 0, sizeof *offset, stream), "graph");
}

static bool graph_begin()
{
    kept = nullptr;
    capturing = cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "graph");
    return capturing;
}

static plugin_graph *graph_end()
{
    cudaGraph_t noted = nullptr;
    cudaGraphExec_t exec = nullptr;
    capturing = false;
    bool ok = cuda_ok(cudaStreamEndCapture(stream, &noted), "graph") &&
              cuda_ok(cudaGraphInstantiate(&exec, noted, 0), "graph");
    if (noted)
        cudaGraphDestroy(noted);
    if (ok)
        return new plugin_graph{exec, kept};
    graph_free_kept(kept);
    return nullptr;
}

__global__ void set_offset(uint64_t *offset, uint64_t by)
{
    *offset = by;
}

/* The offset is an argument of a kernel, so that the host need not wait until it is read. It is
   reset to 0 after the graph, for work outside of graphs. */
static bool graph_launch(plugin_graph *graph, uint64_t by)
{
    ids_ask_again();
    if (by == 0)
        return cuda_ok(cudaGraphLaunch(graph->exec, stream), "graph");
    LAUNCH(set_offset, dim3(1), dim3(1), 0, stream, offset, by);
    return launched("graph") && cuda_ok(cudaGraphLaunch(graph->exec, stream), "graph") &&
           cuda_ok(cudaMemsetAsync(offset, 0, sizeof *offset, stream), "graph");
}

static void free_graph(plugin_graph *graph)
{
    if (!graph)
        return;
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(graph->exec);
    graph_free_kept(graph->kept);
    delete graph;
}

struct plugin_graphs graph_functions()
{
    return {graph_begin, graph_end, graph_launch, free_graph, offset};
}
