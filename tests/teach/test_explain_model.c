/* softback explain attention, tape and hessian, of a stored model. */
#include "tests/support/program.h"
#include <jansson.h>

#define TRAIN                                                                                      \
    "train --task copy --min-length 3 --max-length 5 --width 16 --heads 2 --encoder-layers 2 "     \
    "--decoder-layers 2 --steps 30 --threads 1 --out m "

static double cell(const json_t *row, size_t column)
{
    const json_t *value = json_array_get(row, column);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The first table of the page; for a row of attention its columns are key, s, a, g, g - avg, ds,
 * and the difference. */
static json_t *rows_of(const json_t *page)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(page, "parts"), i, part)
    {
        json_t *rows = json_object_get(json_object_get(part, "table"), "rows");
        if (rows)
            return rows;
    }
    return NULL;
}

static void expect_row_adds_up(const char *options, size_t keys)
{
    struct outcome o = program_run(
        "explain attention --model m --input '3 1 4 1' --target '3 3 3' --json %s", options);
    cr_assert(o.code == 0, "%s: %s", options, o.err);
    json_t *page = json_loads(o.out, 0, NULL), *rows = rows_of(page), *row;
    cr_assert(json_array_size(rows) == keys, "%s: %d keys", options, (int)json_array_size(rows));
    double a = 0, ds = 0, size = 0;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        a += cell(row, 2);
        ds += cell(row, 5);
        size = fmax(size, fabs(cell(row, 5)));
        cr_expect(fabs(cell(row, 5) - cell(row, 6)) <= 2e-3 * fabs(cell(row, 5)) + 1e-12,
                  "%s, key %d: %g, and the difference is %g", options, (int)i, cell(row, 5),
                  cell(row, 6));
    }
    cr_expect(fabs(a - 1) < 2e-3, "%s: the weights sum to %g", options, a);
    cr_expect(size > 1e-9 && fabs(ds) < 2e-2 * size, "%s: ds sums to %g", options, ds);
    json_decref(page);
}

CPU_TEST(explain_model, backward_through_any_row_agrees_with_differences)
{
    run_well(TRAIN);
    expect_row_adds_up("", 4);
    expect_row_adds_up("--kind cross --layer 1 --head 2 --row 4", 4);
    expect_row_adds_up("--kind encoder --layer 1 --row 2", 4);
    expect_row_adds_up("--kind decoder --layer 2 --head 2 --row 3", 4);
}

CPU_TEST(explain_model, a_row_fits_80_columns_and_its_average_is_called_avg)
{
    run_well(TRAIN);
    static const char *const options[] = {"", "--kind encoder --layer 1", "--kind decoder --row 3"};
    for (int i = 0; i < 3; i++) {
        struct outcome o = program_run(
            "explain attention --model m --input '3 1 4 1' --target '3 3 3' %s", options[i]);
        cr_expect(strstr(o.out, "g - avg") && !strstr(o.out, " D"), "%s", o.out);
        int column = 0;
        for (const char *at = o.out; *at; at++) {
            column = *at == '\n' ? 0 : column + ((*at & 0xc0) != 0x80);
            cr_expect(column <= 80, "%s", at);
        }
    }
}

CPU_TEST(explain_model, scores_include_biases_and_cosines)
{
    run_well(TRAIN "--positions alibi");
    expect_row_adds_up("--kind encoder --row 2", 4);
    cr_assert(program_run("train --task copy --width 16 --heads 2 --steps 20 --score cosine "
                          "--encoder-layers 1 --decoder-layers 1 --out n")
                  .code == 0);
    struct outcome o = program_run("explain attention --model n --input '3 1 4'");
    cr_expect(strstr(o.out, "equals the model's own forward pass within 1e-6"), "%s", o.out);
}

CPU_TEST(explain_model, a_row_and_the_tape_of_any_kind_of_model_are_shown)
{
    static const char *const kinds[] = {
        "language_model --task dates --decoder-layers 2 --context 16",
        "classifier --task pattern --encoder-layers 2"};
    for (int i = 0; i < 2; i++) {
        cr_assert(program_run("train --model %s --width 16 --heads 2 --steps 4 --batch-pairs 8 "
                              "--out n%d",
                              kinds[i], i)
                      .code == 0);
        struct outcome o = program_run("explain attention --model n%d --input abca --row 3", i);
        cr_expect(o.code == 0 && strstr(o.out, "own forward pass within 1e-6"), "%s", o.out);
        o = program_run("explain tape --model n%d --input abca", i);
        cr_expect(o.code == 0 && strncmp(o.out, "<svg ", 5) == 0, "%s", o.err);
    }
}

CPU_TEST(explain_model, the_tape_is_drawn)
{
    run_well(TRAIN);
    struct outcome o = program_run("explain tape --model m --input '3 1'");
    cr_expect(o.code == 0 && strncmp(o.out, "<svg ", 5) == 0, "%s", o.err);
    cr_expect(strstr(o.out, "decoder.layers.1.cross_attention.query.weight"));
    cr_expect(strstr(o.out, "Backward  d"), "there is no formula");
    o = program_run("explain tape --model m --input '3 1' --dot");
    cr_expect(o.code == 0 && strncmp(o.out, "digraph tape {", 14) == 0, "%s", o.err);
}

/* The last table of the page: iterations, eigenvalue, residual, cosine to g. */
static json_t *last_row_of(const json_t *page)
{
    size_t i;
    json_t *part, *row = NULL;
    json_array_foreach(json_object_get(page, "parts"), i, part)
    {
        json_t *rows = json_object_get(json_object_get(part, "table"), "rows");
        row = rows ? json_array_get(rows, 0) : row;
    }
    return row;
}

/* A model with a smooth activation, so that differences along the gradient agree. */
CPU_TEST(explain_model, the_curvature_along_the_gradient_agrees_with_differences)
{
    run_well(TRAIN "--activation gelu");
    struct outcome o = run_well("explain hessian --model m --task copy --count 4 --json");
    json_t *page = json_loads(o.out, 0, NULL), *rows = rows_of(page), *last = last_row_of(page);
    cr_assert(json_array_size(rows) == 6 && last);
    const double exact = cell(json_array_get(rows, 0), 2);
    const double difference = cell(json_array_get(rows, 3), 2); /* h = 0.001 */
    cr_expect(fabs(exact) > 1e-3 && fabs(exact - difference) < 1e-4 * fmax(1, fabs(exact)),
              "%.10g, %.10g", exact, difference);
    const double eigenvalue = cell(last, 1), residual = cell(last, 2);
    cr_expect(cell(last, 0) > 1 && residual <= 1e-3 * fabs(eigenvalue), "%g, %g", cell(last, 0),
              residual);
    cr_expect(fabs(eigenvalue) * (1 + 1e-3) >= fabs(exact), "Rayleigh: %g, %g", eigenvalue, exact);
    json_decref(page);
}
