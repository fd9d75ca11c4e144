/* The files that commands read and write: no output overwrites an input, another output, or a file
   that is not of softback. */
#include "tests/support/program.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TINY                                                                                       \
    "--width 8 --heads 2 --encoder-layers 1 --decoder-layers 1 --evaluate-pairs 4 --threads 1 "
#define TRAIN "train --task copy --steps 4 " TINY

static void write_text(const char *file, const char *text)
{
    program_write(file, text, strlen(text));
}

static void expect_text(const char *file, const char *text)
{
    char *now = program_read(file, NULL);
    cr_expect(now && strcmp(now, text) == 0, "%s holds %.60s", file, now ? now : "nothing");
    free(now);
}

static void expect_nothing(const char *file)
{
    struct stat about;
    cr_expect(lstat(test_temporary(file), &about) != 0, "%s exists", file);
}

static void link_to(const char *target, const char *file)
{
    cr_assert(symlink(target, test_temporary(file)) == 0);
}

static void hard_link(const char *from, const char *to)
{
    char path[256];
    snprintf(path, sizeof path, "%s", test_temporary(from));
    cr_assert(link(path, test_temporary(to)) == 0);
}

static void make_model(void)
{
    struct outcome o = program_run(TRAIN "--out model");
    cr_assert(o.code == 0, "%s", o.err);
    program_copy("model", "kept");
}

/* Arguments, and the message that refuses them. */
struct refusal {
    const char *arguments, *message;
};

static void expect_refusals(const char *command, const struct refusal *refusals)
{
    for (const struct refusal *r = refusals; r->arguments; r++) {
        struct outcome o = program_run("%s%s", command, r->arguments);
        cr_expect(o.code == 1 && o.out[0] == '\0', "%s: exit code %d: %s", r->arguments, o.code,
                  o.out);
        cr_expect(strstr(o.err, r->message) != NULL, "%s: %s", r->arguments, o.err);
    }
}

CPU_TEST(program_paths, a_report_does_not_replace_another_file)
{
    static const struct refusal refusals[] = {
        {"--out model", "MODEL \"model\" and --out \"model\" are the same"},
        {"--out ./model", "MODEL \"model\" and --out \"./model\" are the same"},
        {"--out .//model/", "MODEL \"model\" and --out \".//model/\" are the same"},
        {"--out soft", "MODEL \"model\" and --out \"soft\" are the same"},
        {"--out hard", "MODEL \"model\" and --out \"hard\" are the same"},
        {"--out model.jsonl", "--log (by default) \"model.jsonl\" and --out \"model.jsonl\""},
        {"--log x.html --out x.html", "--log \"x.html\" and --out \"x.html\" are the same"},
        {"--out data.tsv", "--out \"data.tsv\": it is not a report of softback"},
        {"--out model.state", "--out \"model.state\": it is not a report of softback"},
        {"--out nothing/x", "--out \"nothing/x\": its folder does not exist; create it"},
        {"--out folder", "--out \"folder\": it is a folder; name a file in it"},
        {"--out new/", "--out \"new/\": it is a folder"},
        {"--out data.tsv/x", "--out \"data.tsv/x\": Not a directory"},
        {"--out loop", "--out \"loop\": Too many levels of symbolic links"},
        {"--out /dev/null", "--out \"/dev/null\": it is a device or pipe"},
        {"--out /proc/softback", "--out: cannot make \"/proc/softback.softback-part\""},
        {"--out ''", "--out \"\": the name is empty; name a file"},
        {"--figure loss --out data.tsv", "\"data.tsv\": it is not a figure of softback"},
        {"--figure loss --out page", "\"page\": it is not a figure of softback"},
        {NULL, NULL},
    };
    make_model();
    write_text("data.tsv", "1\t2\n");
    cr_assert(mkdir(test_temporary("folder"), 0777) == 0);
    link_to("model", "soft");
    link_to("loop", "loop");
    hard_link("model", "hard");
    cr_assert(program_run("report model --input '1 2' --out page").code == 0);
    expect_refusals("report model --input '1 2' ", refusals);
    cr_expect(program_same("model", "kept"), "the model was overwritten");
    expect_text("data.tsv", "1\t2\n");
    expect_nothing("model.html");
    program_copy("model", "m.html");
    struct outcome o = program_run("report m.html --input 1");
    cr_expect(strstr(o.err, "and --out (by default) \"m.html\" are the same"), "%s", o.err);
    cr_expect(program_same("m.html", "kept"));
}

