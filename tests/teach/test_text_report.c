/* softback report, and train --report, of language models and classifiers; and what a report says
   of held-out texts. */
#include "teach/report/html.h"
#include "tests/support/program.h"
#include <stdio.h>

#define TINY                                                                                       \
    "--width 16 --heads 2 --steps 20 --evaluate-every 5 --batch-pairs 8 --batch-symbols 512 "      \
    "--threads 1 --out m "
#define LANGUAGE "train --model language_model --task dates --decoder-layers 2 --context 16 " TINY
#define CLASSIFIER "train --model classifier --task pattern --encoder-layers 2 " TINY

static void expect_parts(const char *file, const char *const parts[])
{
    char *page = program_read(file, NULL);
    cr_assert(page != NULL);
    for (int i = 0; parts[i]; i++)
        cr_expect(strstr(page, parts[i]), "%s: there is no %s", file, parts[i]);
    cr_expect(!strstr(page, " src=") && !strstr(page, "href=") && !strstr(page, "url("));
    cr_expect(!strstr(page, "nan") && !strstr(page, "inf\""), "a number is not finite");
    free(page);
}

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
                                        "layer 2, head 2<br>evenness ",
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
    struct outcome o = run_well(CLASSIFIER "--report page.html");
    static const char *const parts[] = {"<p>A classifier with ",
                                        ". The model classifies it as <code>",
                                        "<h2>Held-out texts that are exactly right</h2>",
                                        "<h2>What it confuses</h2>\n<p>1000 texts that it was not "
                                        "trained on: accuracy ",
                                        "<h2>Attention</h2>",
                                        "<h2>Saturated rows</h2>",
                                        NULL};
    expect_parts("page.html", parts);
    o = run_well("evaluate m --task pattern --json");
    program_write("some.tsv", "abcd\tyes\ndcba\tno\n", 17);
    o = run_well("report m --input abcd --data some.tsv --out other.html");
    static const char *const table[] = {"<p>2 texts that it was not trained on", NULL};
    expect_parts("other.html", table);
    o = program_run("report m --input abcd --out plain.html");
    char *page = program_read("plain.html", NULL);
    cr_expect(o.code == 0 && page && !strstr(page, "confuses"), "%s", o.err);
    free(page);
}

/* Each number says which texts it is of, and of which step the model is. */
CPU_TEST(text_report, held_out_numbers_are_those_of_the_saved_model)
{
    static const char log[] =
        "{\"softback\":\"log\",\"format\":2}\n"
        "{\"step\":10,\"held_out_loss\":2,\"held_out_error\":0.25,\"best\":true}\n"
        "{\"step\":20,\"held_out_loss\":1,\"held_out_error\":0,\"best\":false}\n";
    static const char *const parts[] = {
        "75&#160;% of held-out texts are exactly right.</p>",
        "held-out texts exactly right</span> <strong>75 %</strong>",
        "held-out loss, nats a symbol</span> <strong>2</strong>",
        "in training, at step 10, whose weights were saved as this model. An evaluation decodes up "
        "to 8 texts.",
        "Of 100 test texts of the task, which training never saw, not even to evaluate, it writes ",
        NULL};
    run_well("train --task copy --encoder-layers 1 --decoder-layers 1 --evaluate-pairs 8 " TINY);
    program_write("other.log", log, strlen(log));
    run_well("report m --input 314 --log other.log --out page.html");
    expect_parts("page.html", parts);
}
