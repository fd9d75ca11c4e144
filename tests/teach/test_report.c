/* softback report, and train --report: one page of HTML, or one of its figures; and the figure of
   softback explain softmax. */
#include "models/model_twin.h"
#include "teach/report/report.h"
#include "tests/support/program.h"
#include <stdio.h>
#include <sys/stat.h>

#define TRAIN_OPTIONS                                                                              \
    "train --width 16 --heads 2 --encoder-layers 1 --decoder-layers 1 --steps 40 "                 \
    "--evaluate-every 10 --evaluate-pairs 8 --threads 1 "
#define TRAIN TRAIN_OPTIONS "--task copy --min-length 3 --max-length 5 --out m "

/* Elements are closed in the reverse order of opening. */
static void expect_nested(const char *page)
{
    char open[32][16];
    int depth = 0;
    for (const char *at = page; (at = strchr(at, '<')); at++) {
        char name[16] = "";
        const bool closes = at[1] == '/';
        const char *end = strchr(at, '>');
        cr_assert(end, "<%.20s has no end", at + 1);
        sscanf(at + 1 + closes, "%15[a-z0-9]", name);
        if (!strcmp(name, "script") && !closes) /* a script has no elements */
            end = at = strstr(at, "</script>");
        if (at[1] == '!' || end[-1] == '/' || strstr(" meta br input script ", name))
            continue;
        if (!closes) {
            cr_assert(depth < 32, "too deep at %.40s", at);
            strcpy(open[depth++], name);
            continue;
        }
        cr_assert(depth > 0 && strcmp(open[depth - 1], name) == 0, "</%s> closes <%s>", name,
                  depth > 0 ? open[depth - 1] : "");
        depth--;
    }
    cr_expect(depth == 0, "<%s> is not closed", depth > 0 ? open[depth - 1] : "");
}

/* The text of a page, whose elements nest. */
static char *read_page(const char *file)
{
    char *page = program_read(file, NULL);
    cr_assert(page, "there is no %s", file);
    expect_nested(page);
    return page;
}

/* A page that needs no other file has all of these parts. */
static void expect_parts(const char *file, const char *const parts[])
{
    char *page = read_page(file);
    for (int i = 0; parts[i]; i++)
        cr_expect(strstr(page, parts[i]), "%s: there is no %s", file, parts[i]);
    cr_expect(!strstr(page, " src=") && !strstr(page, "href=") && !strstr(page, "url("));
    cr_expect(!strstr(page, "nan") && !strstr(page, "inf\""), "a number is not finite");
}
#define EXPECT_PARTS(file, ...) expect_parts(file, (const char *const[]){__VA_ARGS__, NULL})

/* Parts of pictures, and the names of curves, have a class. */
static int pictures_of(const char *page)
{
    return count_of(page, "<svg") - count_of(page, "<svg class=");
}

CPU_TEST(report, training_writes_a_page_that_needs_no_other_file)
{
    struct outcome o = run_well(TRAIN "--report page.html");
    cr_expect(strstr(o.out, "report     page.html\n"), "%s", o.out);
    size_t size = 0;
    char *page = program_read("page.html", &size);
    cr_assert(page && size == strlen(page) && size < 1 << 20);
    expect_nested(page);
    EXPECT_PARTS(
        "page.html", SIGNATURE_PAGE "<html lang=\"en\">", "<title>m: copy, 40 steps</title>",
        "<h1>m: copy, 40 steps</h1>", "<h2>Loss</h2>", "guessing", "<p class=\"verdict\">",
        "<section class=\"part\" data-name=\"Details\"",
        "softback train --model seq2seq --task copy", "hash of the data",
        "<td style=\"--a:", "Next: ", "<h2>Held-out texts that are exactly right</h2>",
        "<h2>Learning rate</h2>", "<h2>Alignment</h2>", "<figcaption>layer 1, head 2</figcaption>",
        "<h2>Gradients, by part of the model</h2>",
        "<h2>How large the elements of gradients are</h2>",
        "<h2>The elements of gradients, by part of the model</h2>", "<h2>Saturated rows</h2>",
        ">cross, layer 1, head 2</th>", "training took, with its evaluations</th>",
        "<h2>The gradient check</h2>", "<h2>The tape</h2>");
    cr_expect(!strstr(page, "\npath{") && !strstr(page, "}path{") && !strstr(page, "\nrect{"),
              "the style of one figure applies to others");
    cr_expect(pictures_of(page) == count_of(page, "role=\"img\"") &&
                  count_of(page, "role=\"img\"><title>") +
                          count_of(page, "role=\"img\">\n<title>") ==
                      pictures_of(page),
              "a picture has no title");
    cr_expect(count_of(page, "</figcaption>\n<table>") == 3 * 2 &&
                  count_of(page, "<figure class=\"shades\" tabindex=\"0\"") == 3 * 2,
              "an attention map has no table");
    cr_expect(count_of(page, "<summary>The numbers") == 4 + 1 + 1);
    cr_expect(count_of(page, "<summary>More: where each head looks</summary>") == 3 &&
              count_of(page, "evenness</th>") == 3);
    const char *details = strstr(page, "<h2>Details</h2>");
    cr_expect(strstr(details, ">width</th><td>16</td>") && !strstr(details, ">rotary-base</th>") &&
                  !strstr(details, "<td>0</td>") && !strstr(details, ">key-heads</th>") &&
                  !strstr(details, "--key-heads"),
              "settings that are not the defaults, and no others");
    cr_expect(count_of(page, "<div class=\"shades strip\"") == 5 + 2);
    cr_expect(count_of(page, "<summary>Each parameter</summary>") == 2 &&
              count_of(page, ">biases of keys</th>") == 2);
}

CPU_TEST(report, numbers_are_those_that_a_reader_writes)
{
    struct html html = {0};
    html_say(&html, "<p class=\"a 1000\">%d %d %.0e %.1e %.2e %.0e %g %.0e &#8226; x%d %s</p>\n",
             999, 1234567, 1e-2, 1.5e-5, 0.0123, 2.0, -0.5, 1e-12, 1234, "a - b --c-1");
    char *page = KEPT(html_end(&html));
    cr_expect_str_eq(page, "<p class=\"a 1000\">999 1,234,567 0.01 1.5·10⁻⁵ 0.0123 2 −0.5 10⁻¹² "
                           "&#8226; x1234 a − b --c-1</p>\n</body>\n</html>\n");
}

