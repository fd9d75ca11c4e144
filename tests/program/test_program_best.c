/* The best model of a resumed run: without it, or with a different one, the run is not resumed. */
#include "tests/support/program.h"
#include <stdio.h>

/* The learning rate is so low that each evaluation is better. */
#define TRAIN                                                                                      \
    "train --data pairs.tsv --width 8 --heads 2 --encoder-layers 1 --decoder-layers 1 "            \
    "--batch-pairs 4 --average 0.9 --learning-rate 0.0003 --warmup 0 --schedule constant "         \
    "--evaluate-pairs 4 --evaluate-every 5 --threads 1 --out m "

/* Finished and unfinished runs are refused, and nothing is written. */
static void expect_refused(const char *what, const char *message)
{
    for (int steps = 10; steps <= 20; steps += 10) {
        program_copy("m.state", "before");
        struct outcome o = program_run(TRAIN "--steps %d --resume", steps);
        cr_expect(o.code == 1 && strstr(o.err, message), "%s, --steps %d: exit code %d: %s%s", what,
                  steps, o.code, o.err, o.out);
        cr_expect(!strstr(o.out, "best "), "%s: %s", what, o.out);
        cr_expect(program_same("m.state", "before"), "%s: the state is written", what);
    }
}

/* Writes the first `size` bytes of a file, one of which is changed. */
static void damage(const char *from, const char *to, size_t size, size_t changed)
{
    size_t all = 0;
    char *bytes = program_read(from, &all);
    cr_assert(bytes && all > changed);
    bytes[changed] ^= 1;
    program_write(to, bytes, size < all ? size : all);
}

CPU_TEST(program_best, a_missing_or_different_best_model_ends_the_resumed_run)
{
    program_write_pairs();
    run_well(TRAIN "--steps 10 --seed 2");
    copy_run("", "other-");
    cr_assert(remove(test_temporary("m")) == 0 && remove(test_temporary("m.state")) == 0);
    run_well(TRAIN "--steps 10");
    copy_run("", "good-");
    size_t size = 0;
    program_read("m", &size);
    cr_assert(remove(test_temporary("m")) == 0);
    expect_refused("removed", "m, the best model (step 10), is missing; restore it, or move "
                              "m.state away to start again");
    damage("good-m", "m", size / 2, 0);
    expect_refused("truncated", "or move m and m.state away to start again");
    damage("good-m", "m", size, size - 3);
    expect_refused("one bit", "the file was changed after it was saved; use an unchanged copy");
    program_write("m", "a text\n", 7);
    expect_refused("a text", "restore the best model");
    program_write("m", "", 0);
    expect_refused("empty", "restore the best model");
    program_copy("other-m", "m");
    expect_refused("of another run", ", that of the best model, of step 10; restore that model");
    program_copy("good-m.state", "m");
    expect_refused("a state", ", that of the best model, of step 10; restore that model");
    program_copy("good-m", "m");
    struct outcome o = program_run(TRAIN "--steps 10 --resume");
    cr_expect(o.code == 0 && strstr(o.out, "best       at step 10: "), "%s%s", o.out, o.err);
    o = program_run(TRAIN "--steps 20 --resume");
    cr_expect(o.code == 0 && strstr(o.out, "trained    10 more steps"), "%s%s", o.out, o.err);
}

