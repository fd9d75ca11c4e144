/* The program where its surroundings are at fault: closed descriptors, full devices, text that a
   terminal would obey, signals, numbers that are 0. */
#include "tests/support/program.h"
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TINY                                                                                       \
    "--width 16 --heads 2 --encoder-layers 1 --decoder-layers 1 --batch-pairs 8 --threads 1 "
#define COPY "train --task copy --max-length 4 --evaluate-pairs 5 " TINY

/* ---- descriptors ---- */

/* Without the mechanism the log has descriptor 1, and what is printed goes into it. */
CPU_TEST(program_faults, closed_descriptors_spoil_no_file)
{
    struct outcome open = program_run(COPY "--steps 10 --out open.safetensors");
    cr_assert(open.code == 0, "%s", open.err);
    static const char *const closed[] = {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"};
    for (int i = 0; i < 4; i++) {
        struct outcome o = program_run(COPY "--steps 10 --out m%d.safetensors %s", i, closed[i]);
        char model[32], log[32];
        snprintf(model, sizeof model, "m%d.safetensors", i);
        snprintf(log, sizeof log, "m%d.jsonl", i);
        cr_expect(o.code == 0, "%s: exit code %d, %s", closed[i], o.code, o.err);
        cr_expect(program_same(model, "open.safetensors"), "%s: the model", closed[i]);
        cr_expect(program_same(log, "open.jsonl"), "%s: the log", closed[i]);
    }
}

CPU_TEST(program_faults, a_limit_of_sizes_is_an_error_that_leaves_no_part)
{
    struct outcome o =
        program_shell("ulimit -f 8; softback " COPY "--steps 10 --out m.safetensors");
    cr_expect(o.code == 1 && strstr(o.err, "File too large"), "exit code %d, %s", o.code, o.err);
    o = program_shell("ls");
    cr_expect(!strstr(o.out, "part"), "%s", o.out);
}

CPU_TEST(program_faults, a_full_device_is_an_error_of_every_command)
{
    struct outcome made = program_run(COPY "--steps 10 --out m.safetensors");
    cr_assert(made.code == 0, "%s", made.err);
    static const char *const commands[] = {
        "--help",
        "--version",
        "train --help",
        "translate --help",
        "evaluate --help",
        "attend --usage",
        "average --help",
        "report --help",
        "info --help",
        "explain --help",
        "gradcheck --help",
        "bench --help",
        COPY "--steps 10 --out full.safetensors",
        "translate m.safetensors '1 2'",
        "evaluate m.safetensors --task copy --count 5",
        "attend m.safetensors '1 2' --target '1 2'",
        "average m.safetensors m.safetensors --out a.safetensors",
        "report m.safetensors --input '1 2' --target '1 2'",
        "info m.safetensors",
        "explain softmax",
        "gradcheck detach"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct outcome o = program_run("%s >/dev/full", commands[i]);
        cr_expect(o.code == 1, "%s: exit code %d", commands[i], o.code);
        expect_text(o.err, "softback: the output cannot be written");
    }
}

/* ---- text from elsewhere ---- */

#define ESCAPE "\033]0;title\007\342\200\256"
#define PRINT_ESCAPE "\"$(printf 'a\\033]0;title\\007\\302\\233\\342\\200\\256')\""

static bool is_harmless(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' ? *at != '\n' && *at != '\t' : *at == 0x7f)
            return false;
    return !strstr(text, "\302\233") && !strstr(text, "\342\200\256");
}

CPU_TEST(program_faults, nothing_from_data_or_arguments_reaches_a_terminal_as_a_command)
{
    FILE *file = fopen(test_temporary("pairs.tsv"), "w");
    for (int i = 0; i < 40; i++)
        fprintf(file, "a" ESCAPE "%d\tb\033[2J%d\302\233\n", i, i);
    fprintf(file, "a line " ESCAPE " without a tab\n");
    fclose(file);
    static const char *const commands[] = {
        "train --data pairs.tsv --steps 10 --evaluate-pairs 5 --out m.safetensors " TINY,
        "evaluate m.safetensors --data pairs.tsv --show 10",
        "attend m.safetensors " PRINT_ESCAPE " --target " PRINT_ESCAPE,
        "attend m.safetensors " PRINT_ESCAPE " --numbers --target " PRINT_ESCAPE,
        "explain attention --model m.safetensors --input " PRINT_ESCAPE " --target " PRINT_ESCAPE,
        "info m.safetensors",
        "report m.safetensors --input " PRINT_ESCAPE " --target " PRINT_ESCAPE
        " --out " PRINT_ESCAPE ".html",
        "report m.safetensors --input " PRINT_ESCAPE " --target " PRINT_ESCAPE " --out page.html",
        "average m.safetensors m.safetensors --out " PRINT_ESCAPE,
        PRINT_ESCAPE,
        "train --steps=" PRINT_ESCAPE,
        "train --task " PRINT_ESCAPE,
        "train --" PRINT_ESCAPE,
        "train --data " PRINT_ESCAPE " --out x",
        "train " PRINT_ESCAPE,
        "translate no" PRINT_ESCAPE " x",
        "evaluate m.safetensors --data " PRINT_ESCAPE,
        "explain " PRINT_ESCAPE,
        "explain softmax --scores " PRINT_ESCAPE,
        "gradcheck " PRINT_ESCAPE,
        "bench " PRINT_ESCAPE,
        "info " PRINT_ESCAPE,
        "report m.safetensors --input a --log " PRINT_ESCAPE,
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct outcome o = program_run("%s", commands[i]);
        cr_expect(is_harmless(o.out), "%s: on standard output: %s", commands[i], o.out);
        cr_expect(is_harmless(o.err), "%s: on standard error: %s", commands[i], o.err);
    }
    char *page = program_read("page.html", NULL);
    cr_expect(page && is_harmless(page));
}

/* ---- numbers that are 0 ---- */

CPU_TEST(program_faults, a_zero_that_is_given_is_used)
{
    static const char *const given[] = {"--beta1=0", "--beta2=0", "--learning-rate=0"};
    struct outcome o = run_well(COPY "--steps 10 --out usual.safetensors");
    for (int i = 0; i < 3; i++) {
        char model[32];
        snprintf(model, sizeof model, "m%d.safetensors", i);
        o = program_run(COPY "--steps 10 %s --out %s", given[i], model);
        cr_assert(o.code == 0, "%s: %s", given[i], o.err);
        char *log = program_read("m2.jsonl", NULL);
        cr_expect(i < 2 || (log && strstr(log, "\"rate\":0.0,")), "the rate is not 0: %s", log);
        o = program_run(COPY "--steps 10 %s --out %s --resume", given[i], model);
        cr_expect(o.code == 0, "%s, resumed: %s", given[i], o.err);
        struct outcome was = program_run("info usual.safetensors | grep fingerprint");
        struct outcome is = program_run("info %s | grep fingerprint", model);
        cr_expect(strcmp(was.out, is.out) != 0, "%s makes no difference", given[i]);
    }
}

/* ---- signals ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A step of a million batches would take minutes. */
CPU_TEST(program_faults, a_signal_is_looked_at_after_each_batch)
{
    pid_t process = program_start(COPY "--steps 10 --accumulate 1000000 --out m.safetensors");
    while (access(test_temporary("m.jsonl"), F_OK) != 0)
        usleep(10000);
    usleep(300000); /* within the first step */
    const double start = seconds();
    kill(process, SIGTERM);
    struct outcome o = program_wait(process);
    cr_expect(seconds() - start < 20, "it ended after %g seconds", seconds() - start);
    cr_expect(o.code == 1, "exit code %d", o.code);
    expect_text(o.err, "Stopped after step 0; the same command with --resume continues.");
}

/* A model that was hardly trained writes until it may not write on. */
CPU_TEST(program_faults, an_output_that_is_cut_off_is_a_wrong_one)
{
    struct outcome o = run_well(COPY "--positions learned --positions-longest 5 --steps 10 "
                                     "--out m.safetensors");
    o = run_well("evaluate m.safetensors --task copy --count 20 --longest-output 30");
    expect_text(o.out, "exact match     0.00 %");
    run_well("report m.safetensors --input \"1 2\" --out r.html"); /* what it writes is drawn */
    static const char too_long[] = "1\t1 2 3 4 5 6 7 8\n";
    program_write("long.tsv", too_long, strlen(too_long));
    o = program_run("evaluate m.safetensors --data long.tsv");
    cr_expect(o.code == 1, "exit code %d", o.code);
    expect_text(o.err, "the loss could not be computed: embedding: position ");
}

/* All ranks see a mistake in the command line, and one says so. */
CPU_TEST(program_faults, of_many_ranks_the_first_alone_names_a_mistake)
{
    for (int rank = 0; rank < 2; rank++) {
        char number[4];
        snprintf(number, sizeof number, "%d", rank);
        setenv("OMPI_COMM_WORLD_RANK", number, 1);
        struct outcome misused = program_run("train"), wrong = program_run("train --steps=x");
        cr_expect(misused.code == 2 && wrong.code == 2);
        cr_expect((misused.err[0] != '\0') == (rank == 0), "rank %d: %s", rank, misused.err);
        cr_expect((wrong.err[0] != '\0') == (rank == 0), "rank %d: %s", rank, wrong.err);
    }
    unsetenv("OMPI_COMM_WORLD_RANK");
}

/* ---- lines ---- */

/* A model of bytes that has learned nothing, and so writes line ends, too. */
#define BYTES "--steps 1 --evaluate-every 1 --evaluate-pairs 2 --dropout 0 " TINY

static void expect_lines(struct outcome o, int lines)
{
    cr_expect(count_of(o.out, "\n") == lines && count_of(o.out, "\\n") > 0, "%d lines: %s",
              count_of(o.out, "\n"), o.out);
    for (const char *at = o.out; *at; at++)
        cr_assert((unsigned char)*at >= ' ' || *at == '\n' || *at == '\t', "byte %d", *at);
}

CPU_TEST(program_faults, translate_writes_a_line_for_each_text)
{
    program_write_pairs();
    run_well("train --data pairs.tsv --out m --source-units bytes --target-units bytes " BYTES);
    char text[800] = "", arguments[800] = "";
    for (int i = 0; i < 50; i++) {
        snprintf(text + strlen(text), 8, "%d\n", 10 + i);
        snprintf(arguments + strlen(arguments), 8, " %d", 10 + i);
    }
    write_text("lines", text);
    expect_lines(run_well("translate m --sample --temperature 3 <lines"), 50);
    expect_lines(run_well("translate m --sample --temperature 3%s", arguments), 50);
}

CPU_TEST(program_faults, generate_writes_a_line_for_each_text_of_a_model_of_lines)
{
#define GENERATE "--count 50 --length 60 --temperature 3 --threads 1"
#define LANGUAGE                                                                                   \
    "train --model language_model --units bytes --context 32 --steps 1 --evaluate-every 1 "        \
    "--width 16 --heads 2 --decoder-layers 1 --threads 1 "
    write_text("text", "one\ntwo\n\nthree\nfour\n\nfive\nsix\n");
    run_well(LANGUAGE "--data text --valid text --documents lines --out m");
    expect_lines(run_well("generate m " GENERATE), 50);
    expect_lines(run_well("generate m o --length 200 --temperature 3"), 1);
    run_well(LANGUAGE "--data text --valid text --documents paragraphs --out p");
    struct outcome o = run_well("generate p " GENERATE);
    cr_expect(count_of(o.out, "\n") > 100 && count_of(o.out, "--- 50 ---\n") == 1, "%s", o.out);
    sb_vocabulary *ids = KEPT(sb_vocabulary_new(&(const char *){"1 2 3"}, 1,
                                                &(sb_vocabulary_options){.units = SB_UNITS_IDS}));
    const sb_language_model_options small = {
        .transformer = {.width = 8, .heads = 1, .decoder_layers = 1}};
    sb_language_model *model = KEPT(sb_language_model_for(KEPT(sb_parameters_new(1)), ids, &small));
    MUST(sb_language_model_save(model, test_temporary("i")));
    o = run_well("generate i " GENERATE); /* of ids no text has a line end */
    cr_expect(count_of(o.out, "\n") == 50 && !strstr(o.out, "---"), "%s", o.out);
}

CPU_TEST(program_faults, classify_writes_a_line_for_each_text)
{
    run_well("train --model classifier --task pattern --steps 1 --evaluate-every 1 --width 16 "
             "--heads 2 --encoder-layers 1 --out m");
    struct outcome o = run_well("classify m \"$(printf 'a\\nb\\rc\\302\\205d\\033\\te')\" ab");
    cr_expect(count_of(o.out, "\n") == 2 && strstr(o.out, "\ta\\nb\\rc\\u0085d\\x1b\te\n"), "%s",
              o.out);
}