static char *parts_of(const sb_parameters *set, bool logarithmic, double values[])
{
    struct html html = {0};
    struct run_diagnosis diagnosis = {.step = 10, .of = {[RUN_GRADIENTS] = values}};
    const struct run_log run = {.diagnoses = 1, .diagnosis = &diagnosis};
    strip_add(&html, &(struct strip){.title = "",
                                     .text = "",
                                     .of = RUN_GRADIENTS,
                                     .run = &run,
                                     .weights = set,
                                     .logarithmic = logarithmic});
    return html_end(&html);
}

/* Norms 3 and 4 make 5; of 3 elements all and of 1 none are 0.75 of 4. */
TEST(report, a_row_of_a_part_has_all_of_its_parameters)
{
    const sb_initial zeros = {SB_INITIAL_CONSTANT, 0};
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_parameters_add(set, "a.query.weight", SB_SHAPE(3), zeros);
    sb_parameters_add(set, "a.query.bias", SB_SHAPE(1), zeros);
    sb_parameters_add(set, "b.norm.weight", SB_SHAPE(1), zeros);
    char *norms = KEPT(parts_of(set, true, (double[]){3, 4, 0})),
         *shares = KEPT(parts_of(set, false, (double[]){1, 0, 0.25}));
    cr_expect(strstr(norms, ">queries</th><td style=\"--a:1.00\">5</td>") &&
                  strstr(norms, "a.query.bias</th><td style=\"--a:1.00\">4</td>") &&
                  !strstr(norms, ">keys</th>"),
              "%s", norms);
    cr_expect(strstr(shares, ">queries</th><td style=\"--a:1.00\">0.75</td>") &&
                  strstr(shares, ">norms</th><td style=\"--a:0.33\">0.25</td>"),
              "%s", shares);
}

/* Gradients of parameters and saturated rows come from a tape in bf16. */
CPU_TEST(report, a_held_out_text_that_is_too_long_is_not_drawn)
{
    enum { SYMBOLS = 70 };
    char held[4 * SYMBOLS + 8] = "";
    run_well(TRAIN);
    for (int i = 0; i < SYMBOLS; i++)
        strcat(held, i > 0 ? " 3" : "3");
    strcat(held, "\t3\n");
    program_write("held.tsv", held, strlen(held));
    run_well("report m --data held.tsv --out page.html");
    char *page = read_page("page.html");
    cr_expect(strstr(page, "<p>Not drawn: the text has 70 symbols and its output "));
    cr_expect(strstr(page, "<h2>The gradient check</h2>"));
}

CPU_TEST(report, training_in_bf16_writes_a_page)
{
    run_well(TRAIN "--precision bf16 --report page.html");
    char *page = program_read("page.html", NULL);
    cr_expect(page && strstr(page, "<h2>Saturated rows</h2>") &&
              strstr(page, " elements agree, 0 differ."));
}

/* The whole numbers of an attribute. */
static int weights_of(const char *attribute, int most, int weights[])
{
    int n = 0;
    for (char *end; n < most && *attribute != '"'; attribute = end)
        weights[n++] = (int)strtol(attribute, &end, 10);
    return n;
}

CPU_TEST(report, its_slider_stays_hidden_until_a_script_runs)
{
    run_well(TRAIN);
    run_well("report m --input '3 1 4' --target '1 2' --out page.html");
    char *page = read_page("page.html");
    char *part = strstr(page, "<section id=\"steps\" hidden>");
    cr_assert(part && count_of(page, "<script>") == 3 && strstr(part, "box.hidden = false;"));
    cr_expect(strstr(part, "<label for=\"step\">Step</label>\n<input type=\"range\" id=\"step\" "
                           "min=\"1\" max=\"3\" value=\"1\">"));
    cr_expect(strstr(part, "<span>1</span><span>2</span><span>&#60;end&#62;</span></p>"));
    const char *row = part;
    for (int h = 0; h < 2; h++) {
        int weights[3 * 3 + 1];
        cr_assert((row = strstr(row, "<tr data-weights=\"")) != NULL);
        row += strlen("<tr data-weights=\"");
        cr_assert(weights_of(row, 3 * 3 + 1, weights) == 3 * 3);
        for (int i = 0; i < 3; i++)
            cr_expect(abs(weights[3 * i] + weights[3 * i + 1] + weights[3 * i + 2] - 100) <= 1);
        char cells[200] = "<th scope=\"row\">2</th>"; /* also in the head's map */
        for (int j = 3, empty = 0; j < 6; j++) {
            char *end = cells + strlen(cells);
            empty += weights[j] == 0;
            if (empty > 0 && (weights[j] > 0 || j == 5))
                end += sprintf(end, "<td colspan=\"%d\"></td>", empty);
            empty = weights[j] > 0 ? 0 : empty;
            if (weights[j] > 0)
                sprintf(end, "<td style=\"--a:%.2f\">%d</td>", weights[j] / 100.0, weights[j]);
        }
        cr_expect(strstr(page, cells), "there is no %s", cells);
    }
    cr_expect(!strstr(row, "<tr data-weights"));
}

/* The last line of the log, as in the table of the curve. */
CPU_TEST(report, its_numbers_are_those_of_the_log)
{
    run_well(TRAIN "--log m.log");
    run_well("report m --input 314 --log m.log --out page.html");
    char *page = program_read("page.html", NULL), *log = program_read("m.log", NULL);
    cr_assert(page && log);
    char row[96] = "";
    int rows = 0, evaluations = 0;
    double step = 0, loss = 0, held_out = 0;
    for (const char *line = log; (line = strstr(line, "{\"step\":")); line++) {
        if (sscanf(line, "{\"step\":%lf,\"loss\":%lf,", &step, &loss) == 2)
            rows++;
        if (sscanf(line, "{\"step\":%lf,\"held_out_loss\":%lf,", &step, &held_out) != 2)
            continue;
        snprintf(row, sizeof row, "<tr><td>%.4g</td><td>%.4g</td><td>%.4g</td></tr>", step, loss,
                 held_out);
        cr_expect(strstr(page, row), "there is no %s", row);
        evaluations++;
    }
    cr_expect(rows == 4 && evaluations == 4, "%d rows, %d evaluations", rows, evaluations);
}

