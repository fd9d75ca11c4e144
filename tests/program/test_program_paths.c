/* The files that commands read and write: no output overwrites an input, another output, or a file
   that is not of softback. */
#include "tests/support/program.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TINY                                                                                       \
    "--width 8 --heads 2 --encoder-layers 1 --decoder-layers 1 --evaluate-pairs 4 --threads 1 "
#define TRAIN "train --task copy --steps 4 " TINY

static void make_model(void)
{
    run_well(TRAIN "--out model");
}

CPU_TEST(program_paths, a_report_and_a_figure_replace_files_of_their_kind_and_empty_ones)
{
    make_model();
    write_text("empty", "");
    cr_expect(program_run("report model --input '1 2' --out empty").code == 0);
    struct outcome o = run_well("report model --input '3' --out empty");
    char *page = program_read("empty", NULL);
    static const char begins[] = "<!DOCTYPE html>\n<!-- softback report -->\n<html";
    cr_expect(page && strncmp(page, begins, sizeof begins - 1) == 0, "%.80s", page);
    for (int i = 0; i < 2; i++)
        o = run_well("report model --input '3 1' --figure attention --out a.svg");
    o = program_run("report model --input '3 1' --figure attention >b.svg");
    cr_expect(program_same("a.svg", "b.svg"));
    o = program_run("report model --input '3 1' --out a.svg");
    cr_expect(o.code == 1 && strstr(o.err, "it is not a report of softback"), "%s", o.err);
}

CPU_TEST(program_paths, a_log_overwrites_a_log_of_another_run_or_one_that_was_cut_off)
{
    write_text("other", "{\"softback\":\"log");
    struct outcome o = program_run(TRAIN "--out m --log other");
    cr_expect(o.code == 0, "its first line is truncated: %s", o.err);
    o = run_well(TRAIN "--out n");
    char *log = program_read("n.jsonl", NULL);
    static const char begins[] = "{\"softback\":\"log\",\"format\":2}\n{\"step\":4,";
    cr_expect(log && strncmp(log, begins, sizeof begins - 1) == 0, "%s", log);
    o = program_run(TRAIN "--out p --log n.jsonl");
    cr_expect(o.code == 0, "another run does not replace it: %s", o.err);
}

/* A name that begins with a dot has no ending that a log's or a state's could replace. */
CPU_TEST(program_paths, files_beside_a_hidden_model_have_its_whole_name)
{
    cr_assert(mkdir(test_temporary("d"), 0777) == 0);
    run_well(TRAIN "--out d/.x");
    cr_expect(access(test_temporary("d/.x.jsonl"), F_OK) == 0);
    cr_expect(access(test_temporary("d/.jsonl"), F_OK) != 0);
}

CPU_TEST(program_paths, a_log_may_be_a_device_or_a_pipe)
{
    struct outcome o = run_well(TRAIN "--out a --log /dev/null");
    o = program_run(TRAIN "--out b --log /dev/stdout | cat");
    cr_expect(strstr(o.out, "{\"softback\":\"log\",") && strstr(o.out, "\"best\":true}"), "%s",
              o.out);
    cr_assert(mkfifo(test_temporary("pipe"), 0666) == 0);
    char command[4096];
    snprintf(command, sizeof command,
             "cd '%s' && { timeout 60 cat pipe >log & sleep 0.2; '%s' " TRAIN
             "--out c --log pipe >out 2>err; wait; }",
             test_temporary(""), TEST_PROGRAM);
    cr_expect(system(command) == 0);
    char *log = program_read("log", NULL);
    cr_expect(log && strncmp(log, "{\"softback\":\"log\",", 18) == 0 &&
                  strstr(log, "\"held_out_loss\":"),
              "%s", log);
}

CPU_TEST(program_paths, the_batch_of_a_failed_run_is_not_overwritten)
{
    for (int i = 0; i < 2; i++) {
        struct outcome o =
            program_run("train --task reverse --steps 40 --batch-pairs 8 " TINY
                        "--optimiser sgd --learning-rate 1e6 --clip 0 --schedule constant "
                        "--warmup 0 --out m %s",
                        i ? "--resume" : "");
        cr_expect(o.code == 1 && strstr(o.err, i ? "Its batch is in m.bad-batch.2.tsv.\n"
                                                 : "Its batch is in m.bad-batch.tsv.\n"),
                  "%s", o.err);
    }
}
