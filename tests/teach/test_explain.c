/*
 * `softback explain`: its pages equal golden texts, its numbers agree with its explanations, and
 * its options.
 *
 * SOFTBACK_GOLDEN=write rewrites the golden texts.
 */
#include "ops/example.h"
#include "teach/explain/page.h"
#include "teach/explain/row.h"
#include "teach/explain/topic.h"
#include "tests/support/program.h"
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>

static void free_page(void *page)
{
    page_free(page);
}

/* A topic with its own options, or an operation. */
static struct page *page_of(const char *name)
{
    const struct explain_options options = {.steps = 2};
    struct page *page = explain_page(name, &options);
    cr_assert(page != NULL, "%s: %s", name, sb_error());
    kept_object(page, free_page);
    return page;
}

static char *text_of(const char *name)
{
    return KEPT(page_as_text(page_of(name), false));
}

static struct outcome explain_well(const char *arguments)
{
    struct outcome o = program_run("explain %s", arguments);
    cr_assert(o.code == 0, "%s: exit code %d, \"%s\"", arguments, o.code, o.err);
    cr_assert(o.err[0] == '\0', "%s: on standard error: \"%s\"", arguments, o.err);
    return o;
}

static void free_json(void *json)
{
    json_decref(json);
}

/* Belongs to the test. */
static json_t *json_from(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    cr_assert(json_is_object(json), "not JSON: %s", text);
    kept_object(json, free_json);
    return json;
}

static json_t *json_of(const char *arguments)
{
    return json_from(explain_well(arguments).out);
}

/* The table of this name in a page's JSON. */
static json_t *table_of(json_t *page, const char *name)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(page, "parts"), i, part)
    {
        json_t *table = json_object_get(part, "table");
        if (table && strcmp(json_string_value(json_object_get(table, "name")), name) == 0)
            return table;
    }
    cr_assert(false, "there is no table \"%s\"", name);
    return NULL;
}

static json_t *cell_at(json_t *page, const char *name, size_t row, const char *column)
{
    json_t *table = table_of(page, name), *columns = json_object_get(table, "columns");
    for (size_t c = 0; c < json_array_size(columns); c++)
        if (strcmp(json_string_value(json_array_get(columns, c)), column) == 0)
            return json_array_get(json_array_get(json_object_get(table, "rows"), row), c);
    cr_assert(false, "\"%s\" has no column \"%s\"", name, column);
    return NULL;
}

static double number_at(json_t *page, const char *name, size_t row, const char *column)
{
    json_t *cell = cell_at(page, name, row, column);
    cr_assert(json_is_number(cell), "%s, row %zu, %s is no number", name, row, column);
    return json_number_value(cell);
}

static void expect_near(double got, double expected, double tolerance, const char *what)
{
    cr_expect(fabs(got - expected) <= tolerance, "%s is %g, not %g +- %g", what, got, expected,
              tolerance);
}

/* ---- golden texts ---- */

/* What explain shows for each golden text. */
struct golden {
    const char *file, *arguments;
};

static const struct golden goldens[] = {
    {"softmax", "softmax"},
    {"softmax_options", "softmax --scores 20,10,1,-10,3 --upstream 1,0,2,0,-1 --mask 1,1,1,1,0 "
                        "--temperature 2"},
    {"softmax_empty", "softmax --scores 1,2 --mask 0,0"},
    {"mask", "mask"},
    {"flash", "flash"},
    {"flash_options", "flash --scores 3,1,4,1,5,9,2 --values 1,2,3,4,5,6,7 --block 3"},
    {"cross-entropy", "cross-entropy"},
    {"saturation", "saturation"},
    {"scaling", "scaling"},
    {"positions", "positions"},
    {"positions_options", "positions --periods 3,4,8"},
    {"attention", "attention"},
    {"tape", "tape"},
    {"hessian", "hessian"},
    {"hessian_options", "hessian --scores 1,-2,0.5 --class 1"},
    {"claims", "claims"},
    {"layer_norm", "layer_norm"},
    {"argmax", "argmax"},
    {"topics", ""},
};

