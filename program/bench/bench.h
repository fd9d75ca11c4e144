/* What the parts of softback bench share. All of them measure the device in use. */
#ifndef SOFTBACK_PROGRAM_BENCH_BENCH_H
#define SOFTBACK_PROGRAM_BENCH_BENCH_H

#include "tensor/tensor.h"

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

/* ---- rows ---- */

struct bench_row {
    const char *group, *name, *way;
    double seconds; /* 0: `amount` is a rate */
    double amount;  /* how many `unit` are done in these seconds; 0: not printed */
    const char *unit;
    enum bench_limit limit;
    double work; /* the least work: bytes to move, or operations; 0: not printed */
};

void bench_print(const struct bench *bench, const struct bench_row *row);

/* ---- parts that are not rows of jobs: each prints its rows ---- */

bool bench_decode(struct bench *bench);   /* a decoding step with a KV cache, by its position */
bool bench_products(struct bench *bench); /* the built-in matrix product and OpenBLAS */

#endif
