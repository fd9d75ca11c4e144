#include "tests/support/program.h"
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TINY                                                                                       \
    "--width 16 --heads 2 --encoder-layers 1 --decoder-layers 1 --batch-pairs 8 --threads 1 "
#define REVERSE "train --task reverse --max-length 4 --evaluate-pairs 20 --out m.safetensors " TINY

static struct outcome expect_success(struct outcome o)
{
    cr_assert(o.code == 0, "exit code %d, \"%s\"", o.code, o.err);
    cr_assert(o.err[0] == '\0', "on standard error: \"%s\"", o.err);
    return o;
}

/* The same for a training run, which also shows its evaluations. */
static struct outcome expect_trained(struct outcome o)
{
    cr_assert(o.code == 0, "exit code %d, \"%s\"", o.code, o.err);
    cr_assert(program_evaluations(o.err) > 0, "on standard error: \"%s\"", o.err);
    return o;
}

/* A model for tests that need one. */
static void make_model(void)
{
    expect_trained(program_run(REVERSE "--steps 20"));
}

/* ---- help and misuse ---- */

#define BLANKS_29 "                             "

CPU_TEST(program, each_command_explains_itself)
{
    static const char *const commands[] = {"train",  "translate", "evaluate", "attend",
                                           "bench",  "average",   "info",     "explain",
                                           "report", "classify",  "generate", "gradcheck"};
    struct outcome all = expect_success(program_run("--help"));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct outcome o = program_run("%s --help", commands[i]);
        char usage[64];
        snprintf(usage, sizeof usage, "Usage: softback %s [OPTION...]", commands[i]);
        expect_success(o);
        expect_text(o.out, usage);
        expect_text(all.out, commands[i]);
        /* argp spoils some lines: those of 79 columns, and where its buffer ends */
        cr_expect(!strstr(o.out, "  \n") && !strstr(o.out, BLANKS_29 "      --"), "%s: %s",
                  commands[i], o.out);
    }
    struct outcome version = expect_success(program_run("--version"));
    char expected[64];
    snprintf(expected, sizeof expected, "softback %s\n", sb_version());
    cr_expect(strncmp(version.out, expected, strlen(expected)) == 0, "%s", version.out);
    EXPECT_TEXTS(version.out, "\ncpu     ", ", products by ", "\ncuda");
    cr_expect(program_run(" ").code == 2, "no command at all");
}

CPU_TEST(program, the_benchmark_has_rows_of_every_part)
{
    struct outcome o = expect_success(program_run("bench --quick --tabs"));
    EXPECT_TEXTS(o.out, "device\tcpu\t", "limit\tcopy\tmemory\t", "limit\tmultiply-adds\tf32\t",
                 "train\tquick\tf32\t", "decode\twith cache, t = 1\t", "operation\tsoftmax\tf32\t",
                 "operation\tadam\tf32\t", "\tf32, tiled\t", "\tf32, composed\t",
                 "product\tquick\tf32, built-in\t", "product\tquick\tf64, built-in\t");
    o = program_run("bench --quick decode");
    cr_expect(strstr(o.out, "decode ") && !strstr(o.out, "train "), "%s", o.out);
}

/* ---- training ---- */

static void expect_log(const char *file, int steps, int evaluations)
{
    char *text = program_read(file, NULL);
    int trained = 0, evaluated = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        cr_assert(json_is_object(json), "not JSON: %s", line);
        trained += json_object_get(json, "loss") != NULL;
        evaluated += json_object_get(json, "held_out_loss") &&
                     json_integer_value(json_object_get(json, "held_out_texts")) == 14;
        json_decref(json);
    }
    cr_expect(trained == steps && evaluated == evaluations, "%d and %d lines", trained, evaluated);
}

CPU_TEST(program, training_prints_its_data_and_writes_model_state_and_log)
{
    struct outcome o = expect_trained(program_run(REVERSE "--steps 30 --evaluate-every 15"));
    expect_text(o.out, "task       reverse; 20 pairs held out\n");
    expect_text(o.out, "source     words (cut at spaces), 10 symbols\n");
    expect_text(o.out, "model      1+1 layers, width 16, 2 heads, 8,430 parameters\n");
    expect_text(o.out, "training   30 steps of up to 8 pairs, evaluated every 15 steps\n");
    expect_text(o.out, "trained    30 steps in ");
    expect_text(o.out, "model      m.safetensors\n");
    expect_log("m.jsonl", 3, 2);
}

