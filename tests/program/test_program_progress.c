/* The progress of a training run. */
#include "tests/support/program.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

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
    const int lines = err ? count_of(err, "\n") : 0;
    free(err);
    return lines;
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