/* The verdict on a gradient that is right in float64 and its difference, if the largest is 4. */
static enum check_word word_of(double backward, double difference, double largest_here)
{
    return check_word(&(struct checked){backward, difference, difference, largest_here, 4});
}

CPU_TEST(report, its_check_distinguishes_mistakes_from_rounding)
{
    cr_expect(word_of(2, 2.0001, 2) == CHECK_AGREES && word_of(2, 1, 2) == CHECK_DIFFERS);
    cr_expect(word_of(2, -2, 2) == CHECK_DIFFERS && word_of(2, NAN, 2) == CHECK_DIFFERS);
    cr_expect(word_of(0, 1, 2) == CHECK_DIFFERS && word_of(0, 1, 0) == CHECK_DIFFERS);
    cr_expect(word_of(1e-9, 0, 2e-9) == CHECK_ROUNDING && word_of(0, 0, 2e-9) == CHECK_ROUNDING);
    cr_expect(word_of(1.9, 2, 2) == CHECK_COARSE && word_of(1e-9, 1, 2e-9) == CHECK_DIFFERS &&
              check_word(&(struct checked){1.9, 1.9, 2, 2, 4}) == CHECK_DIFFERS);
    cr_expect(word_of(0, 0, 2) == CHECK_ZERO && word_of(0, 0, 0) == CHECK_ZERO);
}

/* The gradients of three key biases, of two heads and 16 numbers, are rounding errors: three
   elements each, or two if the largest is checked anyway. */
CPU_TEST(report, backward_agrees_with_differences_in_each_parameter)
{
    run_well(TRAIN "--report page.html");
    char *page = read_page("page.html");
    char *part = strstr(page, "<h2>The gradient check</h2>"), *end = strstr(part, "<h2>The tape");
    *end = 0;
    const char *elements = strstr(part, "<summary>The elements");
    cr_assert(elements);
    const int agree = count_of(elements, "<td>agrees</td>"),
              zero = count_of(part, "<td>both 0</td>"),
              rounding = count_of(part, "<td>rounding</td>");
    cr_expect(agree > 100 && zero < 12 && rounding >= 6 && rounding <= 9, "%d, %d, %d", agree, zero,
              rounding);
    cr_expect(count_of(part, "key.bias</th>") == rounding && !strstr(part, "DIFFERS"), "%s", part);
    cr_expect(count_of(part, "output.bias</th>") > 0 &&
              count_of(part, "encoder.embedding.weight</th>") == 3);
    char sentence[80];
    snprintf(sentence, sizeof sentence, "<strong>%d elements agree, 0 differ.</strong> For %d more",
             agree, zero);
    cr_expect(strstr(part, sentence), "%s", part);
}

CPU_TEST(report, products_with_the_hessian_are_checked)
{
    run_well(TRAIN "--activation gelu --report page.html");
    char *page = read_page("page.html");
    char *part = strstr(page, "<caption>Exact derivatives"),
         *end = part ? strstr(part, "</table>") : NULL;
    cr_assert(end);
    *end = 0;
    cr_expect(count_of(part, "<td>agrees</td>") == 3, "%s", part);
    cr_expect(strstr(part, "g'v = J v") && strstr(part, "u'H v = v'H u"), "%s", part);
}

/* A model of TRAIN, and a text that goes through it. */
struct reported {
    struct checkpoint *checkpoint;
    struct subject subject;
};

static bool reported_open(struct reported *s)
{
    *s = (struct reported){.checkpoint = checkpoint_open(test_temporary("m"), NULL)};
    return s->checkpoint && subject_begin(&s->subject, &s->checkpoint->subject, "3 1 4", "1 2");
}

static void reported_close(struct reported *s)
{
    subject_end(&s->subject);
    checkpoint_free(s->checkpoint);
}

TEST(report, checking_a_copy_of_the_model_restores_its_weights, KNOWN_KERNELS)
{
    run_well(TRAIN);
    struct reported s;
    struct model_twin twin;
    MUST(reported_open(&s));
    MUST(model_twin_open(&twin, &s.subject.model, s.subject.example.batch, SB_F64) &&
         model_twin_backward(&twin));
    cr_expect(sb_parameters_count(twin.weights) == sb_parameters_count(s.checkpoint->weights));
    sb_tensor *w = sb_parameters_find(twin.weights, "output.bias");
    const double before = sb_tensor_get(w, 5);
    double difference = 0;
    cr_assert(model_twin_difference(&twin, w, 5, 1e-5, &difference));
    cr_expect(fabs(difference - sb_tensor_get(sb_tensor_grad(w), 5)) < 1e-8 &&
                  fabs(difference) > 1e-4,
              "%g, %g", difference, sb_tensor_get(sb_tensor_grad(w), 5));
    cr_expect(sb_tensor_get(w, 5) == before);
    model_twin_close(&twin);
    reported_close(&s);
}

/* A resumed run also continues the diagnoses. */
CPU_TEST(report, each_evaluation_is_a_column)
{
    run_well(TRAIN "--report page.html");
    run_well(TRAIN "--report page.html --steps 60 --resume");
    char *page = program_read("page.html", NULL), *log = program_read("m.jsonl", NULL);
    cr_assert(page && log);
    cr_expect(count_of(log, "\"gradients\":[") == 6, "%d", count_of(log, "\"gradients\":["));
    const char *head = strstr(page, "<h2>Saturated rows</h2>");
    cr_assert(head && (head = strstr(head, "<th scope=\"col\">step</th>")));
    static const char columns[] = "<th scope=\"col\">step</th><th scope=\"col\">10</th>"
                                  "<th scope=\"col\">20</th><th scope=\"col\">30</th>";
    cr_expect(strncmp(head, columns, strlen(columns)) == 0, "%.200s", head);
}

