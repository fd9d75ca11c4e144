/* The counts of softback bench; its times are not tested. */
#include "tests/support/program.h"
#include <stdio.h>

/* A line of the profile in tabs: "profile, size, operation, way, calls, seconds, operations, again,
   bytes", from its calls on. */
struct line {
    double calls, seconds, operations, again, bytes;
};

static struct line line_of(const char *out, const char *operation, const char *way)
{
    char start[128];
    struct line line = {0};
    snprintf(start, sizeof start, "profile\tquick\t%s\t%s\t", operation, way);
    const char *at = strstr(out, start);
    cr_assert(at != NULL, "there is no line \"%s\" in:\n%s", start, out);
    int found = sscanf(at + strlen(start), "%lf %lf %lf %lf %lf", &line.calls, &line.seconds,
                       &line.operations, &line.again, &line.bytes);
    cr_assert(found == 5, "%d numbers in: %s", found, at);
    return line;
}

static void expect_work(const char *out, const char *operation, const char *way, double operations,
                        double again)
{
    const struct line line = line_of(out, operation, way);
    cr_expect(line.operations == operations && line.again == again,
              "%s %s: %.0f and again %.0f, not %.0f and %.0f", operation, way, line.operations,
              line.again, operations, again);
    cr_expect(line.seconds > 0);
}

/* Width C = 16, two heads of D = 8, one layer on each side, feed-forward 16, 2 pairs of 8 symbols,
   16 symbols in the vocabulary: 16 positions; 6 products of C C in an encoder layer, 10 in a
   decoder layer. */
CPU_TEST(bench, the_profile_counts_operations_by_the_formulas)
{
    struct outcome o = run_well("bench train --profile --quick --tabs");
    const double C = 16, H = 2, D = 8, positions = 16, V = 16;
    const double linear = 2 * positions * 16 * C * C;
    expect_work(o.out, "linear", "forward", linear, 0);
    expect_work(o.out, "linear", "backward", 2 * linear, 0);
    const double logits = 2 * positions * C * V;
    expect_work(o.out, "linear_cross_entropy", "forward", 3 * logits, 0); /* with its gradients */
    expect_work(o.out, "linear_cross_entropy", "backward", 0, 0);
    const double whole = 2 * 8 * 8, causal = 2 * 8 * 9 / 2;
    const double attention = 2 * (whole + causal + whole) * H * (D + D);
    expect_work(o.out, "attention", "forward", attention, 0);
    expect_work(o.out, "attention", "backward", 2 * attention, 0);
}

/* A residual and a norm: x, branch, gain and bias are read, the sum and its norm written. */
CPU_TEST(bench, the_profile_counts_bytes_once)
{
    struct outcome o = run_well("bench train --profile --quick --tabs");
    const struct line line = line_of(o.out, "layer_norm", "forward");
    const double rows = 16, C = 16;
    cr_expect(line.bytes == line.calls * 4 * (2 * rows * C + 2 * C), "%.0f bytes in %.0f calls",
              line.bytes, line.calls);
}

/* Bytes of one part in "memory, size, way, part, bytes". */
static double memory_of(const char *text, const char *part)
{
    char start[80];
    snprintf(start, sizeof start, "memory\tquick\tf32\t%s\t", part);
    const char *at = strstr(text, start);
    cr_assert(at, "no memory of \"%s\" in %s", part, text);
    return atof(at + strlen(start));
}

CPU_TEST(bench, the_memory_of_a_step_has_parts_that_add_up)
{
    struct outcome o = run_well("bench train --profile --quick --tabs");
    const double weights = memory_of(o.out, "weights"), peak = memory_of(o.out, "peak");
    const double kept = memory_of(o.out, "kept for backward");
    cr_expect(weights == memory_of(o.out, "gradients of weights") && weights > 0);
    const double rest = memory_of(o.out, "optimiser, data, tables");
    cr_expect(rest >= 2 * weights, "Adam has two moments: %.0f, weights %.0f", rest, weights);
    cr_expect(kept > 0 &&
              2 * weights + rest + kept + memory_of(o.out, "more during backward") == peak);
}

CPU_TEST(bench, a_profile_is_also_a_readable_table)
{
    struct outcome o = run_well("bench train --profile --quick");
    cr_expect(strstr(o.out, "profile of quick, f32: ") != NULL, "%s", o.out);
    cr_expect(strstr(o.out, "between tapes: optimiser") != NULL, "%s", o.out);
    cr_expect(strstr(o.out, "memory of quick, f32:") != NULL, "%s", o.out);
}