CPU_TEST(program_best, one_flipped_bit_of_a_state_or_model_is_refused)
{
    program_write_pairs();
    run_well(TRAIN "--steps 10");
    copy_run("", "good-");
    static const char *const files[] = {"m", "m.state"};
    for (int i = 0; i < 2; i++) {
        char good[32];
        size_t size = 0;
        snprintf(good, sizeof good, "good-%s", files[i]);
        program_read(good, &size);
        for (size_t at = size - 1; at > size - 4000; at -= 801) {
            damage(good, files[i], size, at);
            struct outcome o = program_run("info %s", files[i]);
            cr_expect(o.code == 1 && strstr(o.err, "checkpoint: its tensors have the fingerprint "),
                      "%s, byte %zu: %s", files[i], at, o.err);
        }
    }
    struct outcome o = program_run(TRAIN "--steps 20 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "m.state: checkpoint: its tensors"), "%s", o.err);
}

/* A run that dies after it has saved the best model, and before the state. */
CPU_TEST(program_best, a_model_that_is_newer_than_the_state_is_computed_again)
{
    program_write_pairs();
    run_well(TRAIN "--steps 20");
    copy_run("", "whole-");
    cr_assert(remove(test_temporary("m")) == 0 && remove(test_temporary("m.state")) == 0);
    run_well(TRAIN "--steps 10");
    copy_run("", "half-");
    run_well(TRAIN "--steps 15 --resume");
    program_copy("half-m.state", "m.state");
    struct outcome o = program_run(TRAIN "--steps 20 --resume");
    cr_expect(o.code == 0 && strstr(o.out, "resumed    after step 10\n"), "%s%s", o.out, o.err);
    program_expect_same_run("whole-");
    program_copy("half-m.state", "m.state"); /* two evaluations newer */
    o = run_well(TRAIN "--steps 20 --resume");
    program_expect_same_run("whole-");
}

CPU_TEST(program_best, a_newer_model_of_a_step_that_is_not_evaluated_again_is_refused)
{
    program_write_pairs();
    run_well(TRAIN "--steps 10");
    copy_run("", "half-");
    run_well(TRAIN "--steps 13 --resume"); /* evaluated at its end */
    program_copy("half-m.state", "m.state");
    struct outcome o = program_run(TRAIN "--steps 20 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "m is of step 13, later than m.state (step 10), and a "
                                           "run with --steps 20 does not evaluate at that step; "
                                           "resume with --steps 13 first"),
              "%s", o.err);
    o = program_run(TRAIN "--resume");
    cr_expect(o.code == 1 && strstr(o.err, "a run with --steps 10 does not evaluate"), "%s", o.err);
    o = run_well(TRAIN "--steps 13 --resume");
    o = run_well(TRAIN "--steps 20 --resume");
}

CPU_TEST(program_best, a_newer_model_of_another_run_or_an_older_one_is_refused)
{
    static const char *const others[] = {"--seed 2", "--width 16", "--dropout 0.2"};
    program_write_pairs();
    for (int i = 0; i < 3; i++)
        run_well(TRAIN "--steps 15 %s --out other%d", others[i], i);
    program_write("some.tsv", "12\t21\n13\t31\n14\t41\n15\t51\n", 24);
    struct outcome o = run_well(TRAIN "--steps 15 --valid some.tsv --out other3");
    run_well(TRAIN "--steps 5");
    program_copy("m", "other4"); /* of this run, but older */
    run_well(TRAIN "--steps 10 --resume");
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "other%d", i);
        program_copy(name, "m");
        o = program_run(TRAIN "--steps 15 --resume");
        cr_expect(o.code == 1 && strstr(o.err, "that of the best model, of step 10; restore"),
                  "%d: %s", i, o.err);
    }
}

/* Replaces a text of the metadata. */
static void forge(const char *file, const char *was, const char *is)
{
    size_t size = 0;
    char *bytes = program_read(file, &size), *at = memmem(bytes, size, was, strlen(was));
    cr_assert(at && strlen(was) == strlen(is), "%s is not in %s", was, file);
    memcpy(at, is, strlen(is));
    program_write(file, bytes, size);
}

/* As on a machine that computes different bits: at the step of the newer model, the loss is not
   better than the best known one, whose model is no longer on the disk. */
CPU_TEST(program_best, a_newer_model_is_replaced_at_its_step_or_the_run_fails)
{
    program_write_pairs();
    run_well(TRAIN "--steps 5");
    program_copy("m.state", "state");
    run_well(TRAIN "--steps 10 --resume");
    forge("state", "p+1\\\",\\\"best_step", "p-9\\\",\\\"best_step"); /* the best loss */
    program_copy("state", "m.state");
    struct outcome o = program_run(TRAIN "--steps 10 --resume");
    cr_expect(o.code == 0 && strstr(o.out, "best       at step 10: "), "%s%s", o.out, o.err);
    o = program_run(TRAIN "--steps 10 --resume");
    cr_expect(o.code == 0, "model and state do not match: %s", o.err);
    forge("state", "\\\"waited\\\":0", "\\\"waited\\\":1");
    program_copy("state", "m.state");
    o = program_run(TRAIN "--steps 10 --resume --patience 1");
    cr_expect(o.code == 1 && strstr(o.err, "m is the best model, of step 10, but this run stopped "
                                           "earlier; resume with the --patience"),
              "%s%s", o.out, o.err);
}