static const char *figure_of(const char *arguments)
{
    struct outcome o =
        program_run("report m --input '3 1 4' --target '1 2' --figure %s", arguments);
    cr_assert(o.code == 0, "%s: %s", arguments, o.err);
    return o.out;
}

static void expect_picture(const char *svg)
{
    if (strncmp(svg, SIGNATURE_FIGURE, strlen(SIGNATURE_FIGURE)) == 0)
        svg += strlen(SIGNATURE_FIGURE);
    static const char begins[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=",
                      ends[] = "</svg>\n";
    cr_expect(strncmp(svg, begins, strlen(begins)) == 0, "%.80s", svg);
    cr_expect(strcmp(svg + strlen(svg) - strlen(ends), ends) == 0 && pictures_of(svg) == 1);
    cr_expect(strstr(svg, "@media(prefers-color-scheme:dark)") && strstr(svg, "class=\"ground\""));
    cr_expect(strstr(svg, "role=\"img\"><title>") && !strstr(svg, "nan"));
    expect_nested(svg);
}

CPU_TEST(report, a_figure_is_a_separate_file)
{
    run_well(TRAIN);
    const char *svg = figure_of("attention");
    expect_picture(svg);
    cr_expect(strncmp(svg, SIGNATURE_FIGURE, strlen(SIGNATURE_FIGURE)) == 0, "%.40s", svg);
    int sum = 0;
    for (const char *at = svg; (at = strstr(at, "text-anchor=\"middle\">")); at++)
        sum += atoi(at + strlen("text-anchor=\"middle\">"));
    sum -= 3 + 1 + 4; /* the symbols */
    cr_expect(sum > 3 * 85 && sum < 3 * 102, "three rows of per cents sum to %d", sum);
    svg = figure_of("alignment");
    expect_picture(svg);
    cr_expect(count_of(svg, "<text") == 3 + 3 && count_of(svg, "<path") >= 3, "%s", svg);
    svg = figure_of("loss");
    expect_picture(svg);
    cr_expect(strstr(svg, "<title>Loss over 40 steps, in nats</title>") &&
                  strstr(svg, ">guessing by frequency</text>") && count_of(svg, "h0") == 4,
              "%s", svg);
    char *kept = strdup(svg);
    svg = figure_of("loss --out loss.svg");
    char *file = program_read("loss.svg", NULL);
    cr_expect(file && strcmp(file, kept) == 0 && strcmp(svg, "figure     loss.svg\n") == 0);
    free(kept);
}

/* Scores 0, 0 and ln 3 have the weights 0.2, 0.2 and 0.6. */
CPU_TEST(report, the_jacobian_of_a_row_can_be_drawn)
{
    struct outcome o = run_well("explain softmax --svg --scores 0,0,1.09861228867");
    expect_picture(o.out);
    cr_expect(count_of(o.out, ">+0.160<") == 2 && count_of(o.out, ">-0.040<") == 2 &&
                  count_of(o.out, ">-0.120<") == 4 && count_of(o.out, ">+0.240<") == 1,
              "%s", o.out);
    cr_expect(count_of(o.out, "var(--blue)") == 3 && count_of(o.out, "var(--orange)") == 6);
    o = program_run("explain softmax --svg --scores 0,0,0 --mask 0,0,0");
    expect_picture(o.out);
    cr_expect(count_of(o.out, ">0</text>") == 9, "%s", o.out);
    o = program_run("explain softmax --svg --scores 1,2,3,4,5,6,7,8,9");
    expect_picture(o.out);
    cr_expect(count_of(o.out, ">+</text>") > 0 && count_of(o.out, ">-</text>") > 0);
}

/* The inputs of a report: a model and its log. */
struct drawn {
    struct reported stored;
    struct run_log log;
};

static bool draw_each(void *context)
{
    const struct drawn *d = context;
    const struct row row = row_of(3, (const double[]){1, 2, 3});
    struct model_twin twin;
    bool ok = true;
    for (enum figure f = FIGURE_ATTENTION; ok && f <= FIGURE_LOSS; f++) {
        char *svg = figure_svg(f, &d->stored.subject, &d->log);
        ok = svg != NULL;
        memory_free(svg);
    }
    char *svg = ok ? jacobian_svg(&row) : NULL;
    memory_free(svg);
    ok = svg &&
         model_twin_open(&twin, &d->stored.subject.model, d->stored.subject.example.batch, SB_F64);
    if (svg)
        model_twin_close(&twin);
    return ok;
}

CPU_TEST(report, each_failing_allocation_of_a_figure_is_reported)
{
    run_well(TRAIN);
    struct drawn d;
    MUST(reported_open(&d.stored) && run_log_read(&d.log, test_temporary("m.jsonl")));
    cr_expect(test_each_allocation_fails(draw_each, &d) > 50);
    run_log_free(&d.log);
    reported_close(&d.stored);
}

/* The text of a report is not read as HTML. */
CPU_TEST(report, texts_are_escaped_in_html)
{
    run_well(TRAIN);
    run_well("report m --input '<b>&1\"' --out page.html");
    char *page = read_page("page.html");
    cr_expect(strstr(page, "&#60;b&#62;&#38;1&#34;") && !strstr(page, "<b>"));
}

/* ---- Errors, and two runs ---- */

CPU_TEST(report, its_errors_are_the_worst_of_held_out_pairs)
{
    run_well(TRAIN);
    const char held[] = "3 1 4\t3 1 4\n5 9\t2 2 2 2 2 2\n";
    program_write("held.tsv", held, strlen(held));
    run_well("report m --input '3 1 4' --data held.tsv --out page.html");
    char *page = read_page("page.html");
    const char *errors = strstr(page, "<h2>Errors</h2>");
    cr_assert(errors && strstr(page, "Of 2 texts of --data it writes "));
    cr_expect(strstr(errors, "2</mark></code></td>"), "the expected text is not there");
    cr_expect(strstr(errors, "<h2>Attention of the worst</h2>"));
    cr_expect(strstr(page, "</code>; expected <code>") || strstr(page, ", which is right. Of 2"));
    char *text = NULL, *marked = NULL;
    const struct outcome written = run_well("translate m '3 1 4'");
    const int size = (int)strcspn(written.out, "\n");
    cr_assert(size > 2);
    cr_assert(asprintf(&text, "3 1 4\té%s3 1 4\tx%.*sx\n", written.out, size - 2, written.out + 1) >
              0);
    program_write("held.tsv", text, strlen(text));
    free(text);
    run_well("report m --input '3 1 4' --data held.tsv --out page.html");
    page = read_page("page.html");
    cr_assert(strstr(page, "<p>2 of 2, the worst first."));
    cr_assert(asprintf(&marked, "<code><mark>é</mark>%.*s</code></td><td><code>%.*s</code>", size,
                       written.out, size, written.out) > 0);
    cr_expect(strstr(page, marked), "there is no %s", marked);
    free(marked);
    cr_assert(asprintf(&marked, "<code><mark>x</mark>%.*s<mark>x</mark></code>", size - 2,
                       written.out + 1) > 0);
    cr_expect(strstr(page, marked), "there is no %s", marked);
    free(marked);
    cr_assert(asprintf(&text, "3 1 4\t%s", written.out) > 0);
    program_write("held.tsv", text, strlen(text));
    free(text);
    run_well("report m --input '3 1 4' --data held.tsv --out page.html");
    page = read_page("page.html");
    cr_expect(strstr(page, ", which is right. Of 1 texts of --data it writes 0 wrong.") &&
              !strstr(page, "data-name=\"Errors\""));
}

/* What most have in common; all of them are there, those after the first in a fold. */
CPU_TEST(report, the_pattern_of_errors_is_said)
{
    static const struct {
        const char *rest, *says;
    } patterns[] = {
        {" 7 7", "14 of 14 wrong outputs</strong> are right as far as they go, but end "},
        {"", "14 of 14 wrong outputs</strong> differ in one symbol only."}};
    run_well(TRAIN);
    const struct outcome written = run_well("translate m '3 1 4'");
    const int size = (int)strcspn(written.out, "\n");
    cr_assert(size > 0);
    for (int i = 0; i < 2; i++) {
        char held[2000] = "";
        for (int n = 0; n < 14; n++)
            snprintf(held + strlen(held), 100, "3 1 4\t%s%.*s%s\n", i ? "é" : "", size - i,
                     written.out + i, patterns[i].rest);
        program_write("held.tsv", held, strlen(held));
        run_well("report m --input '3 1 4' --data held.tsv --out page.html");
        char *page = read_page("page.html");
        cr_expect(count_of(page, patterns[i].says) == 2 &&
                      strstr(page, "<summary>The other 2</summary>"),
                  "there is no %s", patterns[i].says);
    }
}

/* Norms below a ten-thousandth are a fault, but not those of parts that are frozen. A text too
   long for a table is cut after its first difference. */
CPU_TEST(report, frozen_parts_are_healthy_and_long_texts_are_cut)
{
    run_well(TRAIN);
    run_well(TRAIN "--from m --freeze *embedding* --out n --report page.html");
    char *page = program_read("page.html", NULL), held[300] = "3 1 4\t";
    cr_expect(page && strstr(page, "<strong>Gradients are healthy at the end:"));
    for (int i = 0; i < 100; i++)
        strcat(held, "-");
    program_write("held.tsv", held, strlen(held));
    run_well("report m --input '3 1 4' --data held.tsv --out page.html");
    page = program_read("page.html", NULL);
    cr_expect(page && count_of(page, "-</mark></code> ... (60 more characters)") == 3);
}

CPU_TEST(report, a_page_without_gradients_has_no_tab_for_them)
{
    run_well(TRAIN "--report page.html");
    char *page = program_read("page.html", NULL);
    cr_expect(page && strstr(page, "data-name=\"Gradients\"") &&
              strstr(page, "<p><strong>Gradients are healthy at the end:</strong> no part"));
    run_well(TRAIN "--out n");
    run_well("report n --input '3 1 4' --out page.html");
    page = program_read("page.html", NULL);
    cr_expect(page && !strstr(page, "data-name=\"Gradients\"") &&
              strstr(page, "Gradients: the log holds none."));
}

CPU_TEST(report, two_runs_are_compared)
{
    run_well(TRAIN);
    run_well(TRAIN "--seed 7 --learning-rate 0.002 --out n");
    struct outcome o = run_well("report m n --out both.html");
    cr_expect_str_eq(o.out, "report     both.html\n");
    char *page = read_page("both.html");
    cr_expect(strstr(page, "<p class=\"verdict\"><code>"), "it does not say which is better");
    cr_expect(strstr(page, "<h2>Training loss</h2>") && strstr(page, "<h2>Held-out loss</h2>"));
    const char *differ = strstr(page, "<h2>Settings that differ</h2>");
    cr_assert(differ != NULL);
    cr_expect(strstr(differ, "<th scope=\"row\">seed</th><td>1</td><td>7</td>"), "%s", differ);
    cr_expect(count_of(differ, "<tr><th scope=\"row\">") == 2, "%s", differ);
    cr_expect(!strstr(page, "nan"));
}

/* Those with other held-out texts are not ranked, nor losses of other symbols; more training texts
   do not matter, nor which is named first. */
CPU_TEST(report, runs_are_ranked_where_they_can_be_compared)
{
#define OF_TEXT                                                                                    \
    "train --model language_model --data t.txt --width 16 --heads 2 --steps 20 --context 4 "       \
    "--units "
#define OF_FILES TRAIN_OPTIONS "--valid t.tsv --data "
    static const char *const says[] = {"different held-out data: ", "better than", "better than",
                                       "different symbols: "};
    static const char *const runs[][2] = {
        {TRAIN_OPTIONS "--task copy", TRAIN_OPTIONS "--task sort"},
        {OF_FILES "t.tsv", OF_FILES "u.tsv"},
        {OF_FILES "u.tsv", OF_FILES "t.tsv"},
        {OF_TEXT "characters", OF_TEXT "bytes"}};
    char text[1000];
    memset(text, 'a', sizeof text);
    program_write("t.txt", text, sizeof text);
    program_write("t.tsv", "ab\tba\ncd\tdc\n", 12);
    program_write("u.tsv", "ab\tba\ncd\tdc\nad\tda\n", 18);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++)
            run_well("%s --out m%d%d", runs[i][k], i, k);
        run_well("report m%d0 m%d1 --out both.html", i, i);
        const char *page = read_page("both.html");
        for (int k = 0; k < 4; k++)
            cr_expect(!strstr(page, says[k]) == (strcmp(says[k], says[i]) != 0), "%d %d", i, k);
        cr_expect(i || strstr(page, "held-out data</th><td>task copy</td><td>task sort</td>"));
    }
}

