/* The program on several ranks, started by mpirun on one machine. tests/tensor/test_parallel.c
   tests what ranks compute; here they are processes, which communicate by MPI and may die. */
#include "autograd/watch.h"
#include "tensor/clock.h"
#include "tests/support/program.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAIN                                                                                      \
    "train --data pairs.tsv --width 16 --heads 2 --encoder-layers 1 --decoder-layers 1 "           \
    "--batch-pairs 5 --average 0.9 --schedule plateau --learning-rate 0.01 --warmup 5 "            \
    "--plateau-patience 1 --evaluate-pairs 4 --evaluate-every 7 --dropout 0.1 --threads 1 --out "  \
    "m "

static char mpirun[512];

/* The command that starts this number of ranks, with these options. */
static const char *ranks(int count, const char *options)
{
    snprintf(mpirun, sizeof mpirun, "mpirun --oversubscribe --bind-to none %s -n %d", options,
             count);
    return mpirun;
}

static void write_pairs(const char *file, int from)
{
    char text[4000] = "";
    for (int i = from; i < 70; i++)
        sprintf(text + strlen(text), "%d\t%d\n", i, i % 10 * 10 + i / 10);
    program_write(file, text, strlen(text));
}

/* The path of a file in the program's folder; static storage. */
static const char *in_program_folder(const char *file)
{
    static char path[1024];
    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(TEST_PROGRAM, '/') - TEST_PROGRAM),
             TEST_PROGRAM, file);
    return path;
}

/* Whether there is the plug-in, and the mpirun of Open MPI, whose options the tests use. */
static bool has_mpi(void)
{
    return access(in_program_folder("libsoftback_mpi.so"), R_OK) == 0 &&
           system("mpirun --version 2>&1 | grep -q 'Open MPI'") == 0;
}

/* MPI does not free all memory; the address sanitizer must ignore that. */
static void ignore_leaks_of_mpi(void)
{
    char options[512];
    const char *given = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof options, "%s:detect_leaks=0", given ? given : "");
    setenv("ASAN_OPTIONS", options, 1);
}

static void begin(void)
{
    test_begin_on_the_cpu();
    too_slow(SANITIZED, "it starts processes that train; parallel/* has ranks in one");
    if (!has_mpi())
        cr_skip_test("no Open MPI");
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* as CI does */
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("HWLOC_HIDE_ERRORS", "2", 1); /* on a system without /sys, */
    setenv("OMPI_MCA_btl", "^tcp", 1);   /* on a system whose network interfaces cannot be paired */
    setenv("OMP_NUM_THREADS", "1", 1);
    ignore_leaks_of_mpi();
    write_pairs("pairs.tsv", 10);
}

/* TRAIN without the sizes of the model. */
#define TUNE                                                                                       \
    "train --data pairs.tsv --batch-pairs 5 --average 0.9 --schedule plateau --learning-rate "     \
    "0.01 "                                                                                        \
    "--warmup 5 --plateau-patience 1 --evaluate-pairs 4 --evaluate-every 7 --threads 1 --out m "

#define MPI_TEST(name) TEST_AFTER(begin, mpi, name)

/* ---- results ---- */

/* Runs this number of workers; returns whether all succeeded. Their output goes to the files out
   and err. */
static bool run_workers(int count, const char *job)
{
    char command[4096];
    snprintf(command, sizeof command, "cd '%s' && timeout 60 %s '%s' %s >out 2>err",
             test_temporary(""), ranks(count, ""), in_program_folder("softback-parallel-worker"),
             job);
    return system(command) == 0;
}

static void expect_worker(int count, const char *job)
{
    const bool ok = run_workers(count, job);
    char *out = program_read("out", NULL), *err = program_read("err", NULL);
    cr_expect(ok && strcmp(out, "passed\n") == 0, "%d ranks: %s%s", count, out, err);
}

MPI_TEST(ranks_sum_exchange_and_train_like_one_rank)
{
    for (int count = 2; count <= (test_long() ? 4 : 3); count++)
        expect_worker(count, "train");
}

