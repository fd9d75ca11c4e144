/*
 * Runs the tests that criterion.h has registered, several at a time, each in a separate process, so
 * that a crash or an endless loop is one failure, and only that process opens a device. Opening a
 * real one takes longer than most tests: --by-suite runs the tests of a suite in one process, and
 * continues after a crash in a new one. The output of a test is shown when it fails. Ends with "N
 * passed, N failed", after SIGTERM too.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <fnmatch.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 256, MOST_FILTERS = 16 };
enum outcome { PASSED, FAILED, SKIPPED, OUTCOMES };

static struct options {
    int jobs, limit, seconds; /* processes; seconds of one test, and of all */
    const char *filters[MOST_FILTERS];
    int filter_count;
    bool list, in_process, by_suite, verbose;
} options = {.limit = 120};

/* ---- within a test ---- */

static jmp_buf given_up;
static int failures;
static bool skipped;

void plain_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    failures++;
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
    if (!format[0])
        return;
    va_list values;
    va_start(values, format);
    fputs("    ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

void plain_give_up(void)
{
    longjmp(given_up, 1);
}

void plain_skip(const char *format, ...)
{
    skipped = true;
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

void plain_print(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

bool plain_equal(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static FILE *redirected;

void cr_redirect_stdout(void)
{
    redirected = tmpfile();
    cr_assert(redirected && fflush(stdout) == 0 && dup2(fileno(redirected), STDOUT_FILENO) >= 0);
}

const char *plain_redirected(void)
{
    static char text[4096];
    fflush(stdout);
    ssize_t n = pread(fileno(redirected), text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static enum outcome run(const struct plain_test *test)
{
    failures = 0;
    skipped = false;
    if (setjmp(given_up) == 0) {
        if (test->init)
            test->init();
        test->body();
    }
    if (test->fini && setjmp(given_up) == 0)
        test->fini();
    return failures ? FAILED : skipped ? SKIPPED : PASSED;
}

/* ---- all tests ---- */

static volatile sig_atomic_t terminated; /* by SIGTERM, after which the results so far are shown */

static void terminate(int number)
{
    (void)number;
    terminated = true;
}

static struct plain_test *tests;
static int counts[OUTCOMES];

static int compare(const struct plain_test *a, const struct plain_test *b)
{
    int order = strcmp(a->suite, b->suite);
    return order ? order : strcmp(a->name, b->name);
}

void plain_register(struct plain_test *test)
{
    struct plain_test **place = &tests;
    while (*place && compare(*place, test) < 0)
        place = &(*place)->next;
    test->next = *place;
    *place = test;
}

static bool wanted(const struct plain_test *test)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
    for (int i = 0; i < options.filter_count; i++)
        if (fnmatch(options.filters[i], name, FNM_EXTMATCH) == 0)
            return true;
    return options.filter_count == 0;
}

/* The first wanted one from here on. */
static const struct plain_test *next_wanted(const struct plain_test *test)
{
    while (test && !wanted(test))
        test = test->next;
    return test;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* What a process writes for its parent. */
struct progress {
    const struct plain_test *running;
    double began;
    int counts[OUTCOMES];
};

struct job {
    const struct plain_test *first; /* that this process runs */
    pid_t process;                  /* 0 if none */
    FILE *output;                   /* of the running test */
    struct progress *progress;      /* in shared memory */
};

/* The test after this one in the same process; NULL if it ends here. */
static const struct plain_test *next_of_job(const struct plain_test *test)
{
    const struct plain_test *next = options.by_suite ? next_wanted(test->next) : NULL;
    const bool alone = test->description || (next && next->description);
    return next && !alone && strcmp(next->suite, test->suite) == 0 ? next : NULL;
}

static void print_output(FILE *to, FILE *output)
{
    char line[4096];
    rewind(output);
    while (fgets(line, sizeof line, output))
        fprintf(to, "    %s", line);
}

/* In one write, since several processes report. */
static void report(const struct plain_test *test, enum outcome outcome, const char *how,
                   FILE *output, double seconds)
{
    static const char *const words[] = {"PASS", "FAIL", "SKIP"};
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to || (outcome != FAILED && !options.verbose)) {
        if (to)
            fclose(to);
        free(text);
        return;
    }
    fprintf(to, "[%s] %s::%s%s (%.2f s)\n", words[outcome], test->suite, test->name, how, seconds);
    if (output)
        print_output(to, output);
    fclose(to);
    fwrite(text, 1, length, stdout);
    fflush(stdout);
    free(text);
}

/* The tests of a job, in its process. Standard output and error go to the job's file while a test
   runs. */
static void run_job(struct job *job, double end)
{
    const int shown = dup(STDOUT_FILENO);
    signal(SIGTERM, SIG_DFL);
    for (const struct plain_test *test = job->first; test && now() < end;
         test = next_of_job(test)) {
        job->progress->running = test;
        job->progress->began = now();
        dup2(fileno(job->output), STDOUT_FILENO);
        dup2(fileno(job->output), STDERR_FILENO);
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* a crash would lose a full buffer */
        alarm((unsigned)options.limit);
        const enum outcome outcome = run(test);
        alarm(0);
        fflush(NULL);
        dup2(shown, STDOUT_FILENO);
        job->progress->running = NULL;
        job->progress->counts[outcome]++;
        report(test, outcome, "", job->output, now() - job->progress->began);
        rewind(job->output);
        if (ftruncate(fileno(job->output), 0) != 0)
            _exit(1);
    }
    fflush(NULL);
    _exit(0);
}

static void start(struct job *job, const struct plain_test *first, double end)
{
    job->first = first;
    job->output = tmpfile();
    job->progress->running = NULL;
    fflush(stdout);
    job->process = job->output ? fork() : -1;
    if (job->process < 0) {
        perror("softback-tests: no process for a test");
        exit(2);
    }
    if (job->process == 0)
        run_job(job, end);
}

/* A process that died in a test: reports it, and goes on with the next one of its suite. */
static void died(struct job *job, int status, double end)
{
    char how[64] = "";
    const struct plain_test *test = job->progress->running ? job->progress->running : job->first;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(how, sizeof how, ": takes more than %d s", options.limit);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, ": dies of \"%s\"", strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, ": ends with %d", WEXITSTATUS(status));
    job->progress->counts[FAILED]++;
    report(test, FAILED, how, job->output, now() - job->progress->began);
    if (next_of_job(test) && now() < end) {
        fclose(job->output);
        start(job, next_of_job(test), end);
    }
}

/* Waits for one of the processes. */
static void wait_for_one(struct job *jobs, double end)
{
    int status;
    pid_t process = wait(&status);
    for (int i = 0; i < options.jobs; i++) {
        struct job *job = &jobs[i];
        if (process <= 0 || job->process != process)
            continue;
        job->process = 0;
        if (status != 0 || job->progress->running)
            died(job, status, end);
        if (!job->process)
            fclose(job->output);
        return;
    }
}

/* The first wanted test after those of the job that this one begins. */
static const struct plain_test *after_job(const struct plain_test *first)
{
    const struct plain_test *last = first;
    while (next_of_job(last))
        last = next_of_job(last);
    return next_wanted(last->next);
}

static void run_in_processes(double end)
{
    static struct job jobs[MOST_JOBS];
    struct progress *progress = mmap(NULL, MOST_JOBS * sizeof *progress, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        perror("softback-tests: no memory to share");
        exit(2);
    }
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = terminate}, NULL); /* ends wait */
    const struct plain_test *test = next_wanted(tests);
    int running = 0;
    while (!terminated && (running || (test && now() < end))) {
        for (int i = 0; i < options.jobs; i++) {
            jobs[i].progress = &progress[i];
            if (!jobs[i].process && test && now() < end) {
                start(&jobs[i], test, end);
                test = after_job(test);
            }
        }
        wait_for_one(jobs, end);
        running = 0;
        for (int i = 0; i < options.jobs; i++)
            running += jobs[i].process != 0;
    }
    for (int i = 0; i < options.jobs; i++)
        if (jobs[i].process)
            kill(jobs[i].process, SIGKILL);
    for (int i = 0; i < MOST_JOBS; i++)
        for (int o = 0; o < OUTCOMES; o++)
            counts[o] += progress[i].counts[o];
}

/* For debuggers and sanitizers that follow one process. */
static void run_here(double end)
{
    for (const struct plain_test *test = next_wanted(tests); test && now() < end;
         test = next_wanted(test->next)) {
        const double began = now();
        const enum outcome outcome = run(test);
        counts[outcome]++;
        report(test, outcome, "", NULL, now() - began);
    }
}

static int list(void)
{
    for (const struct plain_test *test = next_wanted(tests); test; test = next_wanted(test->next))
        printf("%s/%s\n", test->suite, test->name);
    return 0;
}

static void help(void)
{
    puts("Usage: softback-tests [OPTION...]\n"
         "  --filter=PATTERN  only tests whose suite/name matches; may be given several times\n"
         "  --jobs=N          runs N tests at a time [the number of cores]\n"
         "  --limit=N         a test that takes more seconds fails [120]\n"
         "  --seconds=N       starts no test after N seconds, and then fails\n"
         "  --by-suite        runs the tests of a suite in one process\n"
         "  --in-process      runs all tests in this process, for debuggers\n"
         "  --list            prints the names\n"
         "  --verbose         also shows tests that pass, and why tests are skipped");
}

static int number(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > most) {
        fprintf(stderr, "softback-tests: \"%s\" is not a whole number in 1..%d\n", text, most);
        exit(2);
    }
    return (int)value;
}

static void filter(const char *pattern)
{
    if (options.filter_count == MOST_FILTERS) {
        fputs("softback-tests: too many filters\n", stderr);
        exit(2);
    }
    options.filters[options.filter_count++] = pattern;
}

static void parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"filter", required_argument, NULL, 'f'}, {"jobs", required_argument, NULL, 'j'},
        {"limit", required_argument, NULL, 't'},  {"seconds", required_argument, NULL, 's'},
        {"in-process", no_argument, NULL, 'i'},   {"by-suite", no_argument, NULL, 'b'},
        {"list", no_argument, NULL, 'l'},         {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {0}};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    options.jobs = cores < 1 ? 1 : cores > MOST_JOBS ? MOST_JOBS : (int)cores;
    for (int key; (key = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (key) {
        case 'f':
            filter(optarg);
            break;
        case 'j':
            options.jobs = number(optarg, MOST_JOBS);
            break;
        case 't':
            options.limit = number(optarg, 100000);
            break;
        case 's':
            options.seconds = number(optarg, 100000);
            break;
        case 'b':
            options.by_suite = true;
            break;
        case 'i':
            options.in_process = true;
            break;
        case 'l':
            options.list = true;
            break;
        case 'v':
            options.verbose = true;
            break;
        default:
            help();
            exit(key == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "softback-tests: \"%s\" is not an option\n", argv[optind]);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    if (options.list)
        return list();
    const double end = options.seconds ? now() + options.seconds : 1e300;
    int left = 0;
    for (const struct plain_test *test = next_wanted(tests); test; test = next_wanted(test->next))
        left++;
    options.in_process ? run_here(end) : run_in_processes(end);
    for (int outcome = 0; outcome < OUTCOMES; outcome++)
        left -= counts[outcome];
    if (counts[SKIPPED])
        printf("%d skipped\n", counts[SKIPPED]);
    if (left && terminated)
        printf("%d not finished: terminated\n", left);
    else if (left)
        printf("%d not run: %d s are over\n", left, options.seconds);
    printf("%d passed, %d failed\n", counts[PASSED], counts[FAILED]);
    return counts[FAILED] || left || counts[PASSED] + counts[SKIPPED] == 0;
}
