/* Classifiers: training, evaluating, and the labels that they give. */
#include "tests/support/program.h"
#include <jansson.h>
#include <stdio.h>

#define SIZES "--width 16 --heads 2 --encoder-layers 1 --batch-pairs 8 "
#define TRAIN                                                                                      \
    "train --model classifier --data texts.tsv --out m --log m.jsonl --learning-rate 0.01 "        \
    "--warmup 5 --evaluate-every 20 --dropout 0.1 " SIZES

/* Words of three kinds of letters, with the name of the kind; NULL: none of this kind. */
static void write_named(const char *file, const char *a, const char *e, const char *i_)
{
    static const char *const sets[] = {"abcd", "efgh", "ijkl"};
    const char *const names[] = {a, e, i_};
    char text[8000] = "";
    for (int i = 0; i < 240; i++) {
        char line[32];
        if (!names[i % 3])
            continue;
        const char *set = sets[i % 3];
        snprintf(line, sizeof line, "%c%c%c%c\t%s\n", set[i / 3 % 4], set[i / 12 % 4],
                 set[i / 48 % 4], set[i % 4], names[i % 3]);
        strcat(text, line);
    }
    write_text(file, text);
}

static void write_texts(void)
{
    write_named("texts.tsv", "low", "middle", "high");
}

CPU_TEST(program_classifier, it_learns_evaluates_and_classifies)
{
    write_texts();
    struct outcome o = run_well(TRAIN "--steps 100");
    EXPECT_TEXTS(o.out, "texts.tsv  228 pairs; ", "labels     3: high, low, middle",
                 "a classifier of 1 layer, width 16", ", accuracy 100.00 %");
    expect_text(o.err, "  accuracy ");
    o = run_well("evaluate m --data texts.tsv");
    expect_text(o.out, "accuracy        100.00 %");
    expect_text(o.out, "macro-F1        1.0000, the mean over 3 labels");
    expect_text(o.out, "   high      80       0       0");
    o = run_well("evaluate m --data texts.tsv --json");
    json_t *json = json_loads(o.out, 0, NULL);
    cr_assert(json, "%s", o.out);
    json_t *row = json_array_get(json_object_get(json, "confusion"), 2);
    cr_expect(json_integer_value(json_array_get(row, 2)) == 80);
    json_decref(json);
    o = run_well("classify m abca iill");
    cr_expect(strncmp(o.out, "low\t", 4) == 0 && strstr(o.out, "\nhigh\t"), "%s", o.out);
    o = run_well("attend m abca --head 2");
    expect_text(o.out, "Encoder attention, layer 1 of 1, head 2 of 2.");
    o = run_well("info m");
    expect_text(o.out, "kind    classifier");
    expect_text(o.out, "pooling            mean");
}

CPU_TEST(program_classifier, texts_longer_than_learned_positions_are_left_out)
{
    write_texts();
    FILE *file = fopen(test_temporary("texts.tsv"), "a");
    cr_assert(file);
    for (int i = 0; i < 64; i++) /* some are held out */
        fprintf(file, "abcd%c%c%c\tlow\n", "abcd"[i / 16], "abcd"[i / 4 % 4], "abcd"[i % 4]);
    fclose(file);
    struct outcome o = run_well(TRAIN "--steps 20 --positions learned --positions-longest 5");
    expect_text(o.out, " texts of more than 4 symbols");
    o = run_well("train --data texts.tsv " SIZES "--decoder-layers 1 --positions learned "
                 "--positions-longest 7 --steps 4 --evaluate-every 2 --out pairs");
    expect_text(o.out, " pairs of more than 6 symbols on a side");
}

CPU_TEST(program_classifier, lines_of_the_standard_input_get_labels)
{
    write_texts();
    run_well(TRAIN "--steps 60 --pooling first");
    program_write("lines", "abca\nefz\n", 9);
    struct outcome o = run_well("classify m <%s", test_temporary("lines"));
    expect_text(o.out, "\tabca\n");
    expect_text(o.out, "\tefz\n");
    expect_text(o.err, "standard input:2: \"z\" is unknown to the model");
}