CPU_TEST(program_paths, a_report_and_a_figure_replace_files_of_their_kind_and_empty_ones)
{
    make_model();
    write_text("empty", "");
    cr_expect(program_run("report model --input '1 2' --out empty").code == 0);
    struct outcome o = program_run("report model --input '3' --out empty");
    cr_expect(o.code == 0, "%s", o.err);
    char *page = program_read("empty", NULL);
    static const char begins[] = "<!DOCTYPE html>\n<!-- softback report -->\n<html";
    cr_expect(page && strncmp(page, begins, sizeof begins - 1) == 0, "%.80s", page);
    free(page);
    for (int i = 0; i < 2; i++) {
        o = program_run("report model --input '3 1' --figure attention --out a.svg");
        cr_expect(o.code == 0, "%s", o.err);
    }
    o = program_run("report model --input '3 1' --figure attention >b.svg");
    cr_expect(program_same("a.svg", "b.svg"));
    o = program_run("report model --input '3 1' --out a.svg");
    cr_expect(o.code == 1 && strstr(o.err, "it is not a report of softback"), "%s", o.err);
}

CPU_TEST(program_paths, training_refuses_two_uses_of_one_file_before_it_writes)
{
    static const struct refusal refusals[] = {
        {"--out w --report w", "--out \"w\" and --report \"w\" are the same file; give"},
        {"--out w --report ./w", "--out \"w\" and --report \"./w\" are the same"},
        {"--out w --log w", "--out \"w\" and --log \"w\" are the same"},
        {"--out d.jsonl", "--out \"d.jsonl\" and --log (by default) \"d.jsonl\" are the same"},
        {"--out w --log w.state", "the state of --out \"w.state\" and --log \"w.state\" are"},
        {"--out w --report w.state", "the state of --out \"w.state\" and --report \"w.state\""},
        {"--out w --report w.jsonl", "--log (by default) \"w.jsonl\" and --report \"w.jsonl\""},
        {"--out w --log w.bad-batch.tsv", "\"w.bad-batch.tsv\" are the same"},
        {"--out w --log w.softback-part",
         "the temporary file of --out \"w.softback-part\" and --log \"w.softback-part\" are"},
        {"--out w --keep 1 --log w.step-2", "--log \"w.step-2\" and --keep \"w.step-2\" are"},
        {"--out w --keep 1 --report to-step", "--report \"to-step\" and --keep \"w.step-4\" are"},
        {"--out w --keep 1 --log w.step-2.softback-part",
         "\"w.step-2.softback-part\" and the temporary file of --keep \"w.step-2.softback-part\""},
        {"--out w --log new --report to-new", "--log \"new\" and --report \"to-new\" are the same"},
        {"--out w --log folder/x --report to-folder/x", "--report \"to-folder/x\" are the same"},
        {"--out w --report nothing/x", "--report \"nothing/x\": its folder does not exist"},
        {"--out w --report folder", "--report \"folder\": it is a folder"},
        {"--out w --report /dev/null", "--report \"/dev/null\": it is a device or pipe"},
        {"--out w --report /proc/x", "--report: cannot make \"/proc/x.softback-part\""},
        {"--out w --log /proc/x/y", "--log \"/proc/x/y\": its folder does not exist"},
        {"--out folder", "--out \"folder\": it is a folder"},
        {"--out w --report other", "--report \"other\": it is not a report"},
        {"--out w --log other", "--log \"other\": it is not a log of softback"},
        {NULL, NULL},
    };
    cr_assert(mkdir(test_temporary("folder"), 0777) == 0);
    link_to("new", "to-new");
    link_to("folder", "to-folder");
    link_to("w.step-4", "to-step");
    write_text("other", "{\"a\": 1}");
    expect_refusals(TRAIN, refusals);
    expect_text("other", "{\"a\": 1}");
    static const char *const outputs[] = {"w", "w.state", "w.jsonl", "w.softback-part", "new"};
    for (int i = 0; i < 5; i++)
        expect_nothing(outputs[i]);
}

