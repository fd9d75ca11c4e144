/*
 * CUDA graphs. While a stream captures, its work is not run but recorded, with its present
 * arguments; a graph replays the recording. Each node has its predecessors: the previous node of
 * its stream, and those that its stream waited for. A replay uses any order that respects them.
 *
 * Calls that cannot be recorded (allocation, waiting for the device, copies from memory that may be
 * freed by then) fail and invalidate the capture, as on a device: it can only be ended, and gives
 * no graph.
 */
#include "stream.h"

namespace emulator
{

template <class Minds> static cudaError_t break_captures(Minds minds, cudaError_t error)
{
    bool found = false;
    for (const auto &stream : all_streams())
        if (stream->capture && minds(*stream)) {
            stream->capture->broken = true;
            found = true;
        }
    return found ? error : cudaSuccess;
}

cudaError_t capture_refuses()
{
    auto strict = [](const Stream &stream) {
        return stream.capture->mode != cudaStreamCaptureModeRelaxed;
    };
    return break_captures(strict, cudaErrorStreamCaptureUnsupported);
}

cudaError_t capture_refuses_any_wait()
{
    return break_captures([](const Stream &) { return true; }, cudaErrorStreamCaptureUnsupported);
}

cudaError_t capture_refuses_legacy()
{
    return break_captures([](const Stream &stream) { return stream.blocking; },
                          cudaErrorStreamCaptureImplicit);
}

cudaError_t capture_break(Stream *stream, cudaError_t error)
{
    if (stream->capture)
        stream->capture->broken = true;
    return error;
}

cudaError_t capture_add(Stream *stream, Task task)
{
    Capture &capture = *stream->capture;
    if (capture.broken)
        return cudaErrorStreamCaptureInvalidated;
    capture.nodes.push_back({std::move(task), stream->frontier});
    stream->frontier = {capture.nodes.size() - 1};
    return cudaSuccess;
}

/* Does every node come before the end of the stream that began the capture? If not, some stream was
   forked from it and never joined. Nodes only follow earlier ones, so one pass from the back is
   enough. */
static bool all_joined(const Capture &capture, const Stream &origin)
{
    std::vector<bool> joined(capture.nodes.size());
    for (size_t node : origin.frontier)
        joined[node] = true;
    for (size_t node = capture.nodes.size(); node-- > 0;) {
        if (!joined[node])
            return false;
        for (size_t before : capture.nodes[node].after)
            joined[before] = true;
    }
    return true;
}

struct Plan {
    std::vector<Node> nodes;
    std::vector<std::vector<size_t>> followers;
};

} // namespace emulator

using namespace emulator;

struct CUgraph_st {
    std::vector<Node> nodes;
};

struct CUgraphExec_st {
    std::shared_ptr<const Plan> plan;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (!handle)
        return fail(cudaErrorStreamCaptureUnsupported); /* not the default stream */
    if (stream->capture)
        return fail(capture_break(stream.get(), cudaErrorIllegalState));
    if (lasting_error)
        return lasting_error;
    stream->capture = std::make_shared<Capture>(Capture{mode, stream.get(), {}, false});
    stream->frontier.clear();
    return cudaSuccess;
}

static cudaError_t capture_fault(const Stream &stream)
{
    if (stream.capture->broken)
        return cudaErrorStreamCaptureInvalidated;
    return all_joined(*stream.capture, stream) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    *graph = nullptr;
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (!stream->capture)
        return fail(cudaErrorIllegalState);
    if (stream->capture->origin != stream.get())
        return fail(capture_break(stream.get(), cudaErrorStreamCaptureUnmatched));
    std::shared_ptr<Capture> capture = stream->capture;
    cudaError_t error = capture_fault(*stream);
    for (const auto &other : all_streams())
        if (other->capture == capture) {
            other->capture = nullptr;
            other->frontier.clear();
        }
    if (!error)
        *graph = new CUgraph_st{std::move(capture->nodes)};
    return fail(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    *status = !stream->capture          ? cudaStreamCaptureStatusNone
              : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long)
{
    if (!graph)
        return fail(cudaErrorInvalidValue);
    Plan plan = {graph->nodes, std::vector<std::vector<size_t>>(graph->nodes.size())};
    for (size_t node = 0; node < plan.nodes.size(); node++)
        for (size_t before : plan.nodes[node].after)
            plan.followers[before].push_back(node);
    *executable = new CUgraphExec_st{std::make_shared<const Plan>(std::move(plan))};
    return cudaSuccess;
}

/* The next node is any whose predecessors are done. */
static void replay(const Plan &plan)
{
    std::vector<size_t> missing, ready;
    for (size_t node = 0; node < plan.nodes.size(); node++) {
        missing.push_back(plan.nodes[node].after.size());
        if (missing[node] == 0)
            ready.push_back(node);
    }
    while (!ready.empty() && !lasting_error) {
        size_t choice = settings().order == Order::random ? random_bits() % ready.size() : 0;
        size_t node = ready[choice];
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(choice));
        plan.nodes[node].task();
        for (size_t follower : plan.followers[node])
            if (--missing[follower] == 0)
                ready.push_back(follower);
    }
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    if (!executable)
        return fail(cudaErrorInvalidValue);
    std::shared_ptr<const Plan> plan = executable->plan;
    work.graphs++;
    return enqueue(stream, [plan] { replay(*plan); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    delete executable;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