CPU_TEST(program_classifier, a_line_that_is_no_text_is_named_and_gets_an_empty_one)
{
    write_texts();
    run_well(TRAIN "--steps 10");
    char *end, *got;
    program_write("good", "abca\niill\n", 10);
    program_write("lines", "abca\na\0b\n\xff\niill\n", 16);
    struct outcome good = run_well("classify m <good"), o = program_run("classify m <lines");
    cr_expect(o.code == 1, "exit code %d", o.code);
    expect_text(o.err,
                "softback classify: standard input:2: byte 2 is NUL, as in UTF-16, not UTF-8\n");
    expect_text(o.err, "standard input:3: byte 1 (0xff) is not UTF-8\n");
    expect_text(o.err, "lines that could not be classified: 2");
    end = strchr(good.out, '\n') + 1;
    got = o.out + (end - good.out);
    cr_expect(strncmp(o.out, good.out, (size_t)(end - good.out)) == 0 &&
                  strncmp(got, "\n\n", 2) == 0 && strcmp(got + 2, end) == 0,
              "%s", o.out);
}

CPU_TEST(program_classifier, a_resumed_run_ends_with_the_same_bytes)
{
    write_texts();
    run_well(TRAIN "--steps 80 --schedule constant");
    program_copy("m", "whole-m");
    program_copy("m.state", "whole-m.state");
    program_copy("m.jsonl", "whole-m.jsonl");
    static const char *const files[] = {"m", "m.state", "m.jsonl"};
    for (int i = 0; i < 3; i++)
        cr_assert(remove(test_temporary(files[i])) == 0);
    run_well(TRAIN "--steps 40 --schedule constant --evaluate-every 20");
    run_well(TRAIN "--steps 80 --schedule constant --resume");
    program_expect_same_run("whole-");
}

CPU_TEST(program_classifier, a_made_task_needs_no_data)
{
    struct outcome o =
        run_well("train --model classifier --task pattern --steps 210 --out m " SIZES);
    expect_text(o.out, "task       pattern; 10,000 texts, 1,000 held out");
    expect_text(o.out, "labels     2: no, yes");
    o = run_well("evaluate m --task pattern --count 100");
    expect_text(o.out, "texts           100");
}

/* ---- labels of other data ---- */

#define TUNE                                                                                       \
    "train --model classifier --from m --data other.tsv --out t --learning-rate 0.01 --warmup 5 "  \
    "--evaluate-every 20 --batch-pairs 8 --schedule constant "

/* Trains the model m, and the model t from it with other names. */
static struct outcome tune(const char *a, const char *e, const char *i)
{
    write_texts();
    run_well(TRAIN "--steps 60");
    write_named("other.tsv", a, e, i);
    return run_well(TUNE "--steps 60");
}

static void expect_labels(const char *a, const char *e, const char *i)
{
    char expected[64];
    struct outcome o = program_shell("softback classify t abca efge iill | cut -f1");
    snprintf(expected, sizeof expected, "%s\n%s\n%s\n", a, e, i);
    cr_expect_str_eq(o.out, expected);
    o = run_well("evaluate t --data other.tsv");
    expect_text(o.out, "accuracy        100.00 %");
}

CPU_TEST(program_classifier, tuning_on_some_of_the_labels_matches_them_by_name)
{
    struct outcome o = tune("low", "middle", NULL);
    expect_text(o.out, "labels     3: high, low, middle");
    expect_text(o.out, ", accuracy 100.00 %");
    cr_expect(!strstr(o.out, "new labels"), "%s", o.out);
    expect_labels("low", "middle", "high");
}

CPU_TEST(program_classifier, tuning_on_new_labels_adds_rows_to_the_head)
{
    struct outcome o = tune("low", "middle", "above");
    expect_text(o.out, "labels     4: above, high, low, middle");
    expect_text(o.out, "new labels above; the head gets new rows for them");
    expect_text(o.out, ", accuracy 100.00 %");
    expect_labels("low", "middle", "above");
}

CPU_TEST(program_classifier, tuning_on_other_names_of_the_same_number_is_no_renaming)
{
    struct outcome o = tune("aa", "mm", "zz");
    expect_text(o.out, "labels     6: aa, high, low, middle, mm, zz");
    expect_labels("aa", "mm", "zz");
}

CPU_TEST(program_classifier, tuning_on_one_label_keeps_the_others)
{
    struct outcome o = tune(NULL, NULL, "high");
    expect_text(o.out, "labels     3: high, low, middle");
    o = run_well("info t");
    expect_text(o.out, "label   middle");
}

CPU_TEST(program_classifier, adapters_match_labels_by_name_and_add_none)
{
    write_texts();
    run_well(TRAIN "--steps 60");
    write_named("other.tsv", "low", "middle", "zen");
    struct outcome o = program_run(TUNE "--steps 20 --lora 2");
    cr_expect(o.code == 1 && !exists("t"), "%d %s", o.code, o.err);
    expect_text(o.err,
                "the data have the labels zen, which the model of --from lacks: it has high, "
                "low, middle; ");
    write_named("other.tsv", "low", "middle", NULL);
    o = run_well(TUNE "--steps 20 --lora 2");
    expect_text(o.out, ", accuracy 100.00 %");
    o = run_well("evaluate t --base m --data other.tsv");
    expect_text(o.out, "accuracy        100.00 %");
}

