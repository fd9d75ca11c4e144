/* A step of Adam. Weights begin at 0, so that their measure is that of the steps. */
#include "autograd/tape.h"
#include "nn/optimiser.h"
#include "program/bench/job.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

enum { CHECKED_STEPS = 3 };

struct adam {
    sb_parameters *weights;
    sb_tensor *w, *gradient[2]; /* in turns */
    sb_optimiser *adam;
    int64_t steps;
};

static void adam_close(void *job)
{
    struct adam *a = job;
    sb_tensor_release(a->gradient[0]);
    sb_tensor_release(a->gradient[1]);
    sb_optimiser_free(a->adam);
    sb_parameters_free(a->weights);
    memory_free(a);
}

static void *adam_open(const char *line)
{
    int64_t n;
    struct adam *a = memory_new(sizeof *a);
    if (!a)
        return sb_fail("bench: out of memory");
    if (job_whole(line, "size", &n) && (a->weights = sb_parameters_new(1)) &&
        (a->w = sb_parameters_add(a->weights, "w", SB_SHAPE(n),
                                  (sb_initial){SB_INITIAL_CONSTANT, 0})) &&
        (a->gradient[0] = bench_values(SB_F32, 1, SB_SHAPE(n))) &&
        (a->gradient[1] = bench_values(SB_F32, 2, SB_SHAPE(n))) &&
        (a->adam = sb_adam_new(a->weights, NULL)))
        return a;
    adam_close(a);
    return NULL;
}

static int adam_tensors(void *job, sb_named_tensor items[])
{
    const struct adam *a = job;
    for (int i = 0; items && i < 2; i++)
        items[i] = (sb_named_tensor){i ? "gradient.1" : "gradient.0", a->gradient[i]};
    return 2;
}

/* The optimiser consumes gradients: each step is given a new one, before the clock runs. */
static double adam_step(void *job)
{
    struct adam *a = job;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = sb_backward_from(a->w, a->gradient[a->steps++ % 2]);
    ok = sb_tape_end(&tape) && ok;
    const double begun = bench_clock();
    return bench_since(begun, ok && sb_optimiser_step(a->adam));
}

static bool adam_check(void *job, struct job_numbers *numbers)
{
    struct adam *a = job;
    for (int i = 0; i < CHECKED_STEPS; i++)
        if (adam_step(a) < 0)
            return false;
    return job_add_measure(numbers, a->w);
}

/* It reads the gradient, and reads and writes weights and two moments. */
static bool adam_work(const char *line, struct job_work *work)
{
    int64_t n;
    const bool ok = job_whole(line, "size", &n);
    *work = (struct job_work){.bytes = ok ? 28 * (double)n : 0, .memory = ok ? 16 * (double)n : 0};
    return ok;
}

const struct job_kind job_adam = {
    .name = "adam",
    .work = adam_work,
    .open = adam_open,
    .step = adam_step,
    .check = adam_check,
    .tensors = adam_tensors,
    .close = adam_close,
};