CPU_TEST(program, training_prints_what_it_read_from_files)
{
    char text[4000] = "";
    for (int i = 10; i < 90; i++)
        sprintf(text + strlen(text), "%d a\tb %d%s\n", i, i, i == 50 ? "\r" : "");
    write_text("pairs.tsv", text);
    struct outcome o =
        expect_trained(program_run("train --data pairs.tsv --out m --steps 2 " TINY));
    expect_text(o.out, "pairs.tsv  76 pairs; no --valid, so 4 held out\n");
    expect_text(o.out, "source     characters, 12 symbols, longest 4\n");
    write_text("valid.tsv",
               "10 a\tb 10\nx y\n99 a\tb 99\n12 a\t\n13 a\tb 13\n"
               "1\t2\n3\t4\n5\t6\n7\t8\n9\t10\n11\t12\n13\t14\n15\t16\n17\t18\n19\t20\n"
               "21\t22\n23\t24\n25\t26\n27\t28\n29\t30\n");
    o = expect_trained(
        program_run("train --data pairs.tsv --valid valid.tsv --out n --steps 2 " TINY));
    expect_text(o.out, "pairs.tsv  80 pairs; 18 of valid.tsv to evaluate on\n");
    expect_text(o.out, "skipped    2 malformed lines of valid.tsv\n");
    expect_text(o.out, "           valid.tsv:2: no tab between source and target\n");
    expect_text(o.out, "           valid.tsv:4: the target is empty\n");
    expect_text(o.out, "warning    2 pairs of valid.tsv have a source of the training data\n");
}

CPU_TEST(program, malformed_lines_are_named_and_skipped_up_to_one_in_ten)
{
    char text[8000] = "";
    for (int i = 0; i < 60; i++)
        sprintf(text + strlen(text), "a %d\tb %d\n", i, i);
    size_t sound = strlen(text);
    strcat(text, "no tab\none\ttwo\tthree\n\tempty\nbad \xff\tbyte\n");
    write_text("some.tsv", text);
    struct outcome o = expect_trained(program_run("train --data some.tsv --out m --steps 2 " TINY));
    expect_text(o.out, "skipped    4 malformed lines of some.tsv\n");
    expect_text(o.out, "some.tsv:61: no tab between source and target\n");
    expect_text(o.out, "some.tsv:62: 2 tabs, expected one between source and target\n");
    expect_text(o.out, "some.tsv:63: the source is empty\n");
    expect_text(o.out, "some.tsv:64: byte 5 (0xff) is not UTF-8\n");
    program_write("many.tsv", text + sound / 2, strlen(text) - sound / 2);
    o = program_run("train --data many.tsv --out n --steps 2 " TINY);
    cr_expect(o.code == 1);
    expect_text(o.err, "lines are malformed, more than one in ten; the first: many.tsv:");
}

CPU_TEST(program, a_line_that_is_too_long_is_named)
{
    char *text = calloc(80000, 1);
    memset(text, 'a', 70000);
    strcat(text, "\tb\n");
    for (int i = 0; i < 30; i++)
        sprintf(text + strlen(text), "a %d\tb %d\n", i, i);
    write_text("long.tsv", text);
    free(text);
    struct outcome o = expect_trained(program_run("train --data long.tsv --out m --steps 2 " TINY));
    expect_text(o.out, "long.tsv:1: 70002 bytes, expected at most 65536\n");
}

CPU_TEST(program, a_loss_that_is_not_finite_ends_training_and_saves_its_batch)
{
    struct outcome o =
        program_run(REVERSE "--steps 40 --optimiser sgd --learning-rate 1e6 --clip 0 "
                            "--schedule constant --warmup 0");
    cr_expect(o.code == 1);
    expect_text(o.err, "is not finite");
    expect_text(o.err, "Its batch is in m.safetensors.bad-batch.tsv.\n");
    char *batch = program_read("m.safetensors.bad-batch.tsv", NULL);
    cr_assert(batch && strchr(batch, '\t'), "%s", o.err);
}

