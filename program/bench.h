/* What the parts of softback bench share. All of them measure the device in use. */
#ifndef SOFTBACK_PROGRAM_BENCH_H
#define SOFTBACK_PROGRAM_BENCH_H

#include "tensor/tensor.h"

/* What nothing can be faster than, measured by the library itself. */
enum bench_limit {
    BENCH_COPY, /* bytes read and written a second, by a large copy */
    BENCH_F32,  /* floating-point operations a second: on the CPU multiply-adds in registers, */
    BENCH_BF16, /* elsewhere a large matrix product */
    BENCH_LIMITS
};

struct bench {
    bool quick;   /* tiny sizes, few times: shows that everything runs, but no speed */
    bool tabs;    /* rows for programs to read */
    bool profile; /* also where the time of training steps goes */
    bool gpu;     /* sizes for a GPU, and bf16 too */
    double limit[BENCH_LIMITS]; /* 0: not known */
    sb_tensor *block;           /* what is copied to measure that limit */
};

/* ---- time ---- */

/* Seconds, once all that was queued is done; negative, with a message, when some of it failed. */
double bench_clock(void);
/* The seconds since then, if all is well; otherwise negative. */
double bench_since(double begun, bool ok);

/* Does what is measured, once: the seconds that it took, negative when it failed. */
typedef double bench_once(void *context);
/*
 * The median of calls within two seconds, 3 at least and 30 at most, after some that warm up. On
 * the CPU, whose speed others may share, this limit is measured anew after each call, and
 * bench->limit becomes the median.
 */
double bench_median(struct bench *bench, enum bench_limit limit, bench_once *once, void *context);

/* Measures the limits; bench_end gives back what that takes. */
bool bench_limits(struct bench *bench);
double bench_limit_now(const struct bench *bench, enum bench_limit limit); /* 0: as before */
void bench_end(struct bench *bench);

/* A leaf of values in [-1, 1), which the caller owns. */
sb_tensor *bench_values(sb_dtype dtype, uint32_t seed, int rank, const int64_t *dim);

/* ---- rows ---- */

struct bench_row {
    const char *group, *name, *way;
    double seconds; /* 0: `amount` is a rate */
    double amount;  /* so many `unit` are done in these seconds; 0: nothing is said of that */
    const char *unit;
    enum bench_limit limit;
    double work; /* what cannot be left out: bytes to move, or operations; 0: nothing is said */
};

void bench_print(const struct bench *bench, const struct bench_row *row);

/* ---- the parts: each prints its rows ---- */

bool bench_train(struct bench *bench);      /* training steps */
bool bench_decode(struct bench *bench);     /* a step of decoding, with cache */
bool bench_operations(struct bench *bench); /* operations that are bound by memory */
bool bench_attention(struct bench *bench);  /* by tiles and composed */

#endif