/* Reads the loss of each tenth step from the log; returns their number. */
static int read_losses(const char *log, double loss[], int most)
{
    char *text = program_read(log, NULL);
    int n = 0;
    for (const char *at = text; at && n < most && (at = strstr(at, "\"loss\":")); at++)
        loss[n++] = atof(at + 7);
    return n;
}

MPI_TEST(ranks_on_two_networks_reach_each_other_by_tcp)
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' '%s' train >'%s' 2>&1", test_path("mpi_namespaces.sh"),
             in_program_folder("softback-parallel-worker"), test_temporary("out"));
    const int status = system(command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        cr_skip_test("no permission to make network namespaces");
    char *out = program_read("out", NULL);
    const char *bytes = strstr(out, "passed\n");
    cr_expect(status == 0 && bytes && atoll(bytes + 7) > 2000000, "%s", out); /* 300,007 numbers */
}

/* On the emulated device, whose numbers travel through host memory: gradients, activations with
   tensor parallelism, and keys, values and their gradients with sequence parallelism. */
MPI_TEST(ranks_of_a_device_train_like_ranks_of_the_cpu)
{
    static const char *const split[] = {"heads=1", "heads=2", "sequence=2"};
    if (access(in_program_folder("libsoftback_cuda_emulated.so"), R_OK) != 0)
        cr_skip_test("no emulated device");
    double cpu[1] = {0}, cuda[1] = {0};
    setenv("SOFTBACK_CUDA", "emulated", 1);
    program_launcher(ranks(2, ""));
    struct outcome o = run_well(TRAIN "--dropout 0 --steps 10 --log cpu.jsonl");
    for (int i = 0; i < 3; i++) {
        cr_assert(remove(test_temporary("m")) == 0 && remove(test_temporary("m.state")) == 0);
        o = program_run(TRAIN "--dropout 0 --steps 10 --log cuda.jsonl --device cuda --split %s",
                        split[i]);
        cr_assert(o.code == 0 && strstr(o.out, "device     "), "%s%s", o.out, o.err);
        cr_assert(read_losses("cpu.jsonl", cpu, 1) == 1 && read_losses("cuda.jsonl", cuda, 1) == 1);
        cr_expect(fabs(cpu[0] - cuda[0]) < 1e-4 * cpu[0], "%s: %g and %g", split[i], cpu[0],
                  cuda[0]);
        cr_assert(remove(test_temporary("cuda.jsonl")) == 0);
    }
}

MPI_TEST(a_run_on_two_ranks_follows_a_run_on_one)
{
    double one[4], two[4];
    program_launcher("");
    run_well(TRAIN "--dropout 0 --steps 40 --log one.jsonl");
    cr_assert(rename(test_temporary("m"), test_temporary("one")) == 0 &&
              rename(test_temporary("m.state"), test_temporary("one.state")) == 0);
    program_launcher(ranks(2, ""));
    run_well(TRAIN "--dropout 0 --steps 40 --log two.jsonl");
    cr_assert(read_losses("one.jsonl", one, 4) == 4 && read_losses("two.jsonl", two, 4) == 4);
    for (int i = 0; i < 4; i++)
        cr_expect(fabs(one[i] - two[i]) < 1e-3 * one[i], "step %d: %g and %g", 10 * i, one[i],
                  two[i]);
}