CPU_TEST(program, the_number_of_threads_does_not_change_a_byte)
{
    expect_trained(program_run(REVERSE "--steps 20"));
    expect_trained(program_run(REVERSE "--steps 20 --out n.safetensors --threads 2"));
    cr_expect(program_same("m.safetensors", "n.safetensors"));
    cr_expect(program_same("m.state.safetensors", "n.state.safetensors"));
    cr_expect(program_same("m.jsonl", "n.jsonl"));
}

/* ---- using a model ---- */

CPU_TEST(program, each_line_of_standard_input_gets_one_line)
{
    make_model();
    write_text("in", "1 2 3\n4\n\n1 1\r\n9 8 7");
    struct outcome lines = expect_success(program_run("translate m.safetensors <in"));
    struct outcome arguments =
        expect_success(program_run("translate m.safetensors '1 2 3' 4 '' '1 1' '9 8 7'"));
    cr_expect_str_eq(lines.out, arguments.out);
    cr_expect_str_eq(program_run("translate m.safetensors --batch 2 --threads 2 <in").out,
                     lines.out);
    int count = 0;
    for (const char *at = lines.out; *at; at++)
        count += *at == '\n';
    cr_expect(count == 5);
    struct outcome int8 =
        expect_success(program_run("translate m.safetensors --weights int8 --batch 1 <in"));
    cr_expect_str_eq(program_run("translate m.safetensors --weights int8 --threads 2 <in").out,
                     int8.out);
    struct outcome one =
        expect_success(program_run("translate m.safetensors --sample --seed 3 --batch 1 <in"));
    cr_expect_str_eq(program_run("translate m.safetensors --sample --seed 3 <in").out, one.out);
}

CPU_TEST(program, a_line_that_cannot_be_translated_is_named_and_gets_an_empty_one)
{
    make_model();
    write_text("in", "1 2\nbad \xff\n3\n");
    write_text("good", "1 2\n3\n");
    char expected[600], two[300];
    struct outcome good = program_run("translate m.safetensors <good");
    snprintf(two, sizeof two, "%s", good.out);
    char *end = strchr(two, '\n');
    snprintf(expected, sizeof expected, "%.*s\n%s", (int)(end + 1 - two), two, end + 1);
    struct outcome o = program_run("translate m.safetensors <in");
    cr_expect(o.code == 1);
    cr_expect_str_eq(o.out, expected);
    expect_text(o.err, "softback translate: standard input:2: byte 5 (0xff) is not UTF-8\n");
}

CPU_TEST(program, unknown_symbols_are_named_and_do_not_stop_translation)
{
    make_model();
    write_text("in", "1 x 2 y\n");
    struct outcome o = program_run("translate m.safetensors <in");
    cr_expect(o.code == 0 && strchr(o.out, '\n'));
    expect_text(o.err, "standard input:1: \"x\" is unknown to the model, and 1 more\n");
    o = program_run("translate m.safetensors '1 z'");
    cr_expect(o.code == 0);
    expect_text(o.err, "\"1 z\": \"z\" is unknown to the model\n");
    write_text("pairs.tsv", "1 q\t1\n2\t3\n");
    expect_text(program_run("evaluate m.safetensors --data pairs.tsv").out,
                "unknown         1 pairs have source symbols outside the vocabulary");
}