static void expect_narrow(const char *name, const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        int n = 0;
        for (size_t i = 0; i < strcspn(line, "\n"); i++) {
            unsigned char c = (unsigned char)line[i];
            cr_expect(c >= ' ' && c != 0x7f, "%s: byte %d", name, c);
            n += (c & 0xc0) != 0x80;
        }
        cr_expect(n <= PAGE_WIDTH, "%s: %d columns: %.*s", name, n, (int)strcspn(line, "\n"), line);
        cr_expect(n == 0 || line[strcspn(line, "\n") - 1] != ' ',
                  "%s: a line ends with a space: %.*s", name, (int)strcspn(line, "\n"), line);
    }
}

CPU_TEST(explain, each_topic_equals_its_golden_text)
{
    const char *mode = getenv("SOFTBACK_GOLDEN");
    bool writes = mode && strcmp(mode, "write") == 0;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        struct outcome o = explain_well(goldens[i].arguments);
        expect_narrow(goldens[i].file, o.out);
        char path[200];
        snprintf(path, sizeof path, "golden/explain/%s.txt", goldens[i].file);
        FILE *file = fopen(test_path(path), writes ? "w" : "r");
        cr_assert(file != NULL, "%s cannot be opened", path);
        if (writes) {
            fputs(o.out, file);
        } else {
            static char expected[1 << 16];
            expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
            cr_expect(strcmp(expected, o.out) == 0, "%s: expected:\n%s\ngot:\n%s", path, expected,
                      o.out);
        }
        fclose(file);
    }
}

CPU_TEST(explain, topics_without_a_golden_text_fit_80_columns_too)
{
    static const char *const names[] = {"gradcheck", "wrong-gradient", "attention", "matmul"};
    for (int i = 0; i < 4; i++) {
        char *text = text_of(names[i]);
        expect_narrow(names[i], text);
    }
    for (int i = 0; topic_at(i); i++)
        expect_text(explain_well("").out, topic_at(i)->name);
}

/* The page is complete: its last row is there. */
CPU_TEST(explain, each_operation_with_kernels_shows_its_plain_loops_with_code)
{
    for (int i = 0; operation_at(i); i++) {
        const struct operation *operation = operation_at(i);
        if (!operation->rows)
            continue;
        const struct explain_options options = {.code = true};
        struct page *page = MUST(explain_page(operation->examples[0].name, &options));
        char *text = KEPT(page_as_text(page, false)), file[64], row[64];
        snprintf(file, sizeof file, "\nops/plain/%s.c\n", operation->name);
        snprintf(row, sizeof row, "KERNELS(%s) = {", operation->name);
        expect_text(text, file);
        expect_text(text, row);
        expect_narrow(operation->name, text);
        page_free(page);
    }
}

/* ---- JSON ---- */

/* Whether the number is a word of the text from *at on; moves *at past it. */
static bool comes_next(const char **at, double number)
{
    while (**at) {
        while (isspace((unsigned char)**at))
            ++*at;
        char *end;
        double word = strtod(*at, &end);
        bool whole = end != *at && (isspace((unsigned char)*end) || !*end);
        *at += strcspn(*at, " \n");
        if (whole && word == number)
            return true;
    }
    return false;
}

static int expect_numbers(const char *name, const char *text, json_t *page)
{
    size_t p, r, c;
    json_t *part, *row, *cell;
    int count = 0;
    json_array_foreach(json_object_get(page, "parts"), p, part)
    {
        json_t *table = json_object_get(part, "table"), *rows = json_object_get(table, "rows");
        cr_expect((table != NULL) != json_is_string(json_object_get(part, "text")));
        json_array_foreach(rows, r, row)
        {
            cr_expect(json_array_size(row) == json_array_size(json_object_get(table, "columns")));
            json_array_foreach(row, c, cell)
            {
                if (!json_is_number(cell))
                    continue;
                count++;
                cr_expect(comes_next(&text, json_number_value(cell)), "%s: %s, row %zu: %g", name,
                          json_string_value(json_object_get(table, "name")), r,
                          json_number_value(cell));
            }
        }
    }
    return count;
}

