/* Training runs that are stopped, killed and resumed. */
#include "tests/support/program.h"
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRAIN                                                                                      \
    "train --data pairs.tsv --log m.jsonl --width 16 --heads 2 --encoder-layers 1 "                \
    "--decoder-layers 1 --batch-pairs 4 --accumulate 2 --average 0.9 --schedule plateau "          \
    "--learning-rate 0.01 --warmup 5 --plateau-patience 1 --patience 50 --evaluate-pairs 4 "       \
    "--evaluate-every 7 --out m "

static void run_whole(const char *options)
{
    run_well(TRAIN "%s", options);
    rename_run("whole-");
}

/* Kills the process a moment after the log has this size. Returns whether it ended before. */
static bool ends_before(pid_t process, size_t log_size, double moment)
{
    int status;
    bool ended = false;
    while (size_of("m.jsonl") < log_size && !ended) {
        pause_for(0.0005);
        ended = waitpid(process, &status, WNOHANG) == process;
    }
    if (!ended) {
        pause_for(moment);
        kill(process, SIGKILL);
        waitpid(process, &status, 0);
    }
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) == 0, "%s", program_read("err", NULL));
    return WIFEXITED(status);
}

/* Resumes a run until it ends, and kills it each time: after no, ten or twenty more steps and a
   random moment. Returns the number of kills. */
static int kill_until_done(const char *options, sb_random *random)
{
    for (int kills = 0;; kills++) {
        size_t size = size_of("m.jsonl") + sb_random_below(random, 250);
        pid_t process = program_start(TRAIN "%s --resume", options);
        if (ends_before(process, kills < 8 ? size : SIZE_MAX, 0.004 * sb_random_uniform(random)))
            return kills;
    }
}

/* As a run that is still alive. */
CPU_TEST(program_resume, a_run_that_goes_on_is_not_resumed)
{
    struct outcome o = run_well("train --task copy --width 8 --heads 2 --encoder-layers 1 "
                                "--decoder-layers 1 --threads 1 --steps 2 --out w");
    program_copy("w.state", "before");
    const int log = open(test_temporary("w.jsonl"), O_RDONLY);
    cr_assert(flock(log, LOCK_EX) == 0);
    o = program_run("train --task copy --steps 4 --out w --resume");
    cr_expect(o.code == 1 && strstr(o.err, "another training run writes w.jsonl; wait for"),
              "%d %s", o.code, o.err);
    cr_expect(program_same("w.state", "before"));
    close(log);
    o = run_well("train --task copy --steps 4 --out w --resume");
}

/* Whose logs differ: what both write is --out and its state. */
CPU_TEST(program_resume, of_two_runs_with_one_out_the_second_is_refused)
{
    const pid_t first = program_start("train --task copy --width 8 --heads 2 --encoder-layers 1 "
                                      "--decoder-layers 1 --threads 1 --steps 1000000 "
                                      "--evaluate-every 400 --out w --log first.jsonl");
    while (size_of("first.jsonl") < 1000)
        pause_for(0.001);
    struct outcome o = program_run("train --task copy --out w --log second.jsonl --resume");
    cr_expect(o.code == 1 && strstr(o.err, "another training run writes \"w\"; wait for its end, "
                                           "or name another --out"),
              "%d %s", o.code, o.err);
    program_copy("w.state", "other"); /* as a run that started at the same moment makes it */
    program_copy("other", "kept");
    cr_assert(rename(test_temporary("other"), test_temporary("w.state")) == 0);
    int status;
    cr_assert(waitpid(first, &status, 0) == first);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    cr_expect(program_same("w.state", "kept"));
}

CPU_TEST(program_resume, a_run_that_is_killed_at_any_moment_ends_with_the_same_bytes)
{
    static const char *const options[] = {"--steps 60 --threads 1", "--steps 60 --threads 2"};
    program_write_pairs();
    run_whole(options[0]);
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    int kills = 0;
    for (int round = 0; round < (test_long() ? 20 : 2) || (kills < 5 && round < 50); round++) {
        kills += kill_until_done(options[round % 2], &random);
        program_expect_same_run("whole-");
        rename_run("killed-");
    }
    cr_expect(kills > 0, "no run was killed");
}

/* So slow that each evaluation is better: the model then has the --steps of the last run. */
#define SLOWLY "--learning-rate 0.0003 --threads 1 "

/* Interrupts a run after some steps; returns their number, as printed. */
static int interrupt_run(int signal_number)
{
    pid_t process = program_start(TRAIN SLOWLY "--steps 1000000");
    while (size_of("m.jsonl") < 400)
        pause_for(0.0005);
    kill(process, signal_number);
    struct outcome o = program_wait(process);
    const char *message = strstr(o.err, "Stopped after step ");
    cr_expect(o.code == 1 && message, "exit code %d, %s", o.code, o.err);
    cr_expect(strstr(o.err, "; the same command with --resume continues.\n") != NULL);
    int step = 0; /* with a comma for each thousand */
    for (const char *at = message ? message + 19 : ""; *at && *at != ';'; at++)
        step = *at == ',' ? step : 10 * step + *at - '0';
    return step;
}