/* The better run comes first. A model without a log, as an average, is none. */
CPU_TEST(report, all_runs_of_a_folder_are_compared)
{
    static const char script[] = "<script>", name[] = "&#60;b&#62; &#38; two";
    cr_assert(mkdir(test_temporary("runs"), 0777) == 0);
    run_well(TRAIN "--out runs/first.safetensors");
    run_well(TRAIN "--steps 10 --out 'runs/<b> & two'");
    run_well("average runs/first.safetensors runs/first.safetensors --out runs/mean");
    struct outcome o = run_well("report runs");
    cr_expect_str_eq(o.out, "report     runs/report.html\n");
    char *page = read_page("runs/report.html");
    cr_expect(strstr(page, "<h1>2 runs in runs</h1>") && !strstr(page, "mean</th>"));
    const char *first = strstr(page, "<th scope=\"row\">first</th>"),
               *second = first ? strstr(first, name) : NULL;
    cr_expect(first && second && !strstr(page, "<b>"));
    cr_expect(strstr(page, "<th scope=\"row\">steps</th><td>40</td><td>10</td>") &&
              strstr(page, "training took</th>") && count_of(page, script) == 1);
}

/* A comparison of a run with itself, and what is inside it. */
static bool compare_each(void *context)
{
    const struct reported *s = context;
    struct compared runs[2] = {{0}};
    struct html html = {0};
    bool ok = true;
    for (int i = 0; ok && i < 2; i++)
        ok = compared_open(&runs[i], "m", test_temporary("m"), test_temporary("m.jsonl"), 0, 0);
    char *page = ok ? compare_page("Two runs", 2, runs) : NULL;
    ok =
        page && inside_add(&html, &runs[0].log, s->checkpoint->weights, &s->subject.example, false);
    char *histograms = html_end(&html);
    ok = ok && histograms &&
         strstr(histograms, "<h2>The elements of gradients, by part of the model</h2>");
    memory_free(histograms);
    memory_free(page);
    for (int i = 0; i < 2; i++)
        compared_close(&runs[i]);
    return ok;
}

