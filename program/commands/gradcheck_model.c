#include "program/commands/gradcheck_model.h"
#include "autograd/gradcheck.h"
#include "program/run/stored_twin.h"
#include "program/screen/command.h"
#include "program/screen/progress.h"
#include "tensor/clock.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>

static void gradcheck_print_twin(const struct model_twin *t, const sb_gradcheck_result *result,
                                 bool second, double time)
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

static int gradcheck_twin(struct model_twin *t, bool second)
{
    const int64_t n = sb_parameters_count(t->weights);
    const double began = clock_seconds();
    const sb_gradcheck_options options = {.method = SB_GRADCHECK_EXACT, .second_order = second};
    sb_gradcheck_result result = {0};
    sb_tensor **x = memory_new((size_t)n * sizeof *x);
    if (!x)
        return command_failed("gradcheck");
    for (int64_t i = 0; i < n; i++)
        x[i] = sb_parameters_get(t->weights, i);
    const bool ok = sb_gradcheck(model_twin_loss, t, x, (int)n, &options, &result);
    memory_free(x);
    gradcheck_print_twin(t, &result, second, clock_seconds() - began);
    if (ok)
        return EXIT_OK;
    fprintf(stderr, "softback gradcheck: %s%s%s\n",
            result.input >= 0 ? sb_parameters_name(t->weights, result.input) : "",
            result.input >= 0 ? ": " : "", sb_error());
    return EXIT_FAILED;
}

int gradcheck_model(const struct gradcheck_model_request *request)
{
    struct stored_twin stored = {0};
    const int code = stored_twin_open(&stored, &request->stored)
                         ? gradcheck_twin(&stored.twin, request->second_order)
                         : command_failed("gradcheck");
    stored_twin_close(&stored);
    return code;
}