CPU_TEST(program_resume, an_interrupted_run_saves_and_resumes_with_the_same_bytes)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    program_write_pairs();
    for (int i = 0; i < 3; i++) {
        char options[64];
        int step = interrupt_run(signals[i]);
        cr_assert(step >= 10, "stopped at step %d", step);
        snprintf(options, sizeof options, SLOWLY "--steps %d", step + 13);
        struct outcome o = program_run(TRAIN "%s --resume", options);
        cr_assert(o.code == 0 && strstr(o.out, "resumed    after step "), "%s", o.err);
        cr_expect(strstr(o.out, "trained    13 more steps in ") != NULL, "%s", o.out);
        rename_run("resumed-");
        run_whole(options);
        cr_assert(rename(test_temporary("resumed-m"), test_temporary("m")) == 0);
        cr_assert(rename(test_temporary("resumed-m.state"), test_temporary("m.state")) == 0);
        cr_assert(rename(test_temporary("resumed-m.jsonl"), test_temporary("m.jsonl")) == 0);
        program_expect_same_run("whole-");
        rename_run("done-");
    }
}

/* A signal gives up the step that it meets; the one before it was evaluated already. */
CPU_TEST(program_resume, an_interrupted_step_is_not_an_evaluation)
{
    pid_t process =
        program_start("train --task copy --max-length 4 --width 16 --heads 2 "
                      "--encoder-layers 1 --decoder-layers 1 --batch-pairs 8 --threads 1 "
                      "--evaluate-pairs 5 --steps 5 --evaluate-every 1 --patience 1 "
                      "--accumulate 5000 --out m");
    char *log = NULL;
    while (!log || !strstr(log, "held_out_loss")) {
        pause_for(0.002);
        log = exists("m.jsonl") ? program_read("m.jsonl", NULL) : NULL;
    }
    kill(process, SIGINT);
    const struct outcome o = program_wait(process);
    log = program_read("m.jsonl", NULL);
    const char *first = strstr(log, "held_out_loss");
    cr_expect(o.code == 1 && strstr(o.err, "; the same command with --resume continues.\n"),
              "%d %s", o.code, o.err);
    cr_expect(first && !strstr(first + 1, "held_out_loss"), "%s", log);
}

/* A line that cannot be read, and what follows it, stays. */
CPU_TEST(program_resume, a_log_with_a_damaged_line_is_not_cut_back)
{
    program_write_pairs();
    run_well(TRAIN "--steps 30 --threads 1");
    size_t size;
    char *log = program_read("m.jsonl", &size), *second = strchr(log, '\n') + 1;
    *strchr(second, '"') = '\0'; /* as after a crash of the system */
    program_write("m.jsonl", log, size);
    const struct outcome o = program_run(TRAIN "--steps 40 --threads 1 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "line 2 of m.jsonl is not a line of a training log: "),
              "%d %s", o.code, o.err);
    cr_expect(size_of("m.jsonl") == size);
}

/* The first evaluation saves the model and then the state: a run that dies between the two must not
   leave a model that cannot be resumed. */
CPU_TEST(program_resume, a_run_has_a_state_from_the_start)
{
    program_write_pairs();
    pid_t process = program_start(TRAIN "--steps 1000000 --evaluate-every 1000000 --threads 1");
    while (size_of("m.jsonl") == 0)
        pause_for(0.0005);
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    cr_assert(size_of("m.state") > 0 && size_of("m") == 0);
    cr_assert(rename(test_temporary("m.state"), test_temporary("first")) == 0);
    program_copy("first", "m.state");
    program_write("m", "a model", 7);
    struct outcome o = program_run(TRAIN "--steps 12 --evaluate-every 0 --threads 1 --resume");
    cr_expect(o.code == 1 && strstr(o.err, "m\": has 7 bytes"), "no model of this run: %s", o.err);
    cr_assert(size_of("m") == 7 && remove(test_temporary("m")) == 0);
    for (int i = 0; i < 2; i++) { /* the second time the model exists */
        program_copy("first", "m.state");
        o = program_run(TRAIN "--steps 12 --evaluate-every 0 --threads 1 --resume");
        cr_expect(o.code == 0 && !strstr(o.out, "resumed"), "it does not start anew: %s", o.err);
        cr_expect(size_of("m") > 1000);
        if (i == 0)
            copy_run("", "whole-");
    }
    program_expect_same_run("whole-");
}

