/*
 * Jobs: what is measured, each opened from a line of its kind and its sizes,
 *
 *     attention n=4096 heads=8 size=64 causal=1 bf16=1
 *
 * The rows of the benchmark are such lines (rows.c), and so are those that tests/bench/compare.py
 * measures beside other libraries.
 */
#ifndef SOFTBACK_PROGRAM_BENCH_JOB_H
#define SOFTBACK_PROGRAM_BENCH_JOB_H

#include "program/bench/bench.h"
#include "tensor/safetensors.h"

/* The number after "key="; 0 where there is none. */
double job_number(const char *line, const char *key);
int64_t job_size(const char *line, const char *key);
bool job_flag(const char *line, const char *key);
/* SB_BF16 if "bf16=1" is there, else SB_F32. */
sb_dtype job_dtype(const char *line);

/* The least work of a step, with which its time is compared. */
struct job_work {
    double operations; /* of matrix products */
    double bytes;      /* that are read and written; 0: operations are the limit */
    double memory;     /* bytes of the arrays that hold them */
    double tokens;     /* that are trained on or decoded */
};

/* Numbers that every library must get. */
struct job_numbers {
    double *value;
    int64_t count, room;
};
bool job_add(struct job_numbers *numbers, double value);
/* Adds sqrt(sum of (1 + i mod 7) x_i^2), which depends on each element and on their order. False if
   there is no tensor. */
bool job_add_measure(struct job_numbers *numbers, const sb_tensor *x);

/* A function that fails leaves a message. */
struct job_kind {
    const char *name;
    const char *needs; /* the keys that its lines must have */
    size_t size;       /* bytes of a job, which are 0 before `open` */
    struct job_work (*work)(const char *line);
    bool (*open)(void *job, const char *line);
    /* One step: its seconds; negative on failure. Adds numbers unless NULL. */
    double (*run)(void *job, struct job_numbers *numbers);
    int checked; /* steps after which the numbers are compared */
    /* Weights and inputs, for other libraries; returns how many. items NULL: only that. */
    int (*tensors)(void *job, sb_named_tensor items[]);
    sb_parameters *(*weights)(void *job); /* that it trains; NULL: none */
    void (*close)(void *job);             /* also after `open` has failed */
};

extern const struct job_kind job_seq2seq, job_language_model, job_decoding, job_decoding_step,
    job_attention, job_softmax, job_layer_norm, job_cross_entropy, job_adam, job_product;

/* The kind of a line; fails when it has none, or a key that the kind needs is missing. */
const struct job_kind *job_kind_of(const char *line);

/* An open job. job_open returns false, with a message, and job_close also accepts {0}. */
struct job {
    const struct job_kind *kind;
    void *self;
};
bool job_open(struct job *job, const char *line);
double job_step(void *job); /* of a struct job, as bench_once */
bool job_check(const struct job *job, struct job_numbers *numbers);
void job_close(struct job *job);

#endif
