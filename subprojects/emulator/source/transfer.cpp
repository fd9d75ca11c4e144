/*
 * Copies between host and device, and filling.
 */
#include "stream.h"

using namespace emulator;

static const char *name_of(Place place)
{
    switch (place) {
    case Place::host:
        return "host memory";
    case Place::pinned:
        return "pinned host memory";
    case Place::device:
        return "device memory";
    case Place::freed:
        break;
    }
    return "not wholly inside a device allocation";
}

static bool fits(Place place, bool on_device)
{
    return on_device ? place == Place::device : place == Place::host || place == Place::pinned;
}

static cudaError_t check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return cudaSuccess;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    static const char *const names[] = {"host to host", "host to device", "device to host",
                                        "device to device"};
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    Place to_place = place_of(to, bytes), from_place = place_of(from, bytes);
    if (fits(to_place, to_device) && fits(from_place, from_device))
        return cudaSuccess;
    complain("a copy of %zu bytes from %s: the source %p is %s, the destination %p is %s", bytes,
             names[kind], from, name_of(from_place), to, name_of(to_place));
    return cudaErrorInvalidValue;
}

static void count_bytes(size_t bytes, cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyHostToDevice)
        work.uploaded += static_cast<int64_t>(bytes);
    if (kind == cudaMemcpyDeviceToHost)
        work.downloaded += static_cast<int64_t>(bytes);
}

/* Pageable host memory is read immediately, as CUDA may do: the caller may change it afterwards.
   Pinned memory is read when the copy runs, and copies to the host are made only then. */
static Task copy_task(void *to, const void *from, size_t bytes)
{
    if (place_of(from, bytes) != Place::host)
        return [=] { memmove(to, from, bytes); };
    const char *begin = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    return [=] { memcpy(to, staged->data(), bytes); };
}

static bool is_pageable(const void *pointer, size_t bytes)
{
    return place_of(pointer, bytes) == Place::host;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle)
{
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream)
        return fail(cudaErrorInvalidResourceHandle);
    if (bytes == 0)
        return lasting_error;
    if (lasting_error)
        return lasting_error;
    if (cudaError_t error = check_copy(to, from, bytes, kind))
        return fail(error);
    if (stream->capture && (is_pageable(to, bytes) || is_pageable(from, bytes)))
        return fail(capture_break(stream.get(), cudaErrorStreamCaptureUnsupported));
    Task copy = copy_task(to, from, bytes);
    return enqueue(handle, [=] {
        count_bytes(bytes, kind);
        copy();
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (cudaError_t error = capture_refuses())
        return fail(error);
    if (cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr))
        return error;
    return cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    if (bytes == 0 || lasting_error)
        return lasting_error;
    Place place = place_of(to, bytes);
    if (place == Place::host || place == Place::freed) {
        complain("cudaMemset of %zu bytes at %p: %s", bytes, to, name_of(place));
        return fail(cudaErrorInvalidValue);
    }
    return enqueue(stream, [=] { memset(to, value, bytes); });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes, nullptr);
}
