/*
 * The host's side: streams that run only when something waits for them, events, graphs, and calls
 * that cannot be captured.
 */
#include "check.cuh"

__global__ void add(float *x, float amount)
{
    x[threadIdx.x] += amount;
}

__global__ void multiply(float *x, float factor)
{
    x[threadIdx.x] *= factor;
}

static float first_of(const Array<float> &array)
{
    return array.read()[0];
}

static void try_order()
{
    cudaStream_t one, other;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    Array<float> x(std::vector<float>(32, 1));
    LAUNCH(add, 1, 32, 0, one, x, 1.0f);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(other, event);
    LAUNCH(multiply, 1, 32, 0, other, x, 10.0f);
    cudaStreamSynchronize(other);
    check(first_of(x) == 20, "a stream waits for another's event");

    LAUNCH(add, 1, 32, 0, one, x, 1.0f);
#ifndef PLANTED_NO_WAIT
    cudaStreamSynchronize(one);
#endif
    check(first_of(x) == 21, "the host waits for the stream");

    float *pinned;
    cudaMallocHost(&pinned, 32 * sizeof(float));
    for (int i = 0; i < 32; i++)
        pinned[i] = 5;
    cudaMemcpyAsync(x, pinned, 32 * sizeof(float), cudaMemcpyHostToDevice, one);
#ifndef PLANTED_EARLY_REUSE
    cudaStreamSynchronize(one);
#endif
    for (int i = 0; i < 32; i++)
        pinned[i] = 6;
    cudaStreamSynchronize(one);
    check(first_of(x) == 5, "pinned memory is not reused before its copy is done");
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
    cudaStreamDestroy(one);
    cudaStreamDestroy(other);
    check_error(cudaGetLastError(), cudaSuccess, "streams and events are created and destroyed");
}

#ifdef PLANTED_HOST_TOUCHES
/* SOFTBACK_EMULATOR_GUARD finds this: the program dies, as it would with a real device. */
static void touch_device_memory()
{
    Array<float> x(std::vector<float>(32, 1));
    check(x.data[5] == 1, "the host reads device memory");
}
#endif

/* The default stream is ordered with streams that are not created as non-blocking. */
static void try_default_stream()
{
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    Array<float> x(std::vector<float>(32, 1));
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    LAUNCH(multiply, 1, 32, 0, 0, x, 3.0f);
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    cudaStreamSynchronize(stream);
    check(first_of(x) == 7, "the default stream keeps the order of the calls");
    cudaStreamDestroy(stream);
}

static void try_times()
{
    cudaEvent_t start, end;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    Array<float> x(std::vector<float>(1024, 1));
    float milliseconds = -1;
    cudaEventRecord(start);
    for (int i = 0; i < 100; i++)
        LAUNCH(add, 1, 1024, 0, 0, x, 1.0f);
    cudaEventRecord(end);
    check_error(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady,
                "a time is not available before the work is done");
    check_error(cudaEventQuery(end), cudaErrorNotReady, "work waits for a query");
    check_error(cudaEventQuery(end), cudaSuccess, "a query makes progress");
    check_error(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess, "the time is there");
    check(milliseconds > 0, "work takes time");
    cudaEventDestroy(start);
    cudaEventDestroy(end);
}

static cudaGraphExec_t capture_steps(cudaStream_t stream, Array<float> &x, float amount)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable = nullptr;
    cudaStreamCaptureStatus status;
    check_error(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess,
                "a capture begins");
    LAUNCH(add, 1, 32, 0, stream, x, amount);
    LAUNCH(multiply, 1, 32, 0, stream, x, 2.0f);
    cudaStreamIsCapturing(stream, &status);
    check(status == cudaStreamCaptureStatusActive, "the stream reports that it captures");
    check_error(cudaStreamEndCapture(stream, &graph), cudaSuccess, "a capture ends");
    check_error(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess,
                "a graph is instantiated");
    cudaGraphDestroy(graph);
    return executable;
}

static void try_graph(cudaStream_t stream)
{
    Array<float> x(std::vector<float>(32, 1));
    float amount = 1;
    cudaGraphExec_t executable = capture_steps(stream, x, amount);
    amount = 100; /* too late: arguments are copied at the launch */
    check(first_of(x) == 1, "capturing runs nothing");
    for (int replay = 0; replay < 3; replay++)
        cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    check(first_of(x) == 22, "three launches run it three times"); /* 1 -> 4 -> 10 -> 22 */
    cudaGraphExecDestroy(executable);
}

