/* softback gradcheck */
#include "autograd/gradcheck.h"
#include "ops/example.h"
#include "program/options/options.h"
#include "program/run/stored_twin.h"
#include "program/screen/progress.h"
#include "tensor/clock.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <stdio.h>
#include <string.h>

struct gradcheck_request {
    struct texts names;                /* of operations; none: all */
    struct stored_twin_request stored; /* the model and its batch */
    bool second_order;
};

#define ROW(member) FIELD(struct gradcheck_request, member)

static const struct field gradcheck_fields[] = {
    {"second", ROW(second_order), "also check products with the Hessian (second order)"},
    {"model", ROW(stored.path), "check all parameters of this model, in float64",
     .argument = "FILE"},
    {"data", ROW(stored.data), "pairs for --model: lines of source, tab, target",
     .argument = "FILE"},
    {"task", ROW(stored.task), "held-out pairs of a built-in task, for --model", .argument = "NAME",
     .take = option_take_task},
    {"count", ROW(stored.count), "number of pairs for --model [16]", 1, 1 << 16},
    {.rows = machine_fields},
    {ARGUMENTS(struct gradcheck_request, names)},
    {0}};
#undef ROW

static const char *gradcheck_example_name(const void *unused, int i)
{
    (void)unused;
    return example_at(i) ? example_at(i)->name : NULL;
}

static bool gradcheck_check_names(const struct texts *names)
{
    for (int n = 0; n < names->count; n++) {
        bool known = false;
        for (int i = 0; example_at(i) && !known; i++)
            known = strcmp(example_at(i)->name, names->text[n]) == 0;
        if (!known)
            return command_misused(
                "there is no operation \"%s\"%s", names->text[n],
                nearest_name(names->text[n], gradcheck_example_name, NULL, "\"", "\"").text);
    }
    return true;
}

struct outcome {
    int shapes, exacts; /* all, and those that were compared exactly */
    /* The largest errors: against exact derivatives, against differences, of the
       symmetry of Hessians. */
    double exact, difference, symmetry;
    bool ok;
};

static void gradcheck_raise(double *largest, double error)
{
    if (!(error <= *largest))
        *largest = error;
}

static bool gradcheck_any_wants_gradient(int n, sb_tensor *const x[])
{
    for (int i = 0; i < n; i++)
        if (x[i]->requires_grad)
            return true;
    return false;
}

/* Checks against exact derivatives where that is possible, and against differences. */
static bool gradcheck_check_inputs(const struct example *example, int n, sb_tensor *const x[],
                                   bool second, struct outcome *outcome)
{
    sb_random random = sb_random_new(7, SB_STREAM_USER);
    sb_gradcheck_options options = {.random = &random, .method = SB_GRADCHECK_DIFFERENCES};
    sb_gradcheck_result result = {0};
    bool ok = sb_gradcheck(example->run, NULL, x, n, &options, &result);
    gradcheck_raise(&outcome->difference, result.error);
    options.method = SB_GRADCHECK_AUTOMATIC;
    ok = ok && sb_gradcheck(example->run, NULL, x, n, &options, &result);
    options.second_order = second && result.method == SB_GRADCHECK_EXACT;
    if (ok && options.second_order)
        ok = sb_gradcheck(example->run, NULL, x, n, &options, &result);
    if (result.method == SB_GRADCHECK_EXACT)
        gradcheck_raise(&outcome->exact, result.error);
    gradcheck_raise(&outcome->symmetry, result.symmetry);
    outcome->exacts += result.method == SB_GRADCHECK_EXACT;
    return ok;
}

/* Checks one example at one list of shapes, unless no input there requires a gradient. */
static bool gradcheck_check(const struct example *example, const char *shapes, bool second,
                            struct outcome *outcome)
{
    sb_tensor *x[EXAMPLE_INPUTS];
    int n = example_inputs(shapes, SB_F64, 7, x);
    if (n < 0)
        return false;
    bool wanted = gradcheck_any_wants_gradient(n, x);
    bool ok = !wanted || gradcheck_check_inputs(example, n, x, second, outcome);
    for (int i = 0; i < n; i++)
        sb_tensor_release(x[i]);
    outcome->shapes += wanted;
    return ok;
}

/* Checks all examples of one operation. */
static struct outcome gradcheck_check_all(const char *name, bool second)
{
    struct outcome outcome = {.ok = true};
    const struct example *example;
    for (int i = 0; (example = example_at(i)); i++)
        for (int s = 0; strcmp(example->name, name) == 0 && s < EXAMPLE_SHAPES; s++)
            if (example->shapes[s] &&
                !gradcheck_check(example, example->shapes[s], second, &outcome)) {
                outcome.ok = false;
                printf("%-24s %s: %s\n", name, example->shapes[s], sb_error());
            }
    return outcome;
}

static bool gradcheck_is_first_of_its_name(int number)
{
    for (int i = 0; i < number; i++)
        if (strcmp(example_at(i)->name, example_at(number)->name) == 0)
            return false;
    return true;
}

struct error_text {
    char text[16];
};

