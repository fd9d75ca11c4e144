#include "tests/support/program.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *launcher = "";

void program_launcher(const char *command)
{
    launcher = command;
}

/* What runs a program for another processor, "qemu-aarch64": SOFTBACK_TEST_WRAPPER. */
static const char *wrapper(void)
{
    const char *command = getenv("SOFTBACK_TEST_WRAPPER");
    return command ? command : "";
}

/* The command for the shell. Redirections among the arguments come last and win. */
static char *command_line(const char *before, const char *format, va_list values)
{
    static char command[4096];
    char arguments[3000];
    cr_assert(chdir(test_temporary("")) == 0);
    cr_assert(vsnprintf(arguments, sizeof arguments, format, values) < (int)sizeof arguments);
    snprintf(command, sizeof command, "%s exec %s %s '%s' %s", before, launcher, wrapper(),
             TEST_PROGRAM, arguments);
    return command;
}

static const char quiet[] = "exec </dev/null >out 2>err;";

static pid_t start(char *command, int terminal)
{
    pid_t process = fork();
    cr_assert(process >= 0);
    if (process > 0)
        return process;
    for (int file = 0; terminal >= 0 && file < 3; file++)
        dup2(terminal, file);
    for (int i = 0; i < 3; i++) /* nohup, for one, ignores them */
        signal((int[]){SIGINT, SIGTERM, SIGHUP}[i], SIG_DFL);
    unsetenv("SOFTBACK_GOLDEN");
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* The text of a file; none is an empty one. */
static char *text_of(const char *file)
{
    char *text = program_read(file, NULL);
    return text ? text : "";
}

static struct outcome outcome(pid_t process)
{
    int status;
    cr_assert(waitpid(process, &status, 0) == process);
    return (struct outcome){.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

struct outcome program_wait(pid_t process)
{
    struct outcome o = outcome(process);
    o.out = text_of("out");
    o.err = text_of("err");
    return o;
}

pid_t program_start(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *command = command_line(quiet, format, values);
    va_end(values);
    return start(command, -1);
}

struct outcome program_run(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *command = command_line(quiet, format, values);
    va_end(values);
    return program_wait(start(command, -1));
}

struct outcome run_well(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *command = command_line(quiet, format, values);
    va_end(values);
    struct outcome o = program_wait(start(command, -1));
    cr_assert(o.code == 0, "exit code %d: %s", o.code, o.err);
    return o;
}

struct outcome program_shell(const char *command)
{
    char all[6000];
    cr_assert(chdir(test_temporary("")) == 0);
    snprintf(all, sizeof all, "%s softback() { %s %s '%s' \"$@\"; }\n%s", quiet, launcher,
             wrapper(), TEST_PROGRAM, command);
    return program_wait(start(all, -1));
}

struct outcome program_on_terminal(const char *format, ...)
{
    enum { ROOM = 1 << 16 };
    va_list values;
    va_start(values, format);
    char *command = command_line("", format, values);
    va_end(values);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        cr_skip_test("no pseudo-terminals, as in a chroot without /dev/pts");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert(terminal >= 0);
    pid_t process = start(command, terminal);
    close(terminal);
    char *text = kept_memory(calloc(ROOM, 1));
    size_t size = 0;
    for (ssize_t n; size < ROOM - 1 && (n = read(master, text + size, ROOM - 1 - size)) > 0;)
        size += (size_t)n;
    close(master);
    struct outcome o = outcome(process);
    o.out = text;
    o.err = "";
    return o;
}

void expect_text(const char *text, const char *part)
{
    cr_expect(strstr(text, part) != NULL, "\"%s\" is not in:\n%s", part, text);
}

void expect_texts(const char *text, const char *const parts[])
{
    for (; *parts; parts++)
        expect_text(text, *parts);
}

int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* The text after a field of a line, a number between `name` and `unit`; NULL: no such field. */
static const char *field(const char *at, const char *name, const char *unit)
{
    const size_t before = strlen(name), after = strlen(unit);
    if (!at || strncmp(at, name, before) != 0)
        return NULL;
    at += before;
    const size_t number = strspn(at, "0123456789.,:/");
    return number > 0 && strncmp(at + number, unit, after) == 0 ? at + number + after : NULL;
}

int program_evaluations(const char *text)
{
    int count = 0;
    for (const char *at = text, *exact; *at; count++) {
        at = field(at, "step ", "  ");
        at = field(at, "loss ", "  ");
        at = field(at, "held-out loss ", "  ");
        exact = field(at, "exact ", " %  ");
        at = field(exact ? exact : at, "", " symbols/s  ");
        at = field(at, "", " left");
        if (at && strncmp(at, "  best so far", 13) == 0)
            at += 13;
        if (!at || *at++ != '\n')
            return -1;
    }
    return count;
}

void program_write(const char *file, const char *text, size_t size)
{
    FILE *f = fopen(test_temporary(file), "wb");
    cr_assert(f && fwrite(text, 1, size, f) == size && fclose(f) == 0);
}

void write_text(const char *file, const char *text)
{
    program_write(file, text, strlen(text));
}

bool exists(const char *file)
{
    return access(test_temporary(file), F_OK) == 0;
}

size_t size_of(const char *file)
{
    struct stat about;
    return stat(test_temporary(file), &about) == 0 ? (size_t)about.st_size : 0;
}

char *program_read(const char *file, size_t *size)
{
    FILE *f = fopen(test_temporary(file), "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    char *text = kept_memory(calloc(n + 1, 1));
    cr_assert(fread(text, 1, n, f) == n);
    fclose(f);
    if (size)
        *size = n;
    return text;
}

void program_cut_seconds(char *log, size_t *size)
{
    char *to = log;
    for (char *line = log, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        const bool kept = !strstr(line, "\"seconds\":");
        *end = '\n';
        if (kept)
            memmove(to, line, (size_t)(end + 1 - line));
        to += kept ? end + 1 - line : 0;
    }
    *to = '\0';
    *size = (size_t)(to - log);
}

bool program_same(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = program_read(a, &n), *y = program_read(b, &m);
    if (strstr(a, ".jsonl") && x && y) {
        program_cut_seconds(x, &n);
        program_cut_seconds(y, &m);
    }
    return x && y && n == m && memcmp(x, y, n) == 0;
}

void program_copy(const char *from, const char *to)
{
    size_t size = 0;
    char *bytes = program_read(from, &size);
    cr_assert(bytes, "no %s", from);
    program_write(to, bytes, size);
}

void program_write_pairs(void)
{
    char text[4000] = "";
    for (int i = 10; i < 70; i++)
        sprintf(text + strlen(text), "%d\t%d\n", i, i % 10 * 10 + i / 10);
    program_write("pairs.tsv", text, strlen(text));
}

static const char *const files[] = {"m", "m.state", "m.jsonl"};

void rename_run(const char *to)
{
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", to, files[i]);
        cr_assert(rename(test_temporary(files[i]), test_temporary(name)) == 0, "no %s", files[i]);
    }
}

void copy_run(const char *from, const char *to)
{
    for (int i = 0; i < 3; i++) {
        char source[32], target[32];
        snprintf(source, sizeof source, "%s%s", from, files[i]);
        snprintf(target, sizeof target, "%s%s", to, files[i]);
        program_copy(source, target);
    }
}

void pause_for(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)(1e9 * fmod(seconds, 1))};
    nanosleep(&time, NULL);
}

void program_expect_same_run(const char *run)
{
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", run, files[i]);
        cr_expect(program_same(files[i], name), "%s differs from %s", files[i], name);
    }
    cr_expect(!program_read("m.softback-part", NULL) &&
                  !program_read("m.state.softback-part", NULL),
              "a temporary file is left");
}
