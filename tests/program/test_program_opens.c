/* How often a command opens the file of its model, which may be large. */
#include "tests/support/program.h"
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

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