CPU_TEST(program, evaluation_prints_a_text_or_json)
{
    make_model();
    struct outcome o =
        expect_success(program_run("evaluate m.safetensors --task reverse --count 30 --show 2"));
    EXPECT_TEXTS(o.out, "pairs           30, of ", "nats a symbol, perplexity ",
                 "outputs equal none of their references",
                 "\nBLEU            undefined, as no output has four words\n", "\nThe worst of ",
                 "    expected  ");
    run_well("train --task reverse --min-length 3 --max-length 6 --steps 150 --out long " TINY);
    o = expect_success(program_run("evaluate long --task reverse --count 30"));
    EXPECT_TEXTS(o.out, "\nBLEU            ", "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|");
    o = expect_success(program_run("evaluate m.safetensors --task reverse --count 30 --json"));
    json_t *json = json_loads(o.out, 0, NULL);
    cr_assert(json_is_object(json), "not JSON: %s", o.out);
    cr_expect(json_integer_value(json_object_get(json, "pairs")) == 30);
    static const char *const real[] = {
        "loss", "perplexity", "exact_match", "token_accuracy", "word_error_rate", "unit_error_rate",
        "bleu"};
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++)
        cr_expect(json_is_real(json_object_get(json, real[i])), "%s", real[i]);
    json_decref(json);
}

CPU_TEST(program, attention_is_drawn)
{
    make_model();
    struct outcome o = expect_success(program_run("attend m.safetensors '1 2 3' --target '3 2 1'"));
    expect_text(o.out, "1 2 3 -> 3 2 1\n\n      1 2 3\n    3 ");
    expect_text(o.out, "\n<end> ");
    expect_text(o.out, "Cross attention, layer 1 of 1, mean over 2 heads.\n");
    cr_expect(strstr(o.out, "░") || strstr(o.out, "▒") || strstr(o.out, "▓") || strstr(o.out, "█"));
    o = expect_success(
        program_run("attend m.safetensors '1 2' --target 2 --kind encoder --numbers --head 1"));
    double a, b, c, d;
    cr_assert(sscanf(o.out, "1 2 -> 2 1 2 1 %lf %lf 2 %lf %lf", &a, &b, &c, &d) == 4, "%s", o.out);
    cr_expect(fabs(a + b - 1) < 0.02 && fabs(c + d - 1) < 0.02, "rows do not sum to 1");
}

CPU_TEST(program, info_shows_what_is_in_a_file)
{
    make_model();
    struct outcome o = expect_success(program_run("info m.state.safetensors --devices"));
    EXPECT_TEXTS(o.out, "cpu     ", "model   trained on the task reverse\n",
                 "state   after step 20; --resume continues\n",
                 "parameters: 8,430 numbers of f32, fingerprint ",
                 "  output.weight                                        (14, 16)\n",
                 "  feed-forward       64\n", "  dropout            0.1\n");
}

CPU_TEST(program, models_are_averaged)
{
    make_model();
    struct outcome o =
        expect_success(program_run("average --out mean m.safetensors m.safetensors m.safetensors"));
    cr_expect_str_eq(o.out, "mean is the mean of 3 models\n");
    struct outcome mean = program_run("info mean"), one = program_run("info m.safetensors");
    cr_expect(strstr(one.out, "fingerprint ") && strcmp(mean.out, one.out) == 0,
              "the average of one model is that model: %s", mean.out);
}

CPU_TEST(program, gradients_are_checked_by_name)
{
    struct outcome o = expect_success(program_run("gradcheck softmax tanh argmax"));
    expect_text(o.out, "softmax                  cpu         8      ");
    expect_text(o.out, "argmax                   is not differentiable\n");
    expect_text(o.out, "2 operations checked, 0 failed, all in float64.");
    cr_expect(!strstr(o.out, "\nmatmul"));
    o = program_run("gradcheck gelu --second");
    expect_text(o.out, "  differences     symmetry\n");
}

CPU_TEST(program, the_gradient_of_a_whole_model_is_exact)
{
    make_model();
    struct outcome o =
        expect_success(program_run("gradcheck --model m.safetensors --task reverse --second"));
    expect_text(o.out, "batch            16 pairs\n");
    expect_text(o.out, " by dual numbers; at most 1e-10 passes\n");
    expect_text(o.out, "<u, H v> = <v, H u> to ");
    write_text("pairs.tsv", "1 2\t2 1\n");
    o = program_run("gradcheck --model m.safetensors --data pairs.tsv");
    expect_text(o.out, "batch            1 pair\n");
}

CPU_TEST(program, all_gradients_pass)
{
    too_slow(SANITIZED, "it checks all gradients, which operations do as well");
    struct outcome o = expect_success(program_run("gradcheck --second"));
    expect_text(o.out, " operations checked, 0 failed, all in float64.");
    expect_success(program_run("explain cast"));
}