CPU_TEST(report, each_failing_allocation_of_a_comparison_is_reported)
{
    struct reported s;
    run_well(TRAIN "--report page.html");
    MUST(reported_open(&s));
    cr_expect(test_each_allocation_fails(compare_each, &s) > 50);
    reported_close(&s);
}

/* softback report, and train --report, of language models and classifiers; and what a report says
   of held-out texts. */

#define TINY                                                                                       \
    "--width 16 --heads 2 --steps 20 --evaluate-every 5 --batch-pairs 8 --batch-symbols 512 "      \
    "--threads 1 --out m "
#define LANGUAGE "train --model language_model --task dates --decoder-layers 2 --context 16 " TINY
#define CLASSIFIER "train --model classifier --task pattern --encoder-layers 2 " TINY

CPU_TEST(text_report, a_language_model_has_a_page_with_its_perplexity_and_attention)
{
    struct outcome o = program_run(LANGUAGE "--report page.html");
    cr_assert(o.code == 0 && strstr(o.out, "report     page.html\n"), "%s", o.err);
    static const char *const parts[] = {SIGNATURE_PAGE "<html lang=\"en\">",
                                        "<p>A language model with ",
                                        " bits a symbol, a perplexity of ",
                                        "<h2>Loss</h2>",
                                        "guessing",
                                        "<h2>Perplexity of the held-out text</h2>",
                                        "<section class=\"part\" data-name=\"Details\"",
                                        "softback train --model language_model --task dates",
                                        "<h2>Attention</h2>",
                                        "<figcaption>layer 2, head 2</figcaption>",
                                        "</figcaption>\n<table>",
                                        "<h2>Gradients, by part of the model</h2>",
                                        ">decoder.embedding.weight</th>",
                                        "<h2>Saturated rows</h2>",
                                        ">layer 2, head 1</th>",
                                        NULL};
    expect_parts("page.html", parts);
    o = program_run("report m --input '1 May 1990 = ' --out other.html");
    cr_expect(o.code == 0 && strstr(o.out, "report     other.html\n"), "%s", o.err);
    expect_parts("other.html", parts);
}

CPU_TEST(text_report, a_classifier_has_a_page_with_its_confusion_table)
{
    run_well(CLASSIFIER "--report page.html");
    EXPECT_PARTS(
        "page.html", "<p>A classifier with ", ". The model classifies it as <code>",
        "<h2>Held-out texts that are exactly right</h2>",
        "<h2>What it confuses</h2>\n<p>Of 100 other texts, drawn for tests, it classifies ",
        "<h2>Attention</h2>", "<h2>Saturated rows</h2>");
    run_well("evaluate m --task pattern --json");
    program_write("some.tsv", "abcd\tyes\ndcba\tno\n", 17);
    run_well("report m --input abcd --data some.tsv --out other.html");
    EXPECT_PARTS("other.html", "<p>Of 2 texts of --data it classifies ");
    run_well("report m --out plain.html");
    EXPECT_PARTS("plain.html", "<p>Of 100 other texts, drawn for tests, it classifies ");
}

/* ---- The verdict, of logs ---- */