/* Two branches that end before the joined stream continues. */
static void try_fork(cudaStream_t stream, bool join)
{
    cudaStream_t branch;
    cudaEvent_t begun, ended;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking);
    cudaEventCreate(&begun);
    cudaEventCreate(&ended);
    Array<float> x(std::vector<float>(32, 1)), y(std::vector<float>(32, 1));
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    cudaEventRecord(begun, stream);
    cudaStreamWaitEvent(branch, begun);
    LAUNCH(multiply, 1, 32, 0, branch, x, 10.0f);
    LAUNCH(add, 1, 32, 0, stream, y, 1.0f);
    cudaEventRecord(ended, branch);
    if (join)
        cudaStreamWaitEvent(stream, ended);
    LAUNCH(add, 1, 32, 0, stream, y, 1.0f);
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (join) {
        LAUNCH(add, 1, 32, 0, branch, y, 1.0f); /* this is not captured any more */
        cudaGraphInstantiate(&executable, graph, 0);
        cudaGraphLaunch(executable, stream);
        cudaDeviceSynchronize();
        check(first_of(x) == 20 && first_of(y) == 4, "both branches of a graph run");
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
    } else {
        check_error(error, cudaErrorStreamCaptureUnjoined, "a branch must be joined");
        check(!graph, "a capture that fails gives no graph");
        cudaGetLastError();
    }
    cudaStreamDestroy(branch);
    cudaEventDestroy(begun);
    cudaEventDestroy(ended);
}

enum Forbidden { allocation, wait, device_wait, pageable_copy, default_stream, event_query };

static cudaError_t call_forbidden(Forbidden what, cudaStream_t stream, Array<float> &x)
{
    float *memory, number = 0;
    cudaEvent_t event;
    cudaError_t error;
    switch (what) {
    case allocation:
        return cudaMalloc(&memory, 4);
    case wait:
        return cudaStreamSynchronize(stream);
    case device_wait:
        return cudaDeviceSynchronize();
    case pageable_copy:
        return cudaMemcpyAsync(x, &number, 4, cudaMemcpyHostToDevice, stream);
    case default_stream:
        LAUNCH(add, 1, 32, 0, 0, x, 1.0f);
        return cudaGetLastError();
    case event_query:
        cudaEventCreate(&event);
        cudaEventRecord(event, stream);
        error = cudaEventQuery(event);
        cudaEventDestroy(event);
        return error;
    }
    return cudaSuccess;
}

static void try_forbidden(Forbidden what, cudaError_t expected)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaStreamCreate(&stream);
    Array<float> x(std::vector<float>(32, 1));
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    check_error(call_forbidden(what, stream, x), expected, "a call that cannot be captured fails");
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    check_error(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated,
                "it invalidates the capture");
    check(!graph, "an invalid capture gives no graph");
    cudaGetLastError();
    LAUNCH(add, 1, 32, 0, stream, x, 1.0f);
    check_error(cudaStreamSynchronize(stream), cudaSuccess, "the stream works afterwards");
    check(first_of(x) == 2, "nothing of the invalid capture has run");
    cudaStreamDestroy(stream);
}

static void try_properties()
{
    cudaDeviceProp properties;
    int count = 0, device = -1, value = 0;
    size_t free_bytes, total_bytes;
    check(cudaGetDeviceCount(&count) == cudaSuccess && count == 1, "there is one device");
    check(cudaGetDevice(&device) == cudaSuccess && device == 0, "its number is 0");
    check_error(cudaSetDevice(1), cudaErrorInvalidDevice, "there is no device 1");
    cudaGetLastError();
    cudaGetDeviceProperties(&properties, 0);
    check(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024,
          "its properties have its limits");
    cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    check(value == 227 << 10, "its attributes have its limits");
    cudaMemGetInfo(&free_bytes, &total_bytes);
    check(free_bytes <= total_bytes, "some of its memory is free");
}

int main()
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    try_properties();
#ifdef PLANTED_HOST_TOUCHES
    touch_device_memory();
#endif
    try_order();
    try_default_stream();
    try_times();
    try_graph(stream);
    try_fork(stream, true);
    try_fork(stream, false);
    try_forbidden(allocation, cudaErrorStreamCaptureUnsupported);
    try_forbidden(wait, cudaErrorStreamCaptureUnsupported);
    try_forbidden(device_wait, cudaErrorStreamCaptureUnsupported);
    try_forbidden(pageable_copy, cudaErrorStreamCaptureUnsupported);
    try_forbidden(default_stream, cudaErrorStreamCaptureImplicit);
    try_forbidden(event_query, cudaErrorCapturedEvent);
    cudaStreamDestroy(stream);
    return check_report();
}