CPU_TEST(program_classifier, a_resumed_run_with_new_labels_ends_with_the_same_bytes)
{
    tune("low", "middle", "above");
    static const char *const files[] = {"t", "t.state", "t.jsonl"};
    char whole[16];
    for (int i = 0; i < 3; i++) {
        snprintf(whole, sizeof whole, "whole-%s", files[i]);
        program_copy(files[i], whole);
        cr_assert(remove(test_temporary(files[i])) == 0);
    }
    run_well(TUNE "--steps 40");
    run_well(TUNE "--steps 60 --resume");
    cr_expect(program_same("t", "whole-t") && program_same("t.state", "whole-t.state"));
    write_named("other.tsv", "low", "middle", "below");
    struct outcome o = program_run(TUNE "--steps 80 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "the data differ from those that t was started with"),
              "%d %s", o.code, o.err);
}

CPU_TEST(program_classifier, labels_to_evaluate_on_that_the_model_lacks_are_named)
{
    tune("low", "middle", NULL);
    write_named("valid.tsv", "low", "middle", "zen");
    struct outcome o = program_run("evaluate t --data valid.tsv");
    cr_expect(o.code == 1 && strstr(o.err, "the label \"zen\" is unknown to the model"), "%s",
              o.err);
    o = program_run("train --model classifier --from m --data other.tsv --valid valid.tsv --out v");
    cr_expect(
        o.code == 1 &&
            strstr(o.err, " has the label \"zen\", which is none of the 3 labels in training"),
        "%s", o.err);
}

CPU_TEST(program_classifier, symbols_that_the_other_model_does_not_know_are_counted)
{
    write_texts();
    run_well(TRAIN "--steps 10");
    write_text("other.tsv", "abxy\tlow\nefze\tmiddle\n");
    struct outcome o = run_well(TUNE "--valid texts.tsv --steps 5");
    expect_text(o.out, "warning    3 symbols of the data are unknown to its vocabulary");
}

/* ---- words of five languages: the files of SIGMORPHON 2021's g2p task ---- */

/* The first words of each language's file, with the language. */
static bool write_words(const char *folder, const char *part, int most)
{
    static const char *const languages[] = {"bul", "dut", "geo", "hun", "kor"};
    FILE *out = fopen(test_temporary(part), "w");
    bool ok = out != NULL;
    for (int i = 0; ok && i < 5; i++) {
        char path[512], line[512];
        snprintf(path, sizeof path, "%s/%s.%s.tsv", folder, languages[i], part);
        FILE *in = fopen(path, "r");
        ok = in != NULL;
        for (int n = 0; ok && n < most && fgets(line, sizeof line, in); n++)
            fprintf(out, "%.*s\t%s\n", (int)strcspn(line, "\t"), line, languages[i]);
        if (in)
            fclose(in);
    }
    if (out)
        fclose(out);
    return ok;
}

/* Bulgarian, Georgian and Korean have letters of their own; Dutch and Hungarian must be learned. */
TEST(program_classifier, languages_of_words_are_recognised)
{
    const char *folder = getenv("SOFTBACK_TEST_WORDS");
    if (!folder)
        cr_skip_test("SOFTBACK_TEST_WORDS does not name the folder of SIGMORPHON 2021's g2p files");
    cr_assert(write_words(folder, "train", 2000) && write_words(folder, "valid", 200), "%s",
              folder);
    struct outcome o =
        run_well("train --model classifier --data train --valid valid --width 32 --heads 2 "
                 "--encoder-layers 1 --steps 300 --threads 1 --out m");
    expect_text(o.out, "labels     5: bul, dut, geo, hun, kor");
    o = run_well("evaluate m --data valid --json");
    json_t *json = json_loads(o.out, 0, NULL);
    const double accuracy = json_number_value(json_object_get(json, "accuracy"));
    const json_t *rows = json_object_get(json, "confusion");
    for (size_t k = 0; k < 5; k += 2)
        cr_expect(json_integer_value(json_array_get(json_array_get(rows, k), k)) >= 199,
                  "label %zu", k);
    cr_expect(accuracy > 0.9, "accuracy %g", accuracy);
    json_decref(json);
}