#define TINY_COPY "train --task copy --encoder-layers 1 --decoder-layers 1 " TINY
#define TRAINED(step, loss) "{\"step\":" #step ",\"loss\":" #loss "}\n"
#define EVALUATED_AND(step, loss, error, rest)                                                     \
    "{\"step\":" #step ",\"held_out_loss\":" #loss ",\"held_out_error\":" #error rest "}\n"
#define EVALUATED(step, loss, error) EVALUATED_AND(step, loss, error, "")
#define BEST(step, loss, error) EVALUATED_AND(step, loss, error, ",\"best\":true")
#define BEST_OF_200(loss, error)                                                                   \
    EVALUATED_AND(20, loss, error, ",\"held_out_texts\":200,\"best\":true")
#define LOG "{\"softback\":\"log\",\"format\":2}\n"

/* The overview of the page of a model with a log that has these lines after its first, up to its
   numbers, has these parts; not those after a '!'. */
static void expect_verdict(const char *model, const char *lines, const char *const parts[])
{
    char text[1000];
    snprintf(text, sizeof text, LOG "%s", lines);
    program_write("other.log", text, strlen(text));
    run_well("report %s --input 314 --log other.log --out page.html", model);
    char *page = program_read("page.html", NULL);
    char *found = page ? strstr(page, "<section class=\"overview ") : NULL,
         *end = found ? strstr(found, "<details>") : NULL;
    cr_assert(end != NULL);
    *end = 0;
    for (int i = 0; parts[i]; i++) {
        const bool absent = parts[i][0] == '!';
        cr_expect(!strstr(found, parts[i] + absent) == absent, "%s\n%s", parts[i], found);
    }
}
#define EXPECT_VERDICT(model, lines, ...)                                                          \
    expect_verdict(model, lines, (const char *const[]){__VA_ARGS__, NULL})

/* The held-out loss of the last evaluation is the least, or not. The warm-up of the longer run is
   a tenth of it at most. */
CPU_TEST(text_report, a_verdict_says_how_much_longer_to_train)
{
    run_well(TINY_COPY "--schedule constant --warmup 1000 --optimiser adamw --decay-all");
    EXPECT_VERDICT(
        "m", EVALUATED(1000, 1.5, 0.75) BEST(3000, 1, 0.5),
        "<p>The held-out loss fell in the last third of training, too: train longer.</p>",
        "<strong>--steps 9000</strong>", "--warmup 900</strong>", " --decay-all --",
        " --out m-2.safetensors --report m-2.html</code>",
        "<strong>--resume</strong></code>, which continues this run");
    EXPECT_VERDICT("m", BEST(80, 1, 0.5), "<p>80 steps are few: train longer.</p>",
                   "<strong>--steps 2000</strong>", "!--warmup 1000");
    EXPECT_VERDICT("m", EVALUATED(1000, 1, 0.5) BEST(3000, 1, 0.5), "<strong>--width 32</strong>",
                   "!train longer");
}

/* Training became unstable where both losses rose; where only the held-out one did, it overfits:
   more steps would not help, in a short run either. */
CPU_TEST(text_report, losses_that_rise_are_told_apart)
{
#define FALLEN TRAINED(10, 2.8) TRAINED(50, 1.3) BEST(50, 1.25, 1)
    run_well(TINY_COPY "--learning-rate 0.5 --clip 0");
    EXPECT_VERDICT("m", FALLEN TRAINED(400, 1.9) TRAINED(450, 1.9) EVALUATED(450, 1.875, 1),
                   "overview bad",
                   "Training became unstable: the held-out loss rose from 1.25 at step 50 to 1.88 "
                   "at the end, and the training loss rose too. The learning rate 0.5 is too high.",
                   "<strong>--learning-rate 0.006</strong>", "<strong>--clip 1</strong>", "!Or: ");
    EXPECT_VERDICT("m", FALLEN TRAINED(400, 1.3) TRAINED(450, 1.3) EVALUATED(450, 1.25, 1),
                   "!Or: ", "!(null)", "The learning rate 0.5 is too high: the usual one",
                   "<strong>--learning-rate 0.006</strong>");
    run_well(TINY_COPY "--dropout 0 --out n");
    EXPECT_VERDICT("n", FALLEN TRAINED(400, 0.5) TRAINED(450, 0.5) EVALUATED(450, 1.875, 1),
                   "It overfits: at the end the loss is 0.5 on training texts and 1.88 on held-out "
                   "ones, where its least was 1.25 at step 50.",
                   "<strong>--dropout 0.1</strong>", "!unstable");
    EXPECT_VERDICT(
        "n", TRAINED(150, 2.6) TRAINED(300, 1.92) BEST(150, 3.256, 1) EVALUATED(300, 3.406, 1),
        "It overfits: ", "!train longer");
    EXPECT_VERDICT(
        "n", TRAINED(200, 2.3) TRAINED(400, 1.96) BEST(200, 2.607, 1) EVALUATED(400, 2.636, 1),
        "It overfits: ", "early stopping");
    EXPECT_VERDICT("n",
                   TRAINED(150, 1) TRAINED(350, 0.2) EVALUATED(150, 0.8, 0.7) BEST(350, 0.5, 0.57),
                   "train longer", "!overfits");
    EXPECT_VERDICT(
        "n", TRAINED(150, 1) TRAINED(350, 0.2) EVALUATED(150, 0.51, 0.7) BEST(350, 0.5, 0.57),
        "It fits its training texts much better than held-out ones: ", "which help most.",
        "!early stopping");
}

CPU_TEST(text_report, shares_that_are_close_do_not_rank_runs)
{
    static const char m[] = LOG BEST_OF_200(0.2, 0), n[] = LOG BEST_OF_200(0.1, 0.02);
    run_well(TINY_COPY);
    run_well(TINY_COPY "--out n");
    program_write("m.jsonl", m, strlen(m));
    program_write("n.jsonl", n, strlen(n));
    run_well("report m n --out both.html");
    EXPECT_PARTS("both.html", "98&#160;% and 100&#160;% of 200 held-out texts are too close to "
                              "tell apart. By its loss <code>n</code> is better than ");
}

