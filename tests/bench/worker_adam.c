/* A step of Adam. Weights begin at 0, so that their measure is that of the steps. */
#include "autograd/tape.h"
#include "nn/optimiser.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include "tests/bench/worker.h"

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
        return sb_fail("worker: out of memory");
    if (worker_whole(line, "size", &n) && (a->weights = sb_parameters_new(1)) &&
        (a->w = sb_parameters_add(a->weights, "w", SB_SHAPE(n),
                                  (sb_initial){SB_INITIAL_CONSTANT, 0})) &&
        (a->gradient[0] = worker_values(1, SB_SHAPE(n))) &&
        (a->gradient[1] = worker_values(2, SB_SHAPE(n))) &&
        (a->adam = sb_adam_new(a->weights, NULL)))
        return a;
    adam_close(a);
    return NULL;
}

static bool adam_save(void *job, const char *path)
{
    const struct adam *a = job;
    const sb_named_tensor items[] = {{"gradient.0", a->gradient[0]},
                                     {"gradient.1", a->gradient[1]}};
    return sb_safetensors_save(path, 2, items, 0, NULL);
}

/* The optimiser consumes gradients: each step is given a new one, before the clock runs. */
static double adam_step(void *job)
{
    struct adam *a = job;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = sb_backward_from(a->w, a->gradient[a->steps++ % 2]);
    ok = sb_tape_end(&tape) && ok;
    const double begun = worker_clock();
    ok = ok && sb_optimiser_step(a->adam);
    return ok ? worker_clock() - begun : -1;
}

static bool adam_check(void *job, struct numbers *numbers)
{
    struct adam *a = job;
    for (int i = 0; i < CHECKED_STEPS; i++)
        if (adam_step(a) < 0)
            return false;
    return numbers_add_measure(numbers, a->w);
}

const struct job_kind job_adam = {"adam", adam_open, adam_save, adam_check, adam_step, adam_close};
