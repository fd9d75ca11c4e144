/*
 * A stream is a queue of work that the device runs in order, some time after the host has queued
 * it. On a fast device a missing wait is often not noticed. So here work runs only when the host
 * waits for it, and then only the work that is needed: a missing wait always gives old data or
 * NaN.
 */
#include "stream.h"

namespace emulator
{

/* The default stream first, then the others in the order of their creation. */
static std::vector<std::shared_ptr<Stream>> &streams()
{
    static auto &all = *new std::vector<std::shared_ptr<Stream>>{
        std::make_shared<Stream>(Stream{{}, 0, 0, true, nullptr, {}, 0})};
    return all;
}

const std::vector<std::shared_ptr<Stream>> &all_streams()
{
    return streams();
}

std::shared_ptr<Stream> stream_of(cudaStream_t handle)
{
    if (!handle)
        return streams()[0];
    for (const auto &stream : streams())
        if (stream.get() == handle)
            return stream;
    return nullptr;
}

static void run_first(Stream *stream)
{
    Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    for (const Moment &moment : operation.after)
        run_until(moment);
    if (!lasting_error) {
        memory_open();
        operation.task();
        memory_close();
    }
    stream->done++;
}

void run_until(const Moment &moment)
{
    while (moment.stream->done < moment.count && !moment.stream->queue.empty())
        run_first(moment.stream.get());
}

/* Any stream may go first. */
cudaError_t run_everything()
{
    for (;;) {
        std::vector<Stream *> busy;
        for (const auto &stream : streams())
            if (!stream->queue.empty())
                busy.push_back(stream.get());
        if (busy.empty())
            return lasting_error;
        run_first(busy[settings().order == Order::random ? random_bits() % busy.size() : 0]);
    }
}

/* The default stream runs after all work of the blocking streams, and they run after it. */
static std::vector<Moment> implied_order(const std::shared_ptr<Stream> &stream)
{
    std::vector<Moment> after;
    const auto &all = streams();
    for (size_t i = 0; i < all.size(); i++)
        if (stream->blocking && all[i]->blocking && (stream == all[0]) != (i == 0) &&
            all[i]->done < all[i]->queued)
            after.push_back({all[i], all[i]->queued});
    return after;
}

cudaError_t enqueue(cudaStream_t handle, Task task)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return fail(capture_add(stream.get(), std::move(task)));
    work.queued++;
    if (cudaError_t error = handle ? cudaSuccess : capture_refuses_legacy())
        return fail(error);
    if (lasting_error)
        return lasting_error;
    stream->queue.push_back({std::move(task), implied_order(stream)});
    stream->queued++;
    if (!settings().lazy)
        run_until({stream, stream->queued});
    return lasting_error;
}

void streams_reset()
{
    streams().resize(1);
    *streams()[0] = Stream{{}, 0, 0, true, nullptr, {}, 0};
    events_reset();
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    if (lasting_error)
        return lasting_error;
    bool blocking = !(flags & cudaStreamNonBlocking);
    streams().push_back(
        std::make_shared<Stream>(Stream{{}, 0, 0, blocking, nullptr, {}, present_device()}));
    *stream = streams().back().get();
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

/* Queued work still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    std::shared_ptr<Stream> stream = handle ? stream_of(handle) : nullptr;
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    run_until({stream, stream->queued});
    auto &all = streams();
    for (size_t i = 1; i < all.size(); i++)
        if (all[i] == stream) {
            all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
            break;
        }
    return lasting_error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return fail(capture_break(stream.get(), cudaErrorStreamCaptureUnsupported));
    if (cudaError_t error = handle ? cudaSuccess : capture_refuses_legacy())
        return fail(error);
    work.waits++;
    run_until({stream, stream->queued});
    return lasting_error;
}

/* A query runs the work that it asks for, so polling makes progress. */
cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return fail(capture_break(stream.get(), cudaErrorStreamCaptureUnsupported));
    if (stream->queue.empty())
        return lasting_error;
    run_until({stream, stream->queued});
    return lasting_error ? lasting_error : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    if (cudaError_t error = capture_refuses_any_wait())
        return fail(error);
    work.waits++;
    return run_everything();
}