/* Only line ends and tabs; no escapes of a terminal. */
static void expect_plain(struct outcome o)
{
    cr_assert(o.code == 0, "%s", o.err);
    const char *text[] = {o.out, o.err};
    for (int i = 0; i < 2; i++)
        for (const char *at = text[i]; *at; at++)
            cr_assert((unsigned char)*at >= ' ' || *at == '\n' || *at == '\t', "byte %d in: %s",
                      *at, text[i]);
}

CPU_TEST(program, in_a_pipe_there_are_no_control_characters)
{
    expect_plain(program_run(REVERSE "--steps 20 --evaluate-every 5"));
    expect_plain(program_run("translate m.safetensors '1 2'"));
    expect_plain(program_run("translate m.safetensors --task reverse --count 3"));
    expect_plain(program_run("evaluate m.safetensors --task reverse --count 9 --show 3"));
    expect_plain(program_run("evaluate m.safetensors --task reverse --count 9 --json"));
    expect_plain(program_run("attend m.safetensors '1 2'"));
    expect_plain(program_run("info m.safetensors --devices"));
    expect_plain(program_run("gradcheck tanh"));
    expect_plain(program_run("train --help"));
}

CPU_TEST(program, output_that_cannot_be_written_is_a_failure)
{
    make_model();
    struct outcome o = program_run("translate m.safetensors 1 >/dev/full");
    cr_expect(o.code == 1);
    expect_text(o.err, "softback: the output cannot be written: No space left on device");
}

/* How often a command opens the file of its model, which may be large. */

/* How often a file of the test's folder is opened while the command runs. The kernel joins equal
   events, so those between are read too. */
static int opens_of(const char *file, const char *command)
{
    struct inotify_event events[256]; /* without names */
    int opens = 0;
    const int watch = inotify_init1(IN_NONBLOCK);
    cr_assert(watch >= 0 &&
              inotify_add_watch(watch, test_temporary(file), IN_OPEN | IN_ACCESS | IN_CLOSE) >= 0);
    run_well("%s", command);
    const ssize_t size = read(watch, events, sizeof events);
    close(watch);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *events; i++)
        opens += (events[i].mask & IN_OPEN) != 0;
    return opens;
}

CPU_TEST(program_opens, a_command_reads_its_model_once)
{
    static const char *const kinds[] = {
        "train --task copy --encoder-layers 1 --decoder-layers 1",
        "train --model language_model --task dates --decoder-layers 1 --context 32",
        "train --model classifier --task pattern --encoder-layers 1"};
    static const char *const commands[] = {"attend m%d '3 1 4'", "report m%d --input '3 1 4'",
                                           "explain attention --model m%d --input '3 1 4'",
                                           "explain tape --model m%d --input '3 1 4'", "info m%d"};
    for (int kind = 0; kind < 3; kind++) {
        char model[8], command[96];
        snprintf(model, sizeof model, "m%d", kind);
        run_well("%s --width 16 --heads 2 --steps 2 --batch-pairs 8 --threads 1 --out %s",
                 kinds[kind], model);
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            snprintf(command, sizeof command, commands[i], kind);
            cr_expect(opens_of(model, command) == 1, "%s opens it %d times", command,
                      opens_of(model, command));
        }
    }
}

/* The progress of a training run. */

#define TRAIN                                                                                      \
    "train --task reverse --max-length 4 --width 16 --heads 2 --encoder-layers 1 "                 \
    "--decoder-layers 1 --batch-pairs 8 --threads 1 --out m "

