/* What libFuzzer runs, see fuzz.sh: reads any bytes as the log of a training run. */
#include "teach/report/run_log.h"
#include "tests/support/fuzz.h"
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    struct run_log log;
    const int file = memfd_create("log", 0);
    check(file >= 0 && write(file, bytes, size) == (ssize_t)size, "there is a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    check(run_log_read(&log, path) || sb_error()[0], "a refusal has a message");
    run_log_free(&log);
    close(file);
    check(memory_pool()->live_blocks == 0, "nothing is live at the end");
    return 0;
}
