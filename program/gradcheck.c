/* softback gradcheck */
#include "autograd/gradcheck.h"
#include "ops/example.h"
#include "program/command.h"
#include "program/machine_options.h"
#include "program/nearest.h"
#include "tensor/storage.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 64 };

struct gradcheck_request {
    int count;
    const char *name[MOST_NAMES];
};

static error_t gradcheck_parse(int key, char *argument, struct argp_state *state)
{
    struct gradcheck_request *request = state->input;
    if (key != ARGP_KEY_ARG)
        return machine_option(key, argument, state);
    if (request->count == MOST_NAMES)
        argp_failure(state, EXIT_USAGE, 0, "at most %d operations can be named", MOST_NAMES);
    request->name[request->count++] = argument;
    return 0;
}

static const char *gradcheck_example_name(const void *unused, int i)
{
    (void)unused;
    return example_at(i) ? example_at(i)->name : NULL;
}

static int gradcheck_check_names(const struct gradcheck_request *request)
{
    for (int n = 0; n < request->count; n++) {
        bool known = false;
        for (int i = 0; example_at(i) && !known; i++)
            known = strcmp(example_at(i)->name, request->name[n]) == 0;
        const char *nearest = nearest_word(request->name[n], gradcheck_example_name, NULL);
        if (!known)
            return nearest ? command_misused("gradcheck",
                                             "there is no operation \"%s\"; did you mean \"%s\"?",
                                             request->name[n], nearest)
                           : command_misused("gradcheck", "there is no operation \"%s\"",
                                             request->name[n]);
    }
    return -1;
}

static bool gradcheck_is_wanted(const struct gradcheck_request *request, const char *name)
{
    bool wanted = request->count == 0;
    for (int n = 0; n < request->count; n++)
        wanted |= strcmp(request->name[n], name) == 0;
    return wanted;
}

struct outcome {
    int shapes;
    double worst;
    bool ok;
};

static bool gradcheck_any_wants_gradient(int n, sb_tensor *const x[])
{
    for (int i = 0; i < n; i++)
        if (x[i]->requires_grad)
            return true;
    return false;
}

/* Checks one example at one list of shapes, unless no input there requires a gradient. */
static bool gradcheck_check(const struct example *example, const char *shapes,
                            struct outcome *outcome)
{
    sb_tensor *x[EXAMPLE_INPUTS];
    int n = example_inputs(shapes, SB_F64, 7, x);
    if (n < 0)
        return false;
    sb_random random = sb_random_new(7, SB_STREAM_USER);
    const sb_gradcheck_options options = {.random = &random};
    sb_gradcheck_result result = {0};
    bool wanted = gradcheck_any_wants_gradient(n, x);
    bool ok = !wanted || sb_gradcheck(example->run, NULL, x, n, &options, &result);
    for (int i = 0; i < n; i++)
        sb_tensor_release(x[i]);
    outcome->shapes += wanted;
    outcome->worst = !(result.error <= outcome->worst) ? result.error : outcome->worst;
    return ok;
}

static bool gradcheck_is_differentiable(const struct example *example)
{
    return strcmp(example->name, "argmax") != 0 && strcmp(example->name, "detach") != 0;
}

/* Checks all examples of one operation. */
static struct outcome gradcheck_check_all(const char *name)
{
    struct outcome outcome = {.ok = true};
    const struct example *example;
    for (int i = 0; (example = example_at(i)); i++)
        for (int s = 0; strcmp(example->name, name) == 0 && s < EXAMPLE_SHAPES; s++)
            if (example->shapes[s] && !gradcheck_check(example, example->shapes[s], &outcome)) {
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

static void gradcheck_print_outcome(const char *name, const struct outcome *outcome)
{
    printf("%-24s %-6s %-6s %6d  ", name, sb_device_name(sb_device_in_use()), "f64",
           outcome->shapes);
    if (outcome->worst == 0)
        printf("below rounding");
    else
        printf("%.1e", outcome->worst);
    puts(outcome->ok ? "" : "  FAILS");
    fflush(stdout);
}

static int gradcheck_check_operations(const struct gradcheck_request *request)
{
    int checked = 0, failed = 0;
    printf("%-24s %-6s %-6s %6s  %s\n", "operation", "device", "dtype", "shapes", "worst error");
    for (int i = 0; example_at(i); i++) {
        const struct example *example = example_at(i);
        if (!gradcheck_is_wanted(request, example->name) || !gradcheck_is_first_of_its_name(i))
            continue;
        if (!gradcheck_is_differentiable(example)) {
            printf("%-24s is not differentiable\n", example->name);
            continue;
        }
        struct outcome outcome = gradcheck_check_all(example->name);
        gradcheck_print_outcome(example->name, &outcome);
        checked++;
        failed += !outcome.ok;
    }
    printf("\n%d operations checked, %d failed. Errors are relative, less the rounding error of "
           "the differences;\nat most 1e-6 passes.\n",
           checked, failed);
    return failed ? EXIT_FAILED : EXIT_OK;
}

static int gradcheck_run(int argc, char **argv)
{
    static const struct argp_option options[] = {MACHINE_OPTIONS(0), {0}};
    const struct argp argp = {options,
                              gradcheck_parse,
                              "[OPERATION...]",
                              "Compares the gradients of operations (all, or those named) with "
                              "central differences, in float64.",
                              NULL,
                              NULL,
                              NULL};
    struct gradcheck_request request = {0};
    int wrong = command_parse(&argp, "gradcheck", argc, argv, &request);
    if (wrong < 0)
        wrong = gradcheck_check_names(&request);
    return wrong < 0 ? gradcheck_check_operations(&request) : wrong;
}

const struct command command_gradcheck = {
    "gradcheck", "compares the gradients of operations with central differences", gradcheck_run};