CPU_TEST(program_progress, a_file_gets_one_plain_line_for_each_evaluation)
{
    struct outcome o = run_well(TRAIN "--steps 40 --evaluate-every 15 --evaluate-pairs 4");
    cr_expect(program_evaluations(o.err) == 3, "%s", o.err);
    cr_expect(!strchr(o.err, '\033') && !strchr(o.err, '\r'), "%s", o.err);
    cr_expect(strncmp(o.err, "step 15/40  loss ", 17) == 0, "%s", o.err);
    cr_expect(count_of(o.err, "\nstep 30/40  loss ") == 1, "%s", o.err);
    cr_expect(count_of(o.err, "\nstep 40/40  loss ") == 1, "%s", o.err);
    cr_expect(count_of(o.err, "  held-out loss ") == 3 && count_of(o.err, "  exact ") == 3, "%s",
              o.err);
    const char *first = strstr(o.err, " left  best so far\n");
    cr_expect(first && first < strstr(o.err, "step 30"), "the first is not the best: %s", o.err);
    const char *last = strstr(o.err, "step 40/40");
    cr_expect(last && strstr(last, "  0:00 left"), "%s", o.err);
    cr_expect(!strstr(o.out, " left"), "the progress is on standard output: %s", o.out);
}

CPU_TEST(program_progress, without_decoding_there_is_no_score)
{
    struct outcome o = run_well(TRAIN "--steps 4 --evaluate-every 2 --evaluate-pairs 0");
    cr_expect(program_evaluations(o.err) == 2 && !strstr(o.err, "exact"), "%s", o.err);
}

/* How many lines standard error has by now. */
static int lines_by_now(void)
{
    char *err = program_read("err", NULL);
    return err ? count_of(err, "\n") : 0;
}

CPU_TEST(program_progress, each_line_is_written_immediately)
{
    const struct timespec moment = {0, 2000000};
    pid_t process = program_start(TRAIN "--steps 1000000 --evaluate-every 5 --evaluate-pairs 4");
    int status;
    bool ended = false;
    for (int i = 0; i < 10000 && !ended && lines_by_now() < 2; i++) { /* 20 seconds */
        nanosleep(&moment, NULL);
        ended = waitpid(process, &status, WNOHANG) == process;
    }
    const int lines = lines_by_now();
    cr_assert(!ended, "%s", program_read("err", NULL));
    kill(process, SIGTERM);
    struct outcome o = program_wait(process);
    cr_expect(lines >= 2, "%d lines while it ran: %s", lines, o.err);
    cr_expect(strncmp(o.err, "step 5/1,000,000  loss ", 23) == 0, "%s", o.err);
    char *stopped = strstr(o.err, "Stopped after step ");
    cr_assert(stopped, "%s", o.err);
    *stopped = '\0';
    cr_expect(program_evaluations(o.err) >= lines, "%s", o.err);
}

CPU_TEST(program_progress, a_terminal_shows_the_loss_as_a_sparkline)
{
    struct outcome o = program_on_terminal(
        TRAIN "--steps %d --evaluate-every 4000 --evaluate-pairs 4", test_brief() ? 1000 : 4000);
    cr_assert(o.code == 0, "%s", o.out);
    const char *high = strstr(o.out, "\u2588"), *low = strstr(o.out, "\u2581");
    cr_expect(high && low && strstr(high, " symbols/s"), "%s", o.out);
    o = program_run(TRAIN "--steps 20 --evaluate-every 10 --evaluate-pairs 4 --out n");
    cr_expect(!strstr(o.err, "\u2588"), "%s", o.err);
}

CPU_TEST(program_progress, colour_is_for_terminals_without_no_color)
{
    run_well(TRAIN "--steps 20");
    const char *const draws = "attend m '1 2 3' --target '3 2 1'";
    cr_expect(strstr(program_on_terminal("%s", draws).out, "\033[38;5;"));
    cr_expect(!strchr(program_run("%s", draws).out, '\033'));
    setenv("NO_COLOR", "1", 1);
    cr_expect(!strchr(program_on_terminal("%s", draws).out, '\033'));
    cr_expect(!strchr(program_on_terminal("explain softmax").out, '\033'));
    unsetenv("NO_COLOR");
    cr_expect(strchr(program_on_terminal("explain softmax").out, '\033'));
    setenv("CLICOLOR_FORCE", "1", 1);
    cr_expect(strstr(program_run("%s", draws).out, "\033[38;5;"));
    unsetenv("CLICOLOR_FORCE");
}

/* SOFTBACK_KERNELS: the program with plain kernels. */

