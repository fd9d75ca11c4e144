/* The models of the last evaluations, --keep, and the score that chooses the best one, --best. */
#include "tests/support/program.h"
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TINY                                                                                       \
    "--width 8 --heads 2 --encoder-layers 1 --decoder-layers 1 --batch-pairs 4 --threads 1 "       \
    "--learning-rate 0.003 --warmup 0 --schedule constant "
#define TRAIN                                                                                      \
    "train --data pairs.tsv " TINY "--average 0.9 --evaluate-pairs 4 --evaluate-every 5 "          \
    "--keep 3 --out m.x "

/* Whether of the models at steps 5, 10, ... exactly those of `steps` exist. */
static void expect_kept(const char *steps)
{
    for (int step = 5; step <= 60; step += 5) {
        char name[32], word[16];
        snprintf(name, sizeof name, "m.step-%d.x", step);
        snprintf(word, sizeof word, " %d ", step);
        cr_expect(exists(name) == (strstr(steps, word) != NULL), "%s, where%sare kept", name,
                  steps);
    }
}

static void move(const char *from, const char *to)
{
    char name[64];
    snprintf(name, sizeof name, "%s", test_temporary(from));
    cr_assert(rename(name, test_temporary(to)) == 0, "no %s", from);
}

/* Moves a whole run away, of which these models are kept. */
static void put_away(const char *const files[], int n)
{
    for (int i = 0; i < n; i++) {
        char to[40];
        snprintf(to, sizeof to, "whole-%s", files[i]);
        move(files[i], to);
    }
}

static void expect_same(const char *const files[], int n)
{
    for (int i = 0; i < n; i++) {
        char other[40];
        snprintf(other, sizeof other, "whole-%s", files[i]);
        cr_expect(program_same(files[i], other), "%s differs", files[i]);
    }
}

static const char *const of_run[] = {"m.x",         "m.state.x",   "m.jsonl",
                                     "m.step-20.x", "m.step-25.x", "m.step-30.x"};

CPU_TEST(program_keep, the_last_evaluations_are_kept_also_by_resumed_runs)
{
    program_write_pairs();
    struct outcome o = run_well(TRAIN "--steps 30");
    cr_expect(strstr(o.out, "\nkept       m.step-20.x\n           m.step-25.x\n"
                            "           m.step-30.x\n"),
              "%s", o.out);
    expect_kept(" 20 25 30 ");
    put_away(of_run, 6);
    run_well(TRAIN "--steps 10");
    expect_kept(" 5 10 ");
    run_well(TRAIN "--steps 15 --resume");
    expect_kept(" 5 10 15 ");
    run_well(TRAIN "--steps 30 --resume");
    expect_kept(" 20 25 30 ");
    expect_same(of_run, 6);
}

/* A run that dies after a model was written and before the state, or before the removal. */
CPU_TEST(program_keep, a_run_killed_between_writing_and_removing_ends_with_the_same_files)
{
    program_write_pairs();
    run_well(TRAIN "--steps 30");
    put_away(of_run, 6);
    run_well(TRAIN "--steps 15");
    program_copy("m.state.x", "state");
    program_copy("m.step-5.x", "old");
    program_copy("m.jsonl", "log");
    program_copy("m.x", "best");
    run_well(TRAIN "--steps 20 --resume");
    program_copy("state", "m.state.x");
    program_copy("log", "m.jsonl");
    program_copy("best", "m.x");
    program_copy("old", "m.step-5.x");
    run_well(TRAIN "--steps 30 --resume");
    expect_kept(" 20 25 30 ");
    expect_same(of_run, 6);
}