/* Errors of 0 are below what rounding explains. */
static struct error_text gradcheck_error(double error)
{
    struct error_text t = {"0"};
    if (error != 0)
        snprintf(t.text, sizeof t.text, "%.1e", error);
    return t;
}

static void gradcheck_print_outcome(const char *name, const struct outcome *outcome, bool second)
{
    printf("%-24s %-6s %6d  %11s  %11s", name, sb_device_name(sb_device_in_use()), outcome->shapes,
           outcome->exacts ? gradcheck_error(outcome->exact).text : "-",
           gradcheck_error(outcome->difference).text);
    if (second)
        printf("  %11s", outcome->exacts ? gradcheck_error(outcome->symmetry).text : "-");
    puts(outcome->ok ? "" : "  FAILS");
    fflush(stdout);
}

static bool gradcheck_check_operations(const struct gradcheck_request *request)
{
    int checked = 0, failed = 0;
    printf("%-24s %-6s %6s  %11s  %11s%s\n", "operation", "device", "shapes", "exact",
           "differences", request->second_order ? "     symmetry" : "");
    for (int i = 0; example_at(i); i++) {
        const struct example *example = example_at(i);
        if (!texts_want(&request->names, example->name) || !gradcheck_is_first_of_its_name(i))
            continue;
        if (strcmp(example->name, "argmax") == 0 || strcmp(example->name, "detach") == 0) {
            printf("%-24s is not differentiable\n", example->name);
            continue;
        }
        struct outcome outcome = gradcheck_check_all(example->name, request->second_order);
        gradcheck_print_outcome(example->name, &outcome, request->second_order);
        checked++;
        failed += !outcome.ok;
    }
    printf("\n%d operation%s checked, %d failed, all in float64. Largest relative errors of "
           "backward:\n"
           "exact        against derivatives by dual numbers; at most 1e-12 passes\n"
           "differences  against central differences, less what their rounding explains; at most "
           "1e-6\n",
           checked, checked == 1 ? "" : "s", failed);
    if (request->second_order)
        puts("symmetry     of products with the Hessian, <u, H v> = <v, H u>; at most 1e-11. They "
             "also\n             agree with differences of gradients to 1e-6");
    return failed == 0;
}

/* ---- all parameters of a trained model ---- */

static void gradcheck_print_twin(const struct model_twin *t, const sb_gradcheck_result *result,
                                 bool second, double time)
{
    const int64_t pairs = sb_tensor_dim(sb_batch_get(t->batch, "source"), 0);
    printf("parameters       %s in %s tensors, as float64\n",
           count_text(sb_parameters_size(t->weights)).text,
           count_text(sb_parameters_count(t->weights)).text);
    printf("batch            %s pair%s\n", count_text(pairs).text, pairs == 1 ? "" : "s");
    printf("gradient         error %.1e by dual numbers; at most %.0e passes\n", result->error,
           MODEL_TOLERANCE);
    if (second)
        printf("second order     <u, H v> = <v, H u> to %.1e, differences of gradients to %.1e\n",
               result->symmetry, result->curvature);
    printf("time             %.1f s\n", time);
}

static bool gradcheck_twin(struct model_twin *t, bool second)
{
    const double began = clock_seconds();
    sb_gradcheck_result result = {0};
    const bool ok = model_twin_check(t, 4, second, &result) && result.ok;
    gradcheck_print_twin(t, &result, second, clock_seconds() - began);
    if (!ok && result.input >= 0)
        sb_fail("%s: %s", sb_parameters_name(t->weights, result.input), sb_error());
    return ok || command_failed();
}

/* Checks the model in its float64 twin and prints the result. */
static bool gradcheck_model(const struct gradcheck_request *request)
{
    struct stored_twin stored = {0};
    const bool ok = stored_twin_open(&stored, &request->stored)
                        ? gradcheck_twin(&stored.twin, request->second_order)
                        : command_failed();
    stored_twin_close(&stored);
    return ok;
}

static bool gradcheck_check_model(const struct gradcheck_request *r)
{
    const struct stored_twin_request *stored = &r->stored;
    return (stored->path || command_misused("--data and --task need --model FILE")) &&
           (!stored->data != !stored->task ||
            command_misused("--model needs either --data FILE or --task NAME")) &&
           (r->names.count == 0 ||
            command_misused("--model checks a whole model; leave out the operation \"%s\"",
                            r->names.text[0]));
}

static bool gradcheck_run(struct options *o)
{
    struct gradcheck_request r = {.stored.count = 16};
    if (!options_read(o, &r))
        return false;
    if (r.stored.path || r.stored.data || r.stored.task)
        return gradcheck_check_model(&r) && gradcheck_model(&r);
    return gradcheck_check_names(&r.names) && gradcheck_check_operations(&r);
}

const struct command command_gradcheck = {
    .summary = "compares backward with exact derivatives, for every operation or a model",
    .arguments = "[OPERATION...]"
                 "\n--model FILE (--data FILE | --task NAME)",
    .help = "Compares the backward of operations with exact derivatives (dual numbers) and with "
            "central differences, in float64: all of them, or those named. With --model, checks "
            "all parameters of a trained model.",
    .fields = gradcheck_fields,
    .run = gradcheck_run,
};