/* The bars of gradcheck have different numbers. */
CPU_TEST(explain, json_has_the_numbers_of_the_text)
{
    static const char *const names[] = {"softmax",    "mask",      "flash",     "cross-entropy",
                                        "saturation", "positions", "attention", "tape",
                                        "layer_norm", "hessian"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct page *page = page_of(names[i]);
        char *text = KEPT(page_as_text(page, false)), *dump = KEPT(page_as_json(page));
        json_t *json = json_from(dump);
        cr_expect_str_eq(json_string_value(json_object_get(json, "topic")), names[i]);
        cr_expect(expect_numbers(names[i], text, json) >= 9, "%s", names[i]);
    }
}

CPU_TEST(explain, the_program_prints_json_with_its_option)
{
    json_t *json = json_of("softmax --json");
    expect_near(number_at(json, "forward", 0, "a"), 0.6381, 1e-9, "a_0");
    expect_near(number_at(json, "backward", 0, "ds"), 0.2512, 1e-9, "ds_0");
    json = json_of("mask --json");
    cr_expect_str_eq(json_string_value(cell_at(json, "ways", 3, "a_0")), "NaN");
}

/* ---- the page itself ---- */

CPU_TEST(explain, small_numbers_keep_three_digits_and_zero_has_no_sign)
{
    const struct {
        struct page_column column;
        double number;
        const char *shown;
    } cases[] = {
        {{"", PAGE_NUMBER, 4}, 0.25, "0.2500"},     {{"", PAGE_NUMBER, 4}, 0.00012345, "0.000123"},
        {{"", PAGE_NUMBER, 4}, -4e-9, "-4e-9"},     {{"", PAGE_NUMBER, 4}, -0.0, "0.0000"},
        {{"", PAGE_NUMBER, 0}, -0.2, "0"},          {{"", PAGE_SHORT, 3}, 1234.4, "1234"},
        {{"", PAGE_SHORT, 4}, NAN, "NaN"},          {{"", PAGE_NUMBER, 2}, -INFINITY, "-inf"},
        {{"", PAGE_NUMBER, 3}, 0.00512, "0.00512"}, {{"", PAGE_SHORT, 3}, -0.0, "0"},
        {{"", PAGE_NUMBER, 3}, -1e308, "-1e308"},   {{"", PAGE_NUMBER, 0}, 1234567, "1234567"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(page_show(&cases[i].column, cases[i].number).text, cases[i].shown);
}

CPU_TEST(explain, a_long_line_breaks_between_its_formulas_and_sentences_go_on_after_a_colon)
{
    struct page *page = page_new("lines");
    page_lines(
        page,
        "Backward  dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h   dbias = sum of dy\n"
        "Paper     Vaswani et al. 2017; softcap:\n"
        "          Gemma Team 2024; sinks: Xiao et al. 2024; TF32x3: Ootomo and Yokota 2022; "
        "more\n");
    char *text = KEPT(page_as_text(page, false));
    MUST(text != NULL);
    expect_text(text, "Backward  dx = (u - mean u - h mean(u h)) / s   dgain = sum of dy h\n"
                      "          dbias = sum of dy\n");
    expect_text(text, "softcap: Gemma Team 2024;");
    page_free(page);
}

CPU_TEST(explain, a_terminal_gets_colour_and_blocks_for_the_same_words)
{
    struct page *page = page_of("softmax");
    char *plain = KEPT(page_as_text(page, false)), *colour = KEPT(page_as_text(page, true));
    expect_text(plain, "----|");
    expect_text(plain, "|+++++++");
    expect_text(colour, "\033[38;5;208m████\033[0m|");
    expect_text(colour, "|\033[38;5;33m███████\033[0m");
    expect_text(program_on_terminal("explain softmax").out, "███████");
}

static bool show_softmax(void *unused)
{
    (void)unused;
    const struct explain_options options = {0};
    struct page *page = explain_page("softmax", &options);
    char *text = page ? page_as_text(page, false) : NULL;
    char *json = text ? page_as_json(page) : NULL;
    bool ok = json != NULL;
    memory_free(text);
    memory_free(json);
    page_free(page);
    return ok;
}

CPU_TEST(explain, each_failing_allocation_of_a_page_is_reported)
{
    int n = test_each_allocation_fails(show_softmax, NULL);
    cr_expect(n >= 190, "only %d allocations were made to fail", n);
}

/* ---- options and mistakes ---- */

CPU_TEST(explain, options_change_what_is_computed)
{
    json_t *json = json_of("softmax --scores 0,0,5 --mask 1,1,0 --upstream 4,0,9 --json");
    expect_near(number_at(json, "forward", 0, "a"), 0.5, 1e-9, "a_0, one of two kept weights");
    expect_near(number_at(json, "forward", 2, "a"), 0, 0, "a_2, which is blocked");
    expect_near(number_at(json, "backward", 0, "ds"), 1, 1e-9, "ds_0 = 0.5 (4 - 2)");
    json = json_of("softmax --scores 0,0 --temperature 4 --upstream 1,0 --json");
    expect_near(number_at(json, "backward", 0, "ds"), 0.0625, 6e-5, "ds_0 = 0.5 (1 - 0.5) / 4");
    json = json_of("cross-entropy --logits 1,1 --class 1 --json");
    expect_near(number_at(json, "logits", 1, "fused"), -0.5, 1e-9, "p - y");
    json = json_of("flash --scores 1,1,1 --values 3,6,9 --block 1 --json");
    expect_near(number_at(json, "blocks", 2, "o / l"), 6, 1e-9, "the mean of the values");
    expect_text(explain_well("positions --periods 3,4").out,
                "At a distance of 12 all waves are in phase");
}

CPU_TEST(explain, the_command_explains_itself)
{
    struct outcome o = program_run("explain --help");
    cr_expect(o.code == 0);
    expect_text(o.out, "Usage: softback explain [OPTION...] [TOPIC]");
    expect_text(program_run("--help").out, "explain");
}

CPU_TEST(explain, a_name_may_have_hyphens_or_underlines_and_a_lesson_has_a_topic)
{
    static const char *const same[][2] = {{"layer-norm", "layer_norm: "},
                                          {"cross-entropy", "cross-entropy: "},
                                          {"masked-softmax", "masked_softmax: "},
                                          {"1", "softmax: "},
                                          {"6", "cross-entropy: "},
                                          {"10", "tape: "}};
    for (int i = 0; i < 6; i++) {
        struct outcome o = explain_well(same[i][0]);
        cr_expect(strncmp(o.out, same[i][1], strlen(same[i][1])) == 0, "%s: %s", same[i][0], o.out);
    }
    expect_text(program_run("explain saturated_rows --block 2").err,
                "not an option of saturated-rows");
    expect_text(program_run("explain 11").err, "there is no topic \"11\"");
}

/* ---- operations ---- */

CPU_TEST(explain, every_operation_has_its_documentation)
{
    for (int i = 0; operation_name(NULL, i); i++)
        cr_expect(operation_comment(operation_name(NULL, i)), "%s", operation_name(NULL, i));
    cr_expect(!operation_comment("tensor_zeros") && !operation_comment("soft") &&
              !operation_comment(""));
    char *text = text_of("residual_layer_norm");
    expect_text(text,
                "A residual connection and its layer norm in one pass: *sum = x + dropout(branch,");
    expect_text(text,
                "\n    sb_tensor *gain, sb_tensor *bias, double epsilon, sb_tensor **sum);\n");
    expect_text(text, "Checked now: backward against central differences in float64, within 1e-6,");
    expect_text(text_of("split"), "bool sb_split(sb_tensor *x, int axis, int n");
}

CPU_TEST(explain, topics_that_are_operations_add_their_documentation_on_request)
{
    static const char *const names[] = {"softmax", "attention", "layer_norm"};
    for (int i = 0; i < 3; i++) {
        char arguments[64], declaration[64];
        snprintf(declaration, sizeof declaration, "sb_tensor *sb_%s(", names[i]);
        cr_expect(strstr(explain_well(names[i]).out, declaration) == NULL, "%s", names[i]);
        snprintf(arguments, sizeof arguments, "%s --reference", names[i]);
        expect_text(explain_well(arguments).out, declaration);
        snprintf(arguments, sizeof arguments, "%s --code", names[i]);
        expect_text(explain_well(arguments).out, "KERNELS(");
    }
}

/* ---- measured values ---- */

/* What the pages compute by their formulas equals what the library computed. */
CPU_TEST(explain, the_formulas_of_attention_and_layer_norm_give_the_gradients_of_the_library)
{
    json_t *json = json_of("attention --json");
    static const struct {
        const char *column;
        size_t key;
    } keys[] = {{"dk_1 cat", 1}, {"dk_1 sat", 2}, {"dk_1 mat", 5}};
    for (int i = 0; i < 3; i++) {
        const double right = number_at(json, "sat", keys[i].key, "dk_1");
        expect_near(number_at(json, "mistakes", 0, keys[i].column), right, 1e-9, keys[i].column);
        for (size_t wrong = 1; wrong < 5; wrong++)
            cr_expect(i > 0 || wrong == 3 ||
                      fabs(number_at(json, "mistakes", wrong, keys[i].column) - right) > 0.01);
    }
    json = json_of("layer_norm --json");
    static const char *const columns[] = {"dx_0", "dx_1", "dx_2", "dx_3"};
    for (size_t i = 0; i < 4; i++) {
        const double dx = number_at(json, "backward", i, "/ s: dx");
        expect_near(number_at(json, "mistakes", 0, columns[i]), dx, 1e-9, columns[i]);
        expect_near(number_at(json, "backward", i, "difference"), dx, 1e-9, columns[i]);
    }
    for (size_t k = 0; k < 4; k++) {
        cr_expect((number_at(json, "mistakes", k, "sum") == 0) == (k % 2 == 0));
        cr_expect((number_at(json, "mistakes", k, "sum of dx h") == 0) == (k < 2));
    }
}

static void expect_textbook(json_t *json)
{
    static const double plain[] = {0.0889, 0.6572, 0.0120, 0.2418};
    static const double scaled[] = {0.2467, 0.2695, 0.2259, 0.2579};
    static const char *const columns[] = {"a_0", "a_1", "a_2", "a_3"};
    for (int i = 0; i < 4; i++) {
        expect_near(number_at(json, "four scores", 0, columns[i]), plain[i], 1e-4, columns[i]);
        expect_near(number_at(json, "four scores", 1, columns[i]), scaled[i], 1e-4, columns[i]);
    }
    expect_near(number_at(json, "four scores", 0, "||J||"), 0.387, 1e-3, "||J||");
    expect_near(number_at(json, "four scores", 1, "||J||"), 0.433, 1e-3, "||J|| over sqrt 512");
}

/* Rows are d = 16, 64, 256, 1024; for each, scores are divided by 1, sqrt d and d. */
CPU_TEST(explain, the_textbook_example_is_hardly_saturated_but_raw_rows_are_saturated)
{
    static const double saturated[] = {6, 29, 57, 77};
    json_t *json = json_of("scaling --json");
    expect_textbook(json);
    for (size_t i = 0; i < 4; i++) {
        size_t raw = 3 * i, scaled = raw + 1;
        double d = number_at(json, "widths", raw, "d");
        cr_expect(d == pow(4, (double)i + 2));
        expect_near(number_at(json, "widths", raw, "sat. %"), saturated[i], 3, "saturated rows");
        expect_near(number_at(json, "widths", scaled, "sat. %"), 0, 0, "saturated rows, scaled");
        expect_near(number_at(json, "widths", raw, "variance") / d, 1, 0.1, "variance over d");
        expect_near(number_at(json, "widths", scaled, "|dz/dq|^2"), 1, 0.05, "|dz/dq|^2");
        cr_expect(number_at(json, "widths", raw, "|dq|") >
                      2 * number_at(json, "widths", scaled, "|dq|"),
                  "the mean gradient of q is larger without a division");
    }
}

CPU_TEST(explain, the_error_of_a_difference_is_least_at_a_medium_step)
{
    json_t *json = json_of("gradcheck --json");
    double error[7], exact[7];
    for (size_t i = 0; i < 7; i++) {
        error[i] = number_at(json, "steps", i, "float32");
        exact[i] = number_at(json, "steps", i, "float64");
    }
    cr_expect(error[1] < error[0] && error[1] < error[5], "h = 1e-2 is not the best in float32");
    cr_expect(error[6] > 0.01 && error[1] < 1e-4, "%g and %g", error[6], error[1]);
    cr_expect(exact[4] < 1e-9 && exact[4] < exact[1] && exact[4] < exact[6]);
    cr_expect_str_eq(json_string_value(cell_at(json, "checks", 0, "sb_gradcheck")), "passes");
    for (size_t i = 1; i < 4; i++)
        cr_expect_str_eq(json_string_value(cell_at(json, "checks", i, "sb_gradcheck")), "fails");
}

CPU_TEST(explain, the_jacobian_follows_the_formula)
{
    static const double s[] = {2, 1, 0.1, -1};
    struct row row = row_of(4, s);
    double a[EXPLAIN_NUMBERS], J[EXPLAIN_NUMBERS][EXPLAIN_NUMBERS];
    row.temperature = 2;
    row.kept[3] = false;
    cr_assert(row_forward(&row, a) && row_jacobian(&row, J));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            expect_near(J[i][j], a[i] * ((i == j) - a[j]) / 2, 1e-15, "J");
    cr_expect(a[3] == 0);
}

CPU_TEST(explain, a_wrong_gradient_is_measured_with_three_seeds_and_standard_errors)
{
    struct outcome o = explain_well("wrong-gradient --steps 2 --seed 5");
    expect_text(o.out, "same 3 seeds");
    expect_text(o.out, "from 5 on");
    expect_text(o.out, "at 100  error  at end  its error  right %  error %");
}

CPU_TEST(explain, a_wrong_gradient_gives_a_higher_loss_than_the_right_one)
{
    too_slow(SANITIZED, "it trains whole models, whose operations have tests of their own");
    struct reverse_result r[WRONGS] = {{0}};
    for (enum wrong w = 0; w < WRONGS; w++)
        if (test_long() || w <= WRONG_DIAGONAL)
            MUST(reverse_train(wrong_gradients[w], test_long() ? 3 : 1, test_long() ? 800 : 200,
                               &r[w]));
    cr_expect(r[WRONG_NONE].first == r[WRONG_DIAGONAL].first, "the first losses differ");
    cr_expect(r[WRONG_NONE].early < 0.5 * r[WRONG_DIAGONAL].early, "%g and %g", r[WRONG_NONE].early,
              r[WRONG_DIAGONAL].early);
    if (!test_long())
        return;
    cr_expect(r[WRONG_NONE].accuracy > 0.97 && r[WRONG_CENTRED].accuracy > 0.97);
    cr_expect(r[WRONG_DIAGONAL].accuracy < 0.2, "it learns");
    expect_near(r[WRONG_ZERO].last, 1.8, 0.3, "with q and k frozen");
}

/* The caption of `scaling`: |dq| of raw scores grows from d = 16 to 64, and then stays the same. */
CPU_TEST(explain, what_scaling_says_is_within_its_errors)
{
    struct width_measured narrow = {0}, wide = {0}, widest = {0};
    MUST(width_measure(16, 1, &narrow) && width_measure(64, 1, &wide) &&
         width_measure(1024, 1, &widest));
    const double first = hypot(narrow.gradient_error, wide.gradient_error);
    const double then = hypot(wide.gradient_error, widest.gradient_error);
    cr_expect(narrow.gradient_error > 0 && wide.gradient - narrow.gradient > 2 * first,
              "%g +- %g, then %g +- %g", narrow.gradient, narrow.gradient_error, wide.gradient,
              wide.gradient_error);
    cr_expect(fabs(widest.gradient - wide.gradient) < 2 * then, "%g, then %g", wide.gradient,
              widest.gradient);
}

CPU_TEST(explain, each_statement_has_its_verdict)
{
    static const struct {
        const char *part;
        const char *verdict, *measured;
    } expected[] = {
        {"(.018, .731", "false", "(0.0889, 0.6572, 0.0120, 0.2418)"},
        {"over sqrt 512", "false", "(0.2467, 0.2695, 0.2259, 0.2579)"},
        {"saturation", "false",
         "only from 0.387 to 0.433. With respect to the raw scores, the division "
         "even makes it 20 times"},
        {"vanish", "depends", "0.32 +- 0.00 scaled"},
        {"entropy", "depends", "Equal scores: 0."},
        {"(1 - M)(-inf)", "false", "2 become NaN"},
        {"-1e9", "depends", "every weight is 0.25"},
        {"nan_to_num", "depends", "0 NaN are left of it, where sb_masked_softmax shows 4"},
        {"variance by H", "false", "variance 0.0626 +- 0.0007"},
        {"additive", "depends", "0 without a bias"},
        {"permutation", "depends", "change the output by 0. Permuted"},
        {"approximates", "depends", "96 keys give sin x up to 0.00"},
        {"cosine", "false", "weight is 0.451"},
        {"cache", "depends", "67 % of the multiply-adds of one attention layer"},
        {"flash", "depends", "8 times n d"},
        {"chunks", "depends", "take 1.0 times the memory while recording"},
    };
    const size_t all = sizeof expected / sizeof expected[0];
    json_t *json = json_of("claims --json"), *part, *row;
    size_t p, r, n = 0;
    json_array_foreach(json_object_get(json, "parts"), p, part)
    {
        json_array_foreach(json_object_get(json_object_get(part, "table"), "rows"), r, row)
        {
            cr_assert(n < all, "there are more than %zu statements", all);
            const char *says = json_string_value(json_array_get(row, 1));
            expect_text(says, expected[n].part);
            cr_expect_str_eq(json_string_value(json_array_get(row, 0)), expected[n].verdict, "%s",
                             says);
            expect_text(json_string_value(json_array_get(row, 2)), expected[n].measured);
            n++;
        }
    }
    cr_expect(n == all, "there are %zu statements", n);
}

/* softback explain attention, tape and hessian, of a stored model. */

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
    json_t *page = json_from(o.out), *rows = rows_of(page), *row;
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
    run_well("train --task copy --width 16 --heads 2 --steps 20 --score cosine "
             "--encoder-layers 1 --decoder-layers 1 --out n");
    struct outcome o = program_run("explain attention --model n --input '3 1 4'");
    cr_expect(strstr(o.out, "equals the model's own forward pass within 1e-6"), "%s", o.out);
}

CPU_TEST(explain_model, a_row_and_the_tape_of_any_kind_of_model_are_shown)
{
    static const char *const kinds[] = {
        "language_model --task dates --decoder-layers 2 --context 16",
        "classifier --task pattern --encoder-layers 2"};
    for (int i = 0; i < 2; i++) {
        run_well("train --model %s --width 16 --heads 2 --steps 4 --batch-pairs 8 "
                 "--out n%d",
                 kinds[i], i);
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
    json_t *page = json_from(o.out), *rows = rows_of(page), *last = last_row_of(page);
    cr_assert(json_array_size(rows) == 6 && last);
    const double exact = cell(json_array_get(rows, 0), 2);
    const double difference = cell(json_array_get(rows, 3), 2); /* h = 0.001 */
    cr_expect(fabs(exact) > 1e-3 && fabs(exact - difference) < 1e-4 * fmax(1, fabs(exact)),
              "%.10g, %.10g", exact, difference);
    const double eigenvalue = cell(last, 1), residual = cell(last, 2);
    cr_expect(cell(last, 0) > 1 && residual <= 1e-3 * fabs(eigenvalue), "%g, %g", cell(last, 0),
              residual);
    cr_expect(fabs(eigenvalue) * (1 + 1e-3) >= fabs(exact), "Rayleigh: %g, %g", eigenvalue, exact);
}