CPU_TEST(program_keep, a_model_that_cannot_be_written_loses_nothing)
{
    program_write_pairs();
    run_well(TRAIN "--steps 30");
    put_away(of_run, 6);
    run_well(TRAIN "--steps 15");
    cr_assert(mkdir(test_temporary("m.step-20.x"), 0700) == 0);
    struct outcome o = program_run(TRAIN "--steps 30 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "m.step-20.x"), "%d %s", o.code, o.err);
    cr_expect(exists("m.step-5.x") && exists("m.step-10.x") && exists("m.step-15.x"));
    cr_assert(rmdir(test_temporary("m.step-20.x")) == 0);
    run_well(TRAIN "--steps 30 --resume");
    expect_kept(" 20 25 30 ");
    expect_same(of_run, 6);
}

CPU_TEST(program_keep, models_of_an_earlier_run_are_not_overwritten)
{
    program_write_pairs();
    program_write("m.step-7.x", "mine", 4);
    struct outcome o = program_run(TRAIN "--steps 10");
    cr_expect(o.code == 1 && strstr(o.err, "m.step-7.x exists already, from an earlier run with "
                                           "--keep; move it away, or name another --out"),
              "%d %s", o.code, o.err);
    cr_expect(!exists("m.state.x"));
    move("m.step-7.x", "m.step-7"); /* these are not of its form */
    program_write("m.step-07.x", "mine", 4);
    program_write("m.step-1.x.x", "mine", 4);
    run_well(TRAIN "--steps 30");
    cr_expect(exists("m.step-7") && exists("m.step-07.x") && exists("m.step-1.x.x"));
    expect_kept(" 20 25 30 ");
}

/* Two that another command wrote: at a step of its own, and in place of a kept one. */
CPU_TEST(program_keep, models_of_others_are_not_removed)
{
    program_write_pairs();
    run_well(TRAIN "--steps 15");
    move("m.step-10.x", "ten");
    run_well("average m.step-5.x ten --out m.step-1.x");
    run_well("average m.step-5.x ten --out m.step-10.x");
    program_copy("m.step-1.x", "mean");
    run_well(TRAIN "--steps 30 --resume");
    expect_kept(" 10 20 25 30 ");
    cr_expect(exists("m.step-1.x") && program_same("m.step-1.x", "mean"));
    cr_expect(program_same("m.step-10.x", "mean"));
}

CPU_TEST(program_keep, models_of_others_are_not_overwritten)
{
    program_write_pairs();
    run_well(TRAIN "--steps 15");
    run_well("average m.step-5.x --out m.step-20.x");
    program_copy("m.step-20.x", "mine");
    struct outcome o = program_run(TRAIN "--steps 30 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "m.step-20.x\" exists already; move it away, or "
                                           "name another file"),
              "%d %s", o.code, o.err);
    cr_expect(program_same("m.step-20.x", "mine"));
    move("m.step-20.x", "away");
    run_well(TRAIN "--steps 30 --resume");
    expect_kept(" 20 25 30 ");
}

CPU_TEST(program_keep, the_kept_models_can_be_averaged)
{
    program_write_pairs();
    run_well(TRAIN "--steps 30");
    struct outcome o = program_run("average m.step-20.x m.step-25.x m.step-30.x --out mean.x");
    cr_expect(o.code == 0 && strstr(o.out, "mean.x is the mean of 3 models"), "%s", o.err);
    o = run_well("translate mean.x 12");
}

/* ---- the best model ---- */

/* Words, and the same backwards. */
static void write_words(int count)
{
    static const char *const words[] = {"one", "two", "three", "four"};
    FILE *file = fopen(test_temporary("words.tsv"), "w");
    for (int i = 0; i < 64; i++) {
        const char *line[] = {words[i / 16], words[i / 4 % 4], words[i % 4], words[i / 16]};
        for (int n = 0; n < count; n++)
            fprintf(file, "%s%s", n > 0 ? " " : "", line[n]);
        for (int n = count - 1; n >= 0; n--)
            fprintf(file, "%s%s", n == count - 1 ? "\t" : " ", line[n]);
        fputc('\n', file);
    }
    fclose(file);
}

/* A number of the log's evaluation of the best step; NAN without one. */
static double best_in_log(const char *log, const char *name)
{
    double best = -1;
    char *text = program_read(log, NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        if (json_is_true(json_object_get(json, "best")))
            best = json_number_value(json_object_get(json, name));
        json_decref(json);
    }
    return best;
}

static double most_in_log(const char *log, const char *name, int sign)
{
    double most = -1e9;
    char *text = program_read(log, NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        const json_t *value = json_object_get(json, name);
        if (value && sign * json_number_value(value) > most)
            most = sign * json_number_value(value);
        json_decref(json);
    }
    return sign * most;
}

/* Their BLEU would be 0 whatever the model writes. */
CPU_TEST(program_keep, texts_of_three_words_are_chosen_by_exact_match_and_get_no_bleu)
{
    write_words(3);
    struct outcome o = run_well("train --data words.tsv " TINY "--steps 8 --evaluate-every 4 "
                                "--out m.x");
    expect_text(o.err, "  exact ");
    cr_expect(!strstr(o.err, "BLEU") && !strstr(o.out, "BLEU"), "%s%s", o.err, o.out);
}

CPU_TEST(program_keep, the_best_model_has_the_best_of_the_chosen_score)
{
    static const struct {
        const char *best, *name;
        int sign;
    } choice[] = {{"auto", "held_out_bleu", 1},
                  {"bleu", "held_out_bleu", 1},
                  {"loss", "held_out_loss", -1},
                  {"exact", "held_out_error", -1},
                  {"error", "held_out_unit_error", -1}};
    write_words(4);
    for (int i = 0; i < 5; i++) {
        struct outcome o = program_run("train --data words.tsv " TINY "--learning-rate 0.05 "
                                       "--steps 80 --evaluate-every 4 --best %s --out m%d.x",
                                       choice[i].best, i);
        char log[16];
        snprintf(log, sizeof log, "m%d.jsonl", i);
        cr_assert(o.code == 0, "%s", o.err);
        cr_expect(best_in_log(log, choice[i].name) ==
                      most_in_log(log, choice[i].name, choice[i].sign),
                  "--best %s: %g is not %g", choice[i].best, best_in_log(log, choice[i].name),
                  most_in_log(log, choice[i].name, choice[i].sign));
        cr_expect(strstr(o.err, "  BLEU ") && strstr(o.out, " % exact, "), "%s%s", o.err, o.out);
    }
}
