/*
 * Events: moments in a stream, for other streams and the host to wait for and to measure times
 * between. In a capture an event stands for nodes of the recording instead.
 */
#include "stream.h"
#include <algorithm>
#include <chrono>

using namespace emulator;

struct CUevent_st {
    bool timed;
    Moment moment;                  /* its stream is null before the first record */
    std::shared_ptr<double> time;   /* in milliseconds, once the moment is reached; NaN before */
    std::weak_ptr<Capture> capture; /* in which it was recorded last, if it was */
    bool captured;
    std::vector<size_t> frontier;
};

static auto &events = *new std::vector<std::unique_ptr<CUevent_st>>;

static cudaEvent_t find(cudaEvent_t handle)
{
    for (const auto &event : events)
        if (event.get() == handle)
            return handle;
    return nullptr;
}

void emulator::events_reset()
{
    events.clear();
}

static double now()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    if (lasting_error)
        return lasting_error;
    events.push_back(std::make_unique<CUevent_st>());
    *event = events.back().get();
    (*event)->timed = !(flags & cudaEventDisableTiming);
    (*event)->moment = {nullptr, 0};
    (*event)->captured = false;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    for (size_t i = 0; i < events.size(); i++)
        if (events[i].get() == handle) {
            events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
            return lasting_error;
        }
    return fail(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream || !find(event))
        return fail(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        event->capture = stream->capture;
        event->captured = true;
        event->frontier = stream->frontier;
        return cudaSuccess;
    }
    auto time = std::make_shared<double>(NAN);
    if (cudaError_t error = enqueue(handle, [time] { *time = now(); }))
        return error;
    event->captured = false;
    event->time = time;
    event->moment = {stream, stream->queued};
    return cudaSuccess;
}

/* Waiting for an event of a capture makes the stream part of that capture. */
static cudaError_t wait_in_capture(Stream *stream, cudaEvent_t event)
{
    std::shared_ptr<Capture> capture = event->captured ? event->capture.lock() : nullptr;
    if (!capture)
        return capture_break(stream, cudaErrorStreamCaptureIsolation);
    if (stream->capture && stream->capture != capture)
        return capture_break(stream, cudaErrorStreamCaptureIsolation);
    stream->capture = capture;
    std::vector<size_t> &frontier = stream->frontier;
    for (size_t node : event->frontier)
        if (std::find(frontier.begin(), frontier.end(), node) == frontier.end())
            frontier.push_back(node);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream || !find(event))
        return fail(cudaErrorInvalidResourceHandle);
    if (stream->capture || event->captured)
        return fail(wait_in_capture(stream.get(), event));
    if (!event->moment.stream)
        return cudaSuccess; /* never recorded: nothing to wait for */
    Moment moment = event->moment;
    return enqueue(handle, [moment] { run_until(moment); });
}

/* The host cannot wait for captured work. */
static cudaError_t refuse_captured(cudaEvent_t event)
{
    if (!find(event))
        return fail(cudaErrorInvalidResourceHandle);
    if (!event->captured)
        return cudaSuccess;
    if (std::shared_ptr<Capture> capture = event->capture.lock())
        capture->broken = true;
    return fail(cudaErrorCapturedEvent);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (cudaError_t error = refuse_captured(event))
        return error;
    work.waits++;
    if (event->moment.stream)
        run_until(event->moment);
    return lasting_error;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (cudaError_t error = refuse_captured(event))
        return error;
    const Moment &moment = event->moment;
    if (!moment.stream || moment.stream->done >= moment.count)
        return lasting_error;
    run_until(moment);
    return lasting_error ? lasting_error : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    for (cudaEvent_t event : {start, end}) {
        if (cudaError_t error = refuse_captured(event))
            return error;
        if (!event->timed || !event->time)
            return fail(cudaErrorInvalidResourceHandle);
    }
    if (isnan(*start->time) || isnan(*end->time))
        return cudaErrorNotReady;
    *milliseconds = static_cast<float>(*end->time - *start->time);
    return lasting_error;
}