CPU_TEST(program_paths, training_does_not_overwrite_its_inputs)
{
    static const struct refusal refusals[] = {
        {"--data pairs --out pairs", "--out \"pairs\" and --data \"pairs\" are the same"},
        {"--data pairs --out w --log pairs", "--log \"pairs\" and --data \"pairs\" are the same"},
        {"--data pairs --out w --log hard", "--log \"hard\" and --data \"pairs\" are the same"},
        {"--data soft --out w --report hard", "--report \"hard\" and --data \"soft\" are the same"},
        {"--data pairs --valid valid --out w --log valid", "and --valid \"valid\" are the same"},
        {"--source-file pairs --target-file valid --out w --log ./pairs",
         "--log \"./pairs\" and --source-file \"pairs\" are the same"},
        {"--source-file pairs --target-file valid --out w --report valid",
         "--report \"valid\" and --target-file \"valid\" are the same"},
        {NULL, NULL},
    };
    static const char pairs[] = "{\"step\":1}\t2\n"; /* its content looks like a log */
    write_text("pairs", pairs);
    write_text("valid", "3\t4\n");
    link_to("pairs", "soft");
    hard_link("pairs", "hard");
    expect_refusals("train --steps 4 " TINY, refusals);
    expect_refusals("train --resume --steps 4 " TINY, refusals);
    expect_text("pairs", pairs);
    expect_text("valid", "3\t4\n");
    expect_nothing("w.state");
}

CPU_TEST(program_paths, a_log_overwrites_only_a_log)
{
    static const char *const others[] = {
        "{\n \"a\": 1}\n", "{\"a\": 1}",         "{",         "{\"step\":10}\n",
        "{\"step\":10",    "{\"softback\":1}\n", "\n{\"a\"}", "{\"softback\":\"log",
    };
    for (int i = 0; i < 8; i++) {
        write_text("other", others[i]);
        struct outcome o = program_run(TRAIN "--out m%d --log other", i);
        const bool is_log = i == 7; /* its first line is truncated */
        cr_expect(o.code == !is_log, "%s: %s", others[i], o.err);
        if (!is_log)
            expect_text("other", others[i]);
    }
    struct outcome o = program_run(TRAIN "--out n");
    cr_assert(o.code == 0, "%s", o.err);
    char *log = program_read("n.jsonl", NULL);
    static const char begins[] = "{\"softback\":\"log\",\"format\":2}\n{\"step\":4,";
    cr_expect(log && strncmp(log, begins, sizeof begins - 1) == 0, "%s", log);
    free(log);
    o = program_run(TRAIN "--out p --log n.jsonl");
    cr_expect(o.code == 0, "another run does not replace it: %s", o.err);
}

CPU_TEST(program_paths, a_log_may_be_a_device_or_a_pipe)
{
    struct outcome o = program_run(TRAIN "--out a --log /dev/null");
    cr_expect(o.code == 0, "%s", o.err);
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
    free(log);
}

CPU_TEST(program_paths, an_average_does_not_replace_a_file)
{
    static const struct refusal refusals[] = {
        {"--out model model model", "--out \"model\" and MODEL \"model\" are the same"},
        {"--out soft kept model", "--out \"soft\" and MODEL \"model\" are the same"},
        {"--out other model",
         "--out \"other\": it exists already; move it away or name another file"},
        {"--out nothing/x model", "--out \"nothing/x\": its folder does not exist"},
        {NULL, NULL},
    };
    make_model();
    write_text("other", "text");
    link_to("model", "soft");
    expect_refusals("average ", refusals);
    expect_text("other", "text");
    cr_expect(program_same("model", "kept"));
    struct outcome o = program_run("average --out mean model model kept");
    cr_expect(o.code == 0, "one file given twice is refused: %s", o.err);
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
