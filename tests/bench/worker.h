/*
 * softback-bench-worker: softback's side of tests/bench/compare.py. It reads lines from standard
 * input and answers each with one line of JSON, so that one run can time several libraries in
 * turns; the workers in tests/bench/peers have the same protocol.
 *
 *     machine                    the processor or device
 *     open KIND KEY=NUMBER ...   opens the job to be measured, in place of an open one
 *     export FILE                its weights and inputs, as safetensors, for the peers to load
 *     check                      numbers that every library must get: {"numbers": [...]}
 *     steps N                    measures N times: {"seconds": [...]}
 *     rate NAME NUMBER ...       the highest rate of this machine: {"rate": ...}
 *
 * The kinds, and their keys, are rows of compare_rows.py. A failure is {"error": "..."}.
 */
#ifndef SOFTBACK_TESTS_BENCH_WORKER_H
#define SOFTBACK_TESTS_BENCH_WORKER_H

#include "tensor/tensor.h"

/* Whether models are trained in bf16, and decode with weights of 8 bits: the worker was started
   with
   --bf16 or --int8. */
extern bool worker_bf16, worker_int8;

/* The number after "key=" in a line of words; false, with a message, if there is none. */
bool worker_number(const char *line, const char *key, double *number);
bool worker_whole(const char *line, const char *key, int64_t *number);

struct numbers {
    double *value;
    int64_t count, room;
};
bool numbers_add(struct numbers *numbers, double value);
/* sqrt(sum of (1 + i mod 7) x_i^2), which depends on each element and on their order. False if
   there is no tensor. */
bool numbers_add_measure(struct numbers *numbers, sb_tensor *x);

double worker_clock(void); /* seconds */

/* A leaf of numbers in [-1, 1), fixed by the seed. */
sb_tensor *worker_values(uint64_t seed, int rank, const int64_t *dim);

/* What can be opened. A function that fails leaves a message in sb_error. */
struct job_kind {
    const char *name;
    void *(*open)(const char *line);
    bool (*save)(void *job, const char *path);
    bool (*check)(void *job, struct numbers *numbers);
    double (*step)(void *job); /* its seconds; negative on failure */
    void (*close)(void *job);
};

extern const struct job_kind job_seq2seq, job_language_model, job_attention, job_softmax,
    job_layer_norm, job_cross_entropy, job_adam, job_decoding;

/*
 * The best of some tries, with all threads; negative on failure:
 *     fma                       FLOP/s of multiply-adds in registers
 *     copy BYTES                bytes/s, half of BYTES read and half written, by plain or streaming
 *                               stores, whichever is faster
 *     gemm M N K TA TB          FLOP/s of C (M, N) = A B, TA and TB: whether each is transposed; by
 *                               the built-in product or slabs of BLAS, whichever is faster
 *     philox                    words of 32 bits a second, with the library's generator
 */
double worker_rate(const char *words);
double worker_rate_product(const char *words); /* M N K TA TB */

/* The seconds of a call in the fastest of some tries. */
double worker_best(void (*call)(void *context), void *context);

#endif
