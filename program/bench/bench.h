/* What the parts of softback bench share. All of them measure the device in use. */
#ifndef SOFTBACK_PROGRAM_BENCH_BENCH_H
#define SOFTBACK_PROGRAM_BENCH_BENCH_H

#include "nn/parameters.h"

/* Upper limits of speed, measured by the library itself. */
enum bench_limit {
    BENCH_COPY, /* bytes read and written a second, by a large copy */
    BENCH_F32,  /* floating-point operations a second: on the CPU multiply-adds in registers, */
    BENCH_BF16, /* elsewhere a large matrix product */
    BENCH_LIMITS
};

struct bench {
    bool quick;                 /* tiny sizes, few calls: checks only that all runs */
    bool tabs;                  /* tab-separated rows */
    bool profile;               /* also the time of each operation of a training step */
    bool gpu;                   /* sizes for a GPU, and bf16 too */
    double limit[BENCH_LIMITS]; /* 0: not known */
    sb_tensor *block;           /* copied to measure BENCH_COPY */
};

/* ---- time ---- */

/* Seconds, after all queued work is done; negative, with a message, when some of it failed. */
double bench_clock(void);
/* The seconds since `begun`; negative when `ok` is false or queued work failed. */
double bench_since(double begun, bool ok);

/* Runs the measured work once: the seconds that it took, negative when it failed. */
typedef double bench_once(void *context);
/*
 * The median of 3 to 30 calls within two seconds, after warm-up calls. On the CPU, whose speed
 * depends on other load, this limit is measured again after each call, and bench->limit becomes
 * the median.
 */
double bench_median(struct bench *bench, enum bench_limit limit, bench_once *once, void *context);

/* The median of n numbers, which it sorts. */
double bench_middle(int n, double x[]);

/* Measures the limits; bench_end frees their memory. */
bool bench_limits(struct bench *bench);
double bench_limit_now(const struct bench *bench, enum bench_limit limit); /* 0: unchanged */
void bench_end(struct bench *bench);

/* A leaf of values in [-1, 1), which the caller owns. */
sb_tensor *bench_values(sb_dtype dtype, uint32_t seed, int rank, const int64_t *dim);

/*
 * The highest rates of the processor, for bounds of what a step takes: the best of some tries, with
 * all threads; negative on failure:
 *     fma                       FLOP/s of multiply-adds in registers
 *     copy BYTES                bytes/s, half of BYTES read and half written, by plain or streaming
 *                               stores, whichever is faster
 *     gemm M N K TA TB          FLOP/s of C (M, N) = A B, TA and TB: whether each is transposed; by
 *                               the built-in product or OpenBLAS, whichever is faster
 *     philox                    words of 32 bits a second, with the library's generator
 */
double bench_rate(const char *words);

/* ---- the parts of the benchmark ---- */

/* Measures and prints the limits, and the rows of a group: "train", "decode", "operation",
   "attention", "product". */
bool bench_rows(struct bench *bench, const char *group);

/* Prints all rows, for programs: group, name, line of the job, operations, bytes, memory, tokens,
   and where they are measured, as words. */
bool bench_list(void);

/* Bytes in use now on the device. */
int64_t bench_memory_live(void);

/* Runs `once` a few times and prints the time of its operations, the longest first, and what each
   keeps for backward; then the memory of a step that trains these weights, without the bytes that
   are in use outside of it. */
bool bench_profile(struct bench *bench, const char *name, const char *way, bench_once *once,
                   void *context, const sb_parameters *weights, int64_t outside);

/* softback bench --worker: answers lines of standard input until it ends (worker.c). */
void bench_worker(void);

#endif