/* A cosine may end flat, and another run is to learn more, not less. */
CPU_TEST(text_report, the_verdict_names_a_learning_rate_that_is_far_off)
{
    run_well(TINY_COPY "--learning-rate 1e-6");
    EXPECT_VERDICT("m", TRAINED(10, 2.5) TRAINED(2000, 2.4) BEST(2000, 2.4, 1),
                   "The learning rate 10⁻⁶ is too low: the training loss only went from 2.5 to "
                   "2.4. The usual one for this width is 0.006.",
                   "<strong>--learning-rate 0.006</strong>");
    EXPECT_VERDICT("m",
                   TRAINED(10, 3.4) TRAINED(2000, 2.5) EVALUATED(1500, 2.6, 1) BEST(2000, 2.6, 1),
                   " is too low: ", "<strong>--learning-rate 0.006</strong>");
    run_well(TINY_COPY "--learning-rate 0.1 --out n");
    EXPECT_VERDICT("n", BEST(300, 1.7, 0.85), "0.1 is too high: ", "!--resume");
}

/* Each with its word and the colour of the style. */
CPU_TEST(text_report, a_verdict_is_as_good_as_its_texts)
{
#define VERDICT(colour, words) colour "\">\n<p class=\"verdict\">" words "&#160;% of held-out "
    run_well(TINY_COPY "--evaluate-pairs 8 --warmup 15");
    EXPECT_VERDICT("m", BEST(20, 0.7, 0.992), VERDICT("bad", "It gets almost no text right. 0.8"));
    EXPECT_VERDICT("m", BEST(20, 0.7, 0.67),
                   VERDICT("open", "It has learnt a part of its task. 33"));
    EXPECT_VERDICT("m", BEST(20, 0.7, 0.1), VERDICT("good", "It has nearly learnt its task. 90"));
    EXPECT_VERDICT("m", BEST(20, 0.7, 0), VERDICT("good", "It has learnt its task. 100"), "!warm",
                   "!softback train");
}

/* Of a classifier's two labels half are right by chance, or as many as have the commonest one. */
CPU_TEST(text_report, all_kinds_of_models_have_a_verdict)
{
    static const char bad[] = "overview bad\">",
                      hardly[] = "It is hardly better than always choosing the commonest label. ";
    run_well(CLASSIFIER);
    EXPECT_VERDICT("m", BEST(20, 0.69, 0.48), bad, hardly, " 52");
    EXPECT_VERDICT(
        "m",
        EVALUATED_AND(20, 0.2, 0.06, ",\"guess_error\":0.05,\"guess_loss\":0.199,\"best\":true"),
        bad, hardly, " 94");
    run_well(LANGUAGE "--out n");
    EXPECT_VERDICT("n", BEST(20, 1.5, null), "overview open\">",
                   "Its loss is well below guessing.");
}

/* The entropy of the ten digits and the end, and of two labels. */
CPU_TEST(text_report, guessing_knows_how_frequent_targets_are)
{
    static const char *const commands[] = {CLASSIFIER, TINY_COPY};
    const double least[] = {M_LN2, 2.3}, most[] = {0.7, 2.45};
    for (int i = 0; i < 2; i++) {
        run_well("%s --out m%d", commands[i], i);
        const char *lines = program_read(i ? "m1.jsonl" : "m0.jsonl", NULL);
        double error = 0, loss = 0;
        const char *guess = lines ? strstr(lines, "\"guess_error\":") : NULL;
        MUST(guess && sscanf(guess, "\"guess_error\":%lf,\"guess_loss\":%lf", &error, &loss) == 2);
        cr_expect(least[i] < loss && loss < most[i] && (i || error == 0.5), "%s", lines);
    }
}

CPU_TEST(text_report, commands_name_the_file_that_was_evaluated_on)
{
    program_write("t.tsv", "ab\tba\ncd\tdc\n", 12);
    run_well("train --data t.tsv --valid t.tsv --encoder-layers 1 --decoder-layers 1 " TINY
             "--report page.html");
    EXPECT_PARTS("page.html", "--data t.tsv --valid t.tsv --");
    run_well("report m --input ab --out page.html");
    EXPECT_PARTS("page.html", "--data FILE [--valid FILE] --");
}

CPU_TEST(text_report, the_loss_says_what_acts_in_training_only)
{
    static const char *const options[] = {"--dropout 0 --label-smoothing 0",
                                          "--dropout 0.1 --label-smoothing 0",
                                          "--dropout 0 --label-smoothing 0.1"};
    for (int i = 0; i < 3; i++) {
        run_well(TINY_COPY "%s --out m%d", options[i], i);
        run_well("report m%d --input 314 --out page.html", i);
        const char *page = program_read("page.html", NULL);
        cr_expect(page && !!strstr(page, "act in training only") == (i > 0), "%s", options[i]);
    }
}

/* Each number says which texts it is of, and of which step the model is. The loss at the end is a
   mean over a tenth of the losses, not of the lines. */
CPU_TEST(text_report, numbers_say_what_they_are_of)
{
    run_well(TINY_COPY "--evaluate-pairs 8");
    EXPECT_VERDICT(
        "m",
        TRAINED(1, 3) TRAINED(2, 3) TRAINED(3, 3) TRAINED(4, 3) TRAINED(5, 3)
            EVALUATED_AND(10, 2, 0.25, ",\"held_out_texts\":8,\"best\":true") TRAINED(11, 3)
                TRAINED(12, 3) TRAINED(13, 3) TRAINED(14, 3) TRAINED(15, 0.5) EVALUATED(20, 1, 0),
        "% of 8 different held-out texts are exactly right. So few tell little: give more ");
    EXPECT_PARTS(
        "page.html", "<span>held-out texts</span> <strong>8</strong>",
        "of them exactly right</span> <strong>75 %</strong>",
        "held-out loss, nats</span> <strong>2</strong>",
        "loss at the end</span> <strong>0.5</strong>",
        "in training, at step 10, whose weights were saved as this model.</p>",
        "Of 100 other texts, made for tests and never seen in training, not even to evaluate, it "
        "writes ");
}