static int count_files(void)
{
    DIR *folder = opendir(test_temporary(""));
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

MPI_TEST(only_rank_0_writes_and_prints)
{
    program_launcher(ranks(3, ""));
    struct outcome o = run_well(TRAIN "--steps 15");
    cr_expect(program_evaluations(o.err) == 3, "%s", o.err);
    cr_expect(count_of(o.out, "ranks      3, of 1 thread each") == 1, "%s", o.out);
    cr_expect(count_of(o.out, "ranks      3, which spent ") == 1, "%s", o.out);
    cr_expect(count_of(o.out, "\nsent       ") == 1 && !strstr(o.out, "\nsent       0"), "%s",
              o.out);
    cr_expect(count_of(o.out, "trained ") == 1, "%s", o.out);
    cr_expect(count_files() == 6, "%d files besides pairs.tsv, out, err, m, m.state, m.jsonl",
              count_files() - 6);
}

/* The bytes that rank 0 sends in each split, measured and by the formula. */
MPI_TEST(the_table_of_bytes_in_teach_is_measured)
{
    char command[4096];
    snprintf(command, sizeof command, "cp '%s/../teach/ranks.md' '%s'", TEST_FOLDER,
             test_temporary("page"));
    cr_assert(system(command) == 0);
    snprintf(command, sizeof command, "SOFTBACK='%s' '%s/../teach/ranks.sh' >'%s' 2>'%s'",
             TEST_PROGRAM, TEST_FOLDER, test_temporary("table"), test_temporary("err"));
    const int code = system(command);
    char *page = program_read("page", NULL), *table = program_read("table", NULL);
    char *err = program_read("err", NULL);
    cr_expect(code == 0 && count_of(table, "\n") > 9 && strstr(page, table), "%s%s", table, err);
}

/* ---- resuming ---- */

/* Waits until the log has so many lines of steps. */
static void wait_for_steps(int lines)
{
    double loss[64];
    for (double end = clock_seconds() + 60; read_losses("m.jsonl", loss, 64) < lines;
         pause_for(0.01))
        cr_assert(clock_seconds() < end, "no step: %s", program_read("err", NULL));
}

MPI_TEST(a_run_that_mpirun_ends_resumes_with_the_same_bytes)
{
    program_launcher(ranks(2, ""));
    struct outcome o = run_well(TRAIN "--steps 300");
    rename_run("whole-");
    pid_t process = program_start(TRAIN "--steps 300");
    wait_for_steps(3);
    const double began = clock_seconds();
    kill(process, SIGTERM);
    o = program_wait(process);
    cr_expect(o.code != 0 && clock_seconds() - began < 30, "code %d after %g s", o.code,
              clock_seconds() - began);
    o = program_run(TRAIN "--steps 300 --resume");
    cr_assert(o.code == 0 && strstr(o.out, "resumed    after step "), "%s%s", o.out, o.err);
    cr_expect(program_same("m", "whole-m") && program_same("m.state", "whole-m.state") &&
              program_same("m.jsonl", "whole-m.jsonl"));
}

MPI_TEST(a_run_resumes_with_any_number_of_ranks)
{
    static const int counts[] = {2, 1, 3};
    double whole[6], parts[6];
    program_launcher("");
    run_well(TRAIN "--steps 63 --evaluate-every 21 --dropout 0");
    rename_run("whole-");
    for (int i = 0; i < 3; i++) {
        program_launcher(ranks(counts[i], ""));
        struct outcome o =
            program_run(TRAIN "--dropout 0 --evaluate-every 21 --steps %d --resume", 21 * (i + 1));
        cr_assert(o.code == 0, "%s", o.err);
    }
    cr_assert(read_losses("whole-m.jsonl", whole, 6) == 6 && read_losses("m.jsonl", parts, 6) == 6);
    for (int i = 0; i < 6; i++)
        cr_expect(fabs(whole[i] - parts[i]) < 1e-3 * whole[i], "step %d: %g and %g", 10 * i,
                  whole[i], parts[i]);
}

/* Each rank holds half of the heads; the files hold all of them, like those of one rank. */
MPI_TEST(a_run_with_tensor_parallelism_resumes_with_the_same_bytes_and_on_one_rank)
{
    static char launcher[600]; /* with different calls the ranks would wait forever */
    snprintf(launcher, sizeof launcher, "timeout 60 %s", ranks(2, ""));
    program_launcher(launcher);
    struct outcome o = program_run(TRAIN "--split heads=2 --steps 42");
    cr_assert(o.code == 0 && program_evaluations(o.err) == 6, "%s", o.err);
    rename_run("whole-");
    run_well(TRAIN "--split heads=2 --steps 21");
    o = program_run(TRAIN "--split heads=2 --steps 42 --resume");
    cr_assert(o.code == 0 && strstr(o.out, "resumed    after step 21"), "%s%s", o.out, o.err);
    cr_expect(program_same("m.state", "whole-m.state") && program_same("m.jsonl", "whole-m.jsonl"));
    program_launcher("");
    o = program_run(TRAIN "--steps 49 --resume");
    cr_expect(o.code == 0 && strstr(o.out, "resumed    after step 42"), "%s%s", o.out, o.err);
    cr_expect(program_run("translate m 31").code == 0);
}

/* Ranks sum the gradients of what is trained alone: groups, frozen parameters, and then adapters.
 */
MPI_TEST(groups_and_adapters_follow_one_rank_and_resume_with_the_same_bytes)
{
    static const char *const options[] = {
        "--freeze 'encoder.*' --group '*.bias:rate=0.5' --dropout 0",
        "--from base --lora 2 --lora-on '*.query,*.up' --dropout 0"};
    for (int i = 0; i < 2; i++) {
        double one[4], two[4];
        program_launcher("");
        struct outcome o = run_well(TUNE "%s --steps 42 --log one.jsonl", options[i]);
        cr_assert(rename(test_temporary("m"), test_temporary("one")) == 0 &&
                  remove(test_temporary("m.state")) == 0);
        program_launcher(ranks(2, ""));
        o = run_well(TUNE "%s --steps 42", options[i]);
        rename_run("whole-");
        cr_assert(read_losses("one.jsonl", one, 4) == 4 &&
                  read_losses("whole-m.jsonl", two, 4) == 4);
        for (int k = 0; k < 4; k++)
            cr_expect(fabs(one[k] - two[k]) < 1e-2 * one[k], "step %d: %g and %g", 10 * k, one[k],
                      two[k]);
        run_well(TUNE "%s --steps 21", options[i]);
        o = program_run(TUNE "%s --steps 42 --resume", options[i]);
        cr_assert(o.code == 0 && strstr(o.out, "resumed    after step 21"), "%s%s", o.out, o.err);
        cr_expect(program_same("m.state", "whole-m.state"));
        cr_assert(remove(test_temporary("m.state")) == 0 &&
                  remove(test_temporary("m.jsonl")) == 0 &&
                  remove(test_temporary("one.jsonl")) == 0);
        cr_assert(i == 1 || rename(test_temporary("m"), test_temporary("base")) == 0);
    }
}

/* ---- faults ---- */

/* The process of a rank, among mpirun's children. */
static pid_t process_of(pid_t process, int rank)
{
    char command[512], file[64];
    snprintf(command, sizeof command,
             "for p in $(cat /proc/%d/task/%d/children); do tr '\\0' '\\n' </proc/$p/environ | "
             "grep -qx OMPI_COMM_WORLD_RANK=%d && echo $p; done >'%s'",
             process, process, rank, test_temporary("process"));
    cr_assert(system(command) >= 0);
    snprintf(file, sizeof file, "process");
    char *text = program_read(file, NULL);
    const pid_t found = atoi(text);
    cr_assert(found > 0, "there is no process of rank %d", rank);
    return found;
}

/* Kills a job that does not end. */
static struct outcome wait_at_most(pid_t process, double seconds)
{
    siginfo_t about = {.si_pid = 0};
    const double end = clock_seconds() + seconds;
    while (clock_seconds() < end &&
           waitid(P_PID, (id_t)process, &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid == 0)
        pause_for(0.05);
    cr_expect(about.si_pid == process, "the job does not end");
    if (about.si_pid != process)
        kill(process, SIGTERM);
    return program_wait(process);
}

/* The output of a job whose rank 1 received a signal; the job must end. */
static struct outcome outcome_of_fault(int signal_number, const char *options)
{
    program_launcher(ranks(3, ""));
    pid_t process = program_start(TRAIN "--steps 1000000 %s", options);
    wait_for_steps(2);
    kill(process_of(process, 1), signal_number);
    struct outcome o = wait_at_most(process, 30);
    cr_expect(o.code != 0, "the job succeeded");
    return o;
}

MPI_TEST(a_killed_rank_ends_the_job_and_keeps_the_checkpoint)
{
    struct outcome o = outcome_of_fault(SIGKILL, "");
    cr_expect(strstr(o.err, "rank 1 ") != NULL, "%s", o.err);
    o = program_run(TRAIN "--steps 1000000 --resume --heartbeat 0 --patience 1");
    cr_expect(o.code == 0 && strstr(o.out, "resumed    after step "), "%s%s", o.out, o.err);
}

MPI_TEST(a_stopped_rank_is_named_and_ends_the_job)
{
    struct outcome o = outcome_of_fault(SIGSTOP, "--heartbeat 2");
    cr_expect(count_of(o.err, "softback: rank 1 has been silent for 2 seconds; the job ends") == 1,
              "%s", o.err);
    cr_expect(count_of(o.err, "has been silent") == 1, "%s", o.err);
}

MPI_TEST(a_rank_without_memory_ends_the_job)
{
    const double began = clock_seconds();
    cr_expect(!run_workers(2, "no-memory") && clock_seconds() - began < 30);
    char *err = program_read("err", NULL);
    cr_expect(count_of(err, "parallel_worker: rank 1: ") == 1 && strstr(err, "out of memory"), "%s",
              err);
    cr_expect(!strstr(err, "rank 0: "), "%s", err);
}

/* ---- ranks that differ ---- */

/* The last of three ranks runs the command after "and". */
#define AND_ONE_MORE " and "

static void expect_refused(const char *rest, const char *message)
{
    char launcher[1024];
    const bool differ = strstr(rest, AND_ONE_MORE) != NULL;
    snprintf(launcher, sizeof launcher, "%s %s%s%s", ranks(differ ? 3 : 2, ""), differ ? "'" : "",
             differ ? test_path("support/by_rank.sh") : "", differ ? "'" : "");
    program_launcher(launcher);
    struct outcome o = program_run("%s", rest);
    char line[300];
    snprintf(line, sizeof line, "softback train: %s\n", message);
    cr_expect(o.code != 0 && count_of(o.err, line) == 1, "%s", o.err);
    cr_expect(count_of(o.err, "softback train: ") == 1, "not once: %s", o.err);
    char *model = program_read("m.state", NULL);
    cr_expect(!model, "a file was written");
}

MPI_TEST(ranks_that_differ_are_named_at_the_start)
{
    write_pairs("other.tsv", 11);
    expect_refused(TRAIN AND_ONE_MORE TRAIN "--seed 7", "rank 2 has --seed 7, rank 0 has 1");
    expect_refused("train --data pairs.tsv --out m" AND_ONE_MORE "train --data other.tsv --out m",
                   "rank 2 has different data from rank 0");
    expect_refused("train --task copy --out m" AND_ONE_MORE "train --task sort --out m",
                   "rank 2 trains on sort, rank 0 on copy");
    expect_refused(TRAIN AND_ONE_MORE "train --data none.tsv --out m",
                   "rank 2: none.tsv: cannot be opened: No such file or directory");
    expect_refused(TRAIN AND_ONE_MORE TRAIN "--split heads=3",
                   "rank 2 has --split heads=3, rank 0 has heads=1");
    expect_refused(
        TRAIN "--split heads=4",
        "--split heads=4 needs 4 ranks, or a multiple, and not 2; start with mpirun -n 4");
    expect_refused(TRAIN "--split heads=2 --heads 1",
                   "transformer: heads 1 cannot be split over 2 ranks");
    expect_refused("train --data none.tsv --out m",
                   "none.tsv: cannot be opened: No such file or directory");
}

MPI_TEST(without_the_plug_in_ranks_fail)
{
    setenv("SOFTBACK_MPI", "/no/such/plug-in.so", 1);
    program_launcher(ranks(2, ""));
    struct outcome o = program_run(TRAIN "--steps 5");
    cr_expect(o.code != 0 && strstr(o.err, "mpi: cannot open the plug-in /no/such/plug-in.so"),
              "%s", o.err);
    cr_expect(count_files() == 3);
}

/* The held-out loss after 20 steps of a kind of model on ranks. */
static double held_out_loss(int count, const char *kind, const char *options)
{
    double loss = 0;
    program_launcher(count > 1 ? ranks(count, "") : "");
    struct outcome o = program_run(
        "train %s --width 16 --heads 2 --steps 20 --warmup 5 --dropout 0 --batch-pairs 6 "
        "--evaluate-every 20 --threads 1 --out m %s",
        kind, options);
    cr_assert(o.code == 0, "%s %s: %s", kind, options, o.err);
    const char *at = strstr(o.out, "held-out loss ");
    cr_assert(at && sscanf(at, "held-out loss %lf", &loss) == 1, "%s", o.out);
    cr_assert(remove(test_temporary("m")) == 0 && remove(test_temporary("m.state")) == 0 &&
              remove(test_temporary("m.jsonl")) == 0);
    return loss;
}

MPI_TEST(each_split_of_a_language_model_and_of_a_classifier_follows_one_rank)
{
    static const struct {
        const char *kind, *splits[3];
    } kinds[] = {
        {"--model language_model --data pairs.tsv --context 12 --decoder-layers 1",
         {"", "--split sequence=2", "--split heads=2"}},
        {"--model classifier --task pattern --encoder-layers 1", {"", "--split heads=2", NULL}},
    };
    for (int k = 0; k < 2; k++) {
        const double one = held_out_loss(1, kinds[k].kind, "");
        for (int i = 0; i < 3 && kinds[k].splits[i]; i++) {
            const double two = held_out_loss(2, kinds[k].kind, kinds[k].splits[i]);
            cr_expect(fabs(one - two) < 2e-4, "%s %s: %g and %g", kinds[k].kind, kinds[k].splits[i],
                      one, two);
        }
    }
}

/* Observes one leaf. */
struct observer {
    sb_tensor *leaf;
    const sb_node *last;
    int announced, done;
    double complete; /* the gradient after the last announced node */
    bool fails;
};

static void adds(void *context, const sb_tensor *leaf, const sb_node *node)
{
    struct observer *seen = context;
    if (leaf != seen->leaf)
        return;
    seen->announced++;
    seen->last = node;
}

static bool done(void *context, const sb_node *node)
{
    struct observer *seen = context;
    seen->done++;
    if (node == seen->last)
        seen->complete = sb_tensor_get(sb_tensor_grad(seen->leaf), 0);
    return !seen->fails || sb_fail("a planned failure");
}

/* Backward of (w x) + (w w) + x, in which w is an input of two nodes, one of them the last. */
static bool run(struct observer *seen, sb_tensor *w, sb_tensor *x)
{
    const struct listener listener = {.adds = adds, .done = done, .context = seen};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_multiply(w, x);
    y = sb_add(y, sb_multiply(w, w));
    const bool ok = backward_heard(sb_sum(sb_add(y, x), SB_ALL, false), &listener);
    return sb_tape_end(&tape) && ok;
}

CPU_TEST(listener, a_gradient_is_complete_after_the_last_announced_node)
{
    sb_tensor *w = test_leaf(SB_F64, 1, SB_SHAPE(3)), *x = test_leaf(SB_F64, 2, SB_SHAPE(3));
    struct observer seen = {.leaf = w};
    MUST(run(&seen, w, x));
    cr_expect(seen.announced == 3, "announced %d times, not 3: w x, and w w twice", seen.announced);
    cr_expect(seen.done == 5, "%d nodes", seen.done);
    cr_expect(seen.complete == sb_tensor_get(sb_tensor_grad(w), 0));
    cr_expect(fabs(seen.complete - (sb_tensor_get(x, 0) + 2 * sb_tensor_get(w, 0))) < 1e-15);
}

CPU_TEST(listener, a_failing_listener_ends_backward)
{
    sb_tensor *w = test_leaf(SB_F64, 1, SB_SHAPE(3)), *x = test_leaf(SB_F64, 2, SB_SHAPE(3));
    struct observer seen = {.leaf = w, .fails = true};
    cr_expect(!run(&seen, w, x) && seen.done == 1);
    EXPECT_ERROR("a planned failure");
    cr_expect(!sb_tensor_grad(w) && !sb_tensor_grad(x), "a partial gradient is left");
}