/* The loss of each step in a log; returns how many. */
static int losses(const char *file, double loss[], int most)
{
    char *text = program_read(file, NULL);
    int n = 0;
    for (char *line = strtok(text, "\n"); line && n < most; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        if (json_object_get(json, "loss"))
            loss[n++] = json_number_value(json_object_get(json, "loss"));
        json_decref(json);
    }
    return n;
}

static int train_copy(const char *run, double loss[], int most)
{
    struct outcome o = program_run("train --task copy --max-length 4 --width 16 --heads 2 "
                                   "--encoder-layers 1 --decoder-layers 1 --batch-pairs 8 "
                                   "--steps 30 --threads 1 --out %s.safetensors --log %s.jsonl",
                                   run, run);
    char log[32];
    cr_assert(o.code == 0, "%s", o.err);
    snprintf(log, sizeof log, "%s.jsonl", run);
    return losses(log, loss, most);
}

/* In float32, where rounding errors of a step carry over to the next. */
CPU_TEST(program_kernels, plain_kernels_train_copy_to_the_same_loss)
{
    double fast[64], plain[64];
    const int n = train_copy("fast", fast, 64);
    setenv("SOFTBACK_KERNELS", "plain", 1);
    cr_assert(n > 0 && train_copy("plain", plain, 64) == n, "%d losses", n);
    unsetenv("SOFTBACK_KERNELS");
    cr_expect(fast[n - 1] < fast[0], "it does not learn");
    for (int i = 0; i < n; i++)
        cr_expect(fabs(fast[i] - plain[i]) <= 1e-4 * fast[i], "loss %d: %.9g and %.9g", i, fast[i],
                  plain[i]);
}

CPU_TEST(program_kernels, the_environment_chooses_kernels_by_name)
{
    setenv("SOFTBACK_KERNELS", "plain", 1);
    struct outcome o = program_run("info --devices");
    cr_expect(o.code == 0 && strstr(o.out, "plain kernels"), "%s%s", o.out, o.err);
    setenv("SOFTBACK_KERNELS", "plian", 1);
    o = program_run("gradcheck softmax");
    cr_expect(o.code == 1 && strstr(o.out, "SOFTBACK_KERNELS is \"plian\"; here it may be plain"),
              "%s%s", o.out, o.err);
    unsetenv("SOFTBACK_KERNELS");
}

/* The batch lies on the device. */
TEST(program_kernels, a_device_run_saves_the_batch_whose_loss_is_not_finite, WHOLE_MODELS)
{
    static const char *const kinds[] = {"seq2seq --task copy --encoder-layers 1 --decoder-layers 1",
                                        "language_model --task copy --decoder-layers 1",
                                        "classifier --task pattern --encoder-layers 1"};
    device_needed();
    for (int i = 0; i < 3; i++) {
        struct outcome o = program_run(
            "train --model %s --width 8 --heads 2 --batch-pairs 4 --steps 40 --optimiser sgd "
            "--learning-rate 1e6 --clip 0 --schedule constant --warmup 0 --device cuda --out m%d",
            kinds[i], i);
        cr_expect(o.code == 1 && strstr(o.err, "Its batch is in m"), "%s: %s", kinds[i], o.err);
    }
}

/* The emulated device shows two, of which one is chosen by its number. */
TEST(program_kernels, the_device_is_chosen_by_its_number, device_needed())
{
    if (strcmp(getenv("SOFTBACK_CUDA"), "emulated") != 0)
        cr_skip_test("a machine may have one device only");
    setenv("SOFTBACK_EMULATOR_DEVICES", "2", 1);
    struct outcome o = program_run("gradcheck softmax --device cuda:1");
    cr_expect(o.code == 0 && strstr(o.out, "cuda"), "%s%s", o.out, o.err);
    o = program_run("gradcheck softmax --device cuda:2");
    cr_expect(o.code == 1 && strstr(o.err, "cuda: there is no device 2; the driver shows 2, from 0 "
                                           "to 1"),
              "%s%s", o.out, o.err);
    o = program_run("info --devices");
    cr_expect(o.code == 0 && strstr(o.out, ", device 0 of 0 to 1"), "%s%s", o.out, o.err);
    unsetenv("SOFTBACK_EMULATOR_DEVICES");
}
