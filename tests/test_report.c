/* softback report, and train --report: one page of HTML. */
#include "tests/program.h"
#include <stdio.h>

#define TRAIN                                                                                      \
    "train --task copy --min-length 3 --max-length 5 --width 16 --heads 2 --encoder-layers 1 "     \
    "--decoder-layers 1 --steps 40 --evaluate-every 10 --evaluate-pairs 8 --threads 1 --out m "

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

/* Each element that is opened is closed again, the last one first. */
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
        if (at[1] == '!' || end[-1] == '/' || !strcmp(name, "meta") || !strcmp(name, "br"))
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

CLAIM(report, training_ends_with_a_page_that_needs_nothing_else)
{
    struct outcome o = program_run(TRAIN "--report page.html");
    cr_assert(o.code == 0, "%s", o.err);
    cr_expect(strstr(o.out, "report     page.html\n"), "%s", o.out);
    size_t size = 0;
    char *page = program_read("page.html", &size);
    cr_assert(page && size == strlen(page) && size < 1 << 20);
    expect_nested(page);
    static const char *const parts[] = {"<!DOCTYPE html>\n<html lang=\"en\">",
                                        "<h2>Loss</h2>",
                                        "guessing",
                                        "<h2>Held-out texts that are exactly right</h2>",
                                        "<h2>Learning rate</h2>",
                                        "<h2>Alignment</h2>",
                                        "layer 1, head 2<br>evenness ",
                                        "<h2>The gradient of each parameter</h2>",
                                        "<h2>Deaf rows</h2>",
                                        ">cross, layer 1, head 2</text>",
                                        "<h2>The tape</h2>"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect(strstr(page, parts[i]), "there is no %s", parts[i]);
    cr_expect(!strstr(page, "\npath{") && !strstr(page, "}path{") && !strstr(page, "\nrect{"),
              "a picture's rules hold for the others");
    cr_expect(!strstr(page, "<script") && !strstr(page, " src=") && !strstr(page, "href="));
    cr_expect(!strstr(page, "nan") && !strstr(page, "inf\""), "a number is none");
    cr_expect(count_of(page, "<svg") == count_of(page, "role=\"img\"") &&
                  count_of(page, "role=\"img\"><title>") + count_of(page, "var(--blue)\"><title>") +
                          count_of(page, "role=\"img\">\n<title>") ==
                      count_of(page, "<svg"),
              "a picture has no title");
    free(page);
}

/* The last line of the log, as the table behind the curve has it. */
CLAIM(report, its_numbers_are_those_of_the_log)
{
    cr_assert(program_run(TRAIN "--log m.log").code == 0);
    struct outcome o = program_run("report m --input 314 --log m.log --out page.html");
    cr_assert(o.code == 0, "%s", o.err);
    char *page = program_read("page.html", NULL), *log = program_read("m.log", NULL);
    cr_assert(page && log);
    char row[64];
    int rows = 0;
    for (const char *line = log; (line = strstr(line, "{\"step\":")); line++) {
        double step, loss;
        if (sscanf(line, "{\"step\":%lf,\"loss\":%lf,", &step, &loss) == 2) {
            snprintf(row, sizeof row, "<tr><td>%.4g</td><td>%.4g</td><td></td></tr>", step, loss);
            cr_expect(strstr(page, row), "there is no %s", row);
            rows++;
        }
    }
    cr_expect(rows == 4, "%d rows", rows);
    free(page);
    free(log);
}

/* A resumed run goes on with the diagnoses, too. */
CLAIM(report, each_evaluation_is_a_column)
{
    cr_assert(program_run(TRAIN "--report page.html").code == 0);
    cr_assert(program_run(TRAIN "--report page.html --steps 60 --resume").code == 0);
    char *page = program_read("page.html", NULL), *log = program_read("m.jsonl", NULL);
    cr_assert(page && log);
    cr_expect(count_of(log, "\"gradients\":[") == 6, "%d", count_of(log, "\"gradients\":["));
    const char *head = strstr(page, "<h2>Deaf rows</h2>");
    cr_assert(head && (head = strstr(head, "<th scope=\"col\">step</th>")));
    static const char columns[] = "<th scope=\"col\">step</th><th scope=\"col\">10</th>"
                                  "<th scope=\"col\">20</th><th scope=\"col\">30</th>";
    cr_expect(strncmp(head, columns, strlen(columns)) == 0, "%.200s", head);
    free(page);
    free(log);
}

CLAIM(report, a_log_of_another_model_is_refused)
{
    cr_assert(program_run(TRAIN).code == 0);
    const char odd[] = "{\"step\":1,\"gradients\":[1,2],\"deaf\":[0],\"evenness\":[1]}\n";
    program_write("odd.log", odd, strlen(odd));
    struct outcome o = program_run("report m --input '1 2' --log odd.log");
    cr_expect(o.code == 1 && strstr(o.err, "the log is of a model with 2 parameters and 1 heads"),
              "%s", o.err);
    const char bad[] = "{\"step\":1,\"gradients\":[],\"deaf\":[0],\"evenness\":[1]}\n";
    program_write("odd.log", bad, strlen(bad));
    o = program_run("report m --input '1 2' --log odd.log");
    cr_expect(o.code == 1 && strstr(o.err, "a diagnosis in the log holds no numbers"), "%s", o.err);
}

CLAIM(report, what_cannot_be_shown_is_named)
{
    cr_assert(program_run(TRAIN).code == 0);
    struct outcome o = program_run("report m");
    cr_expect(o.code == 2 && strstr(o.err, "a model's file and --input TEXT are wanted"), "%s",
              o.err);
    o = program_run("report nowhere --input 12");
    cr_expect(o.code == 1 && strstr(o.err, "softback report: ") && strstr(o.err, "nowhere"), "%s",
              o.err);
    o = program_run("report m --input \"$(seq -s ' ' 1 70)\"");
    cr_expect(o.code == 1 && strstr(o.err, "the text has 70 symbols") &&
                  strstr(o.err, "from 1 to 64 can be drawn"),
              "%s", o.err);
    program_write("odd.log", "softly\n", 7);
    o = program_run("report m --input 12 --log odd.log");
    cr_expect(o.code == 1 && strstr(o.err, "line 1 of odd.log is not of a log of training"), "%s",
              o.err);
    cr_expect(!program_read("m.html", NULL));
}

/* Whatever the text is: it stands there as text. */
CLAIM(report, a_text_is_no_html)
{
    cr_assert(program_run(TRAIN).code == 0);
    struct outcome o = program_run("report m --input '<b>&1\"' --out page.html");
    cr_assert(o.code == 0, "%s", o.err);
    char *page = program_read("page.html", NULL);
    cr_assert(page);
    cr_expect(strstr(page, "&#60;b&#62;&#38;1&#34;") && !strstr(page, "<b>"));
    expect_nested(page);
    free(page);
}