CPU_TEST(bench, settings_that_make_openblas_slow_are_named)
{
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    setenv("OPENBLAS_L2_SIZE", "64", 1);
    const char *const commands[] = {"info --devices", "bench decode --quick"};
    for (int i = 0; i < 2; i++) {
        struct outcome o = run_well("%s", commands[i]);
        if (!strstr(o.out, "OpenBLAS"))
            cr_skip_test("built without OpenBLAS");
        cr_expect(strstr(o.out, "OPENBLAS_CORETYPE is set to \"Prescott\""), "%s", o.out);
        cr_expect(strstr(o.out, "OPENBLAS_L2_SIZE is set to \"64\""), "%s", o.out);
    }
}

CPU_TEST(bench, a_product_is_compared_with_openblas)
{
    struct outcome o = run_well("bench products --quick --tabs");
    cr_expect(strstr(o.out, "product\tquick\tf64, built-in\t"), "%s", o.out);
    if (!strstr(o.out, "OpenBLAS"))
        cr_skip_test("built without OpenBLAS");
    cr_expect(strstr(o.out, "choice\tf32\tOpenBLAS") && strstr(o.out, "choice\tf64\tOpenBLAS"),
              "%s", o.out);
}

/* What tests/bench/compare.py asks. */
CPU_TEST(bench, the_worker_answers_lines_about_jobs)
{
    static const char *const lines[] = {
        ("open seq2seq width=16 heads=2 feed_forward=16 layers=1 pairs=2 length=8 symbols=16 "
         "tied=1 dropout=0"),
        "check",
        "steps 2",
        "export job.safetensors",
        "open attention n=8 heads=2 size=4 causal=1",
        "check",
        "rate gemm 8 8 8 0 1",
        "open product m=2 n=2 k=2 transpose_b=1",
        "check",
        ("open decoding_step width=16 heads=2 feed_forward=16 layers=1 pairs=1 source=4 target=2 "
         "symbols=16 dropout=0"),
        "steps 3",
        "open attention n=8 heads=2",
        "check",
        "rate speed",
        "sing",
    };
    static const char *const answers[] = {
        "{\"ready\":true}\n{}\n{\"numbers\":[",
        "]}\n{\"seconds\":[",
        "]}\n{}\n{}\n{\"numbers\":[",
        "]}\n{\"rate\":",
        "}\n{}\n{\"numbers\":[",
        "]}\n{}\n{\"seconds\":[",
        "{\"error\":\"bench: \\\"attention n=8 heads=2\\\": there is no size\"}\n",
        "{\"error\":\"bench: nothing is open for \\\"check\\\"\"}\n",
        "{\"error\":\"bench: \\\"speed\\\" is no rate\"}\n",
        "{\"error\":\"bench: nothing is open for \\\"sing\\\"\"}\n",
    };
    FILE *file = fopen(test_temporary("lines"), "w");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        fprintf(file, "%s\n", lines[i]);
    fclose(file);
    struct outcome o = run_well("bench --worker <lines");
    const char *at = o.out;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        at = strstr(at, answers[i]);
        cr_assert(at, "\"%s\" is not in: %s", answers[i], o.out);
    }
    sb_safetensors *exported = KEPT(sb_safetensors_open(test_temporary("job.safetensors")));
    cr_expect(sb_safetensors_find(exported, "output.weight") >= 0 ||
              sb_safetensors_find(exported, "output.bias") >= 0);
    cr_expect(sb_safetensors_find(exported, "batch.3.target_out") >= 0);
}

CPU_TEST(bench, rows_are_listed_with_their_jobs_and_work)
{
    struct outcome o = run_well("bench --rows");
    cr_expect(strstr(o.out,
                     "train\ttoy\tseq2seq width=64 heads=2 feed_forward=128 layers=2 pairs=64 "
                     "length=16 symbols=64 tied=0 dropout=0.1\t1107296256\t0\t0\t1024\tcpu gpu "
                     "peers \n"),
              "%s", o.out);
    cr_expect(strstr(o.out, "attention\tcausal 64 x 2\tattention n=64 heads=2 size=64 causal=1\t"
                            "3194880\t"),
              "%s", o.out);
}
