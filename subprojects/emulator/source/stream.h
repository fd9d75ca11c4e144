/*
 * Streams, events and captures, for the files that implement them.
 */
#ifndef SOFTBACK_EMULATOR_STREAM_H
#define SOFTBACK_EMULATOR_STREAM_H

#include "emulator.h"
#include <deque>

namespace emulator
{

typedef CUstream_st Stream;

/* The time when the first `count` operations of a stream are done. */
struct Moment {
    std::shared_ptr<Stream> stream;
    uint64_t count;
};

struct Operation {
    Task task;
    std::vector<Moment> after;
};

/* A recording of work: each node runs after some earlier ones. */
struct Node {
    Task task;
    std::vector<size_t> after;
};

struct Capture {
    cudaStreamCaptureMode mode;
    const Stream *origin;
    std::vector<Node> nodes;
    bool broken;
};

/* graph.cpp. Whether a call is allowed now. If not, the captures that it conflicts with become
   invalid. */
cudaError_t capture_refuses();          /* allocations and waits: not in a strict capture */
cudaError_t capture_refuses_any_wait(); /* waits for the whole device: in no capture */
cudaError_t capture_refuses_legacy();   /* the default stream: in none of a blocking one */
cudaError_t capture_add(Stream *stream, Task task);
cudaError_t capture_break(Stream *stream, cudaError_t error);

/* stream.cpp */
std::shared_ptr<Stream> stream_of(cudaStream_t handle); /* null if there is none */
const std::vector<std::shared_ptr<Stream>> &all_streams();
void run_until(const Moment &moment);
void events_reset(); /* event.cpp */

} // namespace emulator

struct CUstream_st {
    std::deque<emulator::Operation> queue;
    uint64_t queued, done;
    bool blocking; /* is ordered with the default stream */
    std::shared_ptr<emulator::Capture> capture;
    std::vector<size_t> frontier; /* the predecessors of its next node */
    int device;
};

#endif
