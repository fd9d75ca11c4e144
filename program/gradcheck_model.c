#include "program/gradcheck_model.h"
#include "autograd/gradcheck.h"
#include "program/command.h"
#include "program/progress.h"
#include "program/training.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

/* A model whose weights are those of a file, in float64, and a batch for it. */
struct twin {
    struct checkpoint *from;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_pairs *pairs;
    sb_data *data;
    const sb_batch *batch;
};

static void twin_free(struct twin *t)
{
    sb_data_free(t->data);
    sb_pairs_free(t->pairs);
    sb_seq2seq_free(t->model);
    sb_parameters_free(t->weights);
    checkpoint_free(t->from);
}

static bool twin_copy_weights(struct twin *t)
{
    for (int64_t i = 0; i < sb_parameters_count(t->weights); i++) {
        sb_tensor *to = sb_parameters_get(t->weights, i);
        const sb_tensor *from =
            sb_parameters_find(t->from->weights, sb_parameters_name(t->weights, i));
        double *values = memory_new((size_t)sb_tensor_size(to) * sizeof *values);
        const bool ok =
            values && from && sb_tensor_read(from, values) && sb_tensor_write(to, values);
        memory_free(values);
        if (!ok)
            return values ? false : sb_fail("out of memory");
    }
    return true;
}

/* The first `count` pairs of the file, or of the task's held-out pairs, as one batch. */
static bool twin_read_batch(struct twin *t, const struct gradcheck_model_request *r)
{
    const sb_data_options options = {
        .batch_pairs = r->count, .batch_symbols = 1 << 24, .longest = 1 << 20};
    t->pairs = r->task ? training_task_pairs(r->task, &t->from->settings, SB_PART_TEST, r->count)
                       : sb_pairs_read(r->data, NULL);
    sb_pairs *first = t->pairs ? sb_pairs_new() : NULL;
    bool ok = first != NULL;
    for (int64_t i = 0; ok && i < r->count && i < sb_pairs_count(t->pairs); i++)
        ok = sb_pairs_add(first, sb_pairs_source(t->pairs, i), sb_pairs_target(t->pairs, i));
    if (ok)
        t->data =
            sb_data_new(first, sb_seq2seq_source(t->model), sb_seq2seq_target(t->model), &options);
    sb_pairs_free(first);
    t->batch = t->data ? sb_data_next(t->data) : NULL;
    return t->batch != NULL;
}

static bool twin_open(struct twin *t, const struct gradcheck_model_request *r)
{
    t->from = checkpoint_load(r->path);
    t->weights = t->from ? sb_parameters_of(SB_F64, 1) : NULL;
    t->model = t->weights ? sb_seq2seq_for(t->weights, sb_seq2seq_source(t->from->model),
                                           sb_seq2seq_target(t->from->model),
                                           sb_seq2seq_options_of(t->from->model))
                          : NULL;
    return t->model && twin_copy_weights(t) && twin_read_batch(t, r);
}

static sb_tensor *twin_loss(void *context, sb_tensor *const x[])
{
    const struct twin *t = context;
    (void)x;
    return sb_seq2seq_loss(t->model, t->batch);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void twin_print(const struct twin *t, const sb_gradcheck_result *result, bool second,
                       double time)
{
    const int64_t pairs = sb_tensor_dim(sb_batch_get(t->batch, "source"), 0);
    printf("parameters       %s in %s tensors, as float64\n",
           count_text(sb_parameters_size(t->weights)).text,
           count_text(sb_parameters_count(t->weights)).text);
    printf("batch            %s pair%s\n", count_text(pairs).text, pairs == 1 ? "" : "s");
    printf("gradient         error %.1e by dual numbers; at most 1e-12 passes\n", result->error);
    if (second)
        printf("second order     <u, H v> = <v, H u> to %.1e, differences of gradients to %.1e\n",
               result->symmetry, result->curvature);
    printf("time             %.1f s\n", time);
}

static int twin_check(struct twin *t, const struct gradcheck_model_request *r)
{
    const int64_t n = sb_parameters_count(t->weights);
    const double began = seconds();
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT,
                                          .second_order = r->second_order};
    sb_gradcheck_result result = {0};
    sb_tensor **x = memory_new((size_t)n * sizeof *x);
    if (!x)
        return command_failed("gradcheck");
    for (int64_t i = 0; i < n; i++)
        x[i] = sb_parameters_get(t->weights, i);
    const bool ok = sb_gradcheck(twin_loss, t, x, (int)n, &options, &result);
    memory_free(x);
    twin_print(t, &result, r->second_order, seconds() - began);
    if (ok)
        return EXIT_OK;
    fprintf(stderr, "softback gradcheck: %s%s%s\n",
            result.input >= 0 ? sb_parameters_name(t->weights, result.input) : "",
            result.input >= 0 ? ": " : "", sb_error());
    return EXIT_FAILED;
}

int gradcheck_model(const struct gradcheck_model_request *request)
{
    struct twin twin = {0};
    const int code =
        twin_open(&twin, request) ? twin_check(&twin, request) : command_failed("gradcheck");
    twin_free(&twin);
    return code;
}