CPU_TEST(program_resume, the_log_has_each_step_once)
{
    program_write_pairs();
    run_whole("--steps 50 --threads 1");
    sb_random random = sb_random_new(2, SB_STREAM_USER);
    kill_until_done("--steps 50 --threads 1", &random);
    char *text = program_read("m.jsonl", NULL);
    int64_t last = 0;
    char *line = strtok(text, "\n");
    cr_expect(line && strcmp(line, "{\"softback\":\"log\",\"format\":2}") == 0, "%s", line);
    while ((line = strtok(NULL, "\n"))) {
        json_t *json = json_loads(line, 0, NULL);
        int64_t step = json_integer_value(json_object_get(json, "step"));
        bool evaluation = json_object_get(json, "best") || json_object_get(json, "seconds");
        cr_expect(evaluation ? step % 7 == 0 || step == 50 : step == last + 10, "step %lld: %s",
                  (long long)step, line);
        last = evaluation ? last : step;
        json_decref(json);
    }
    cr_expect(last == 50);
}

CPU_TEST(program_resume, patience_ends_a_run_early)
{
    program_write_pairs();
    struct outcome o = run_well(TRAIN "--steps 1000 --threads 1 --evaluate-every 5 --patience 2 "
                                      "--learning-rate 0.5");
    const char *stopped = strstr(o.out, "stopped    at step ");
    cr_assert(stopped, "%s", o.out);
    cr_expect(strstr(stopped, ": 2 evaluations without a better one\n") != NULL, "%s", o.out);
    o = program_run(TRAIN "--threads 1 --resume");
    cr_expect(o.code == 1, "other settings: %s", o.out);
}

CPU_TEST(program_resume, a_terminal_shows_the_progress)
{
    program_write_pairs();
    struct outcome o = program_on_terminal(TRAIN "--steps 30 --threads 1");
    cr_assert(o.code == 0, "%s", o.out);
    cr_expect(strstr(o.out, "\r\033[Kstep 1/30  loss ") != NULL, "%s", o.out);
    cr_expect(strstr(o.out, " symbols/s  ") && strstr(o.out, " left"), "%s", o.out);
    cr_expect(strstr(o.out, "step 7  held-out loss ") != NULL, "%s", o.out);
    cr_expect(strstr(o.out, "best so far") != NULL, "%s", o.out);
    const char *end = strstr(o.out, "trained    30 steps");
    cr_expect(end && !strstr(end, "\033"), "%s", o.out);
}

/* ---- the same state in the library ---- */

/* The files of softback train have settings as they were given, and a hash of all texts. */
CPU_TEST(program_resume, the_library_continues_a_state_of_the_program)
{
    program_write_pairs();
    run_well("train --data pairs.tsv --valid pairs.tsv --width 16 --heads 2 --encoder-layers 1 "
             "--decoder-layers 1 --batch-pairs 4 --steps 6 --evaluate-every 3 --schedule constant "
             "--learning-rate 0.01 --warmup 2 --threads 1 --out m");
    sb_parameters *weights = KEPT(sb_parameters_new(9));
    sb_pairs *pairs = KEPT(sb_pairs_read(test_temporary("pairs.tsv"), NULL));
    sb_model model;
    MUST(sb_model_load(&model, NULL, weights, test_temporary("m.state")));
    const sb_seq2seq *its = model.self;
    const sb_trainer_options options = {
        .seed = 1,
        .optimiser = {.beta2 = 0.98, .clip = 1, .schedule = {.rate = 0.01, .warmup = 2}}};
    for (int batch = 4; batch <= 5; batch++) {
        const sb_data_options how = {.seed = 1, .batch_pairs = batch};
        sb_data *data =
            KEPT(sb_data_new(pairs, sb_seq2seq_source(its), sb_seq2seq_target(its), &how));
        const sb_source source = sb_data_as_source(data);
        sb_trainer *trainer = KEPT(sb_trainer_for(&model, &source, &options));
        cr_expect(sb_checkpoint_resume(trainer, test_temporary("m.state")) == (batch == 4), "%s",
                  sb_error());
        cr_expect(batch == 5 || sb_trainer_steps(trainer) == 6);
        sb_trained trained;
        cr_expect(batch == 5 || sb_trainer_step(trainer, &trained), "%s", sb_error());
    }
    EXPECT_ERROR("checkpoint: the data differ from those that its training was started with");
    sb_model_free(&model);
}

CPU_TEST(program_resume, info_shows_the_fingerprint_that_messages_show)
{
    program_write_pairs();
    run_well("train --data pairs.tsv --width 16 --heads 2 --encoder-layers 1 --decoder-layers 1 "
             "--steps 2 --threads 1 --out m");
    struct outcome o = run_well("train --data pairs.tsv --from m --steps 2 --threads 1 --out t");
    const char *from = strstr(o.out, "from       m, fingerprint ");
    char shown[64];
    cr_assert(from, "%s", o.out);
    snprintf(shown, sizeof shown, "%.28s", from + strlen("from       m, "));
    o = run_well("info m");
    expect_text(o.out, shown);
}
