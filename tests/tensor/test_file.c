#include "tensor/file.h"
#include "tests/support/test.h"
#include "tests/support/trace.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool holds(const char *path, const char *text)
{
    size_t size;
    const char *found = KEPT(file_text("test", path, 1 << 20, &size));
    return size == strlen(text) && memcmp(found, text, size) == 0;
}

CPU_TEST(file, text_gives_all_bytes_and_a_nul)
{
    const char *path = test_temporary("a.txt");
    size_t size;
    put(path, "");
    char *text = MUST(file_text("test", path, 0, &size));
    cr_expect(size == 0 && text[0] == '\0');
    memory_free(text);
    cr_assert(file_save("test", path, "a\0b\n", 4));
    text = MUST(file_text("test", path, 4, &size));
    cr_expect(size == 4 && memcmp(text, "a\0b\n", 5) == 0);
    memory_free(text);
}

CPU_TEST(file, text_larger_than_the_limit_is_refused)
{
    const char *path = test_temporary("a.txt");
    size_t size;
    put(path, "12345");
    REFUSED("a.txt\" is larger than 4 bytes, the most that is read",
            file_text("test", path, 4, &size));
    REFUSED("\"/dev/zero\" is larger than 100000 bytes",
            file_text("test", "/dev/zero", 100000, &size));
}

CPU_TEST(file, text_is_read_from_a_pipe_as_well)
{
    int end[2];
    cr_assert(pipe(end) == 0);
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", end[0]);
    char *text = KEPT(malloc(20001));
    memset(text, 'x', 20000);
    text[20000] = '\0';
    cr_assert(write(end[1], text, 20000) == 20000);
    close(end[1]);
    cr_expect(holds(path, text), "%s", sb_error());
    close(end[0]);
}

CPU_TEST(file, a_file_that_cannot_be_opened_is_named_with_the_reason)
{
    size_t size;
    REFUSED("test: cannot open \"", file_text("test", test_temporary("none.txt"), 10, &size));
    EXPECT_ERROR("/none.txt\": No such file or directory");
    REFUSED("test: cannot open \"/proc/none\": No such file or directory",
            file_open("test", "/proc/none"));
    REFUSED("test: cannot read \"/\": Is a directory", file_text("test", "/", 10, &size));
    cr_expect(!file_open("test", NULL) && !file_text("test", NULL, 1, &size));
    EXPECT_ERROR("test: path is NULL");
}

CPU_TEST(file, only_regular_files_are_opened_for_reading_in_ranges)
{
    REFUSED("test: \"/\" is a folder", file_open("test", "/"));
    REFUSED("test: \"/dev/zero\" is not a regular file", file_open("test", "/dev/zero"));
    const char *path = test_temporary("pipe");
    cr_assert(mkfifo(path, 0600) == 0);
    cr_expect(!file_open("test", path)); /* and does not wait for a writer */
    EXPECT_ERROR("pipe\" is not a regular file");
}

CPU_TEST(file, ranges_are_read_exactly_and_not_beyond_the_end)
{
    const char *path = test_temporary("a.txt");
    char bytes[4] = "";
    put(path, "0123456789");
    struct file *file = MUST(file_open("test", path));
    cr_expect(file_size(file) == 10);
    cr_expect(file_read(file, 7, bytes, 3) && memcmp(bytes, "789", 3) == 0);
    cr_expect(file_read(file, 10, bytes, 0));
    REFUSED("a.txt\" ends at byte 10, within the 3 bytes wanted from 8 on",
            file_read(file, 8, bytes, 3));
    cr_assert(truncate(path, 5) == 0);
    REFUSED("ends at byte 5", file_read(file, 3, bytes, 3));
    file_close(file);
}

static bool save(const char *path, const char *text)
{
    return file_save("test", path, text, strlen(text));
}

static unsigned mode(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_mode & 07777 : 0;
}

/* The name that a replacement of `path` writes to. */
static const char *part(const char *path)
{
    static char name[300];
    snprintf(name, sizeof name, "%s.softback-part", path);
    return name;
}

CPU_TEST(file_replacement, a_save_replaces_all_of_the_old_file)
{
    const char *path = test_temporary("a.txt");
    cr_assert(!file_exists(path));
    MUST(save(path, "old and long"));
    cr_expect(holds(path, "old and long") && file_exists(path));
    MUST(save(path, "new"));
    cr_expect(holds(path, "new") && !file_exists(part(path)));
}

CPU_TEST(file_replacement, pieces_of_any_size_arrive_in_order)
{
    const char *path = test_temporary("pieces");
    const size_t total = 400000;
    unsigned char *bytes = malloc(total);
    for (size_t i = 0; i < total; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    struct file_replacement *file = MUST(file_replace("test", path));
    size_t at = 0;
    for (size_t piece = 1; at < total; piece = piece * 3 + 1) {
        size_t size = piece < total - at ? piece : total - at;
        cr_assert(file_write(file, bytes + at, size));
        at += size;
    }
    MUST(file_commit(file));
    size_t size;
    char *found = KEPT(file_text("test", path, total, &size));
    cr_assert(found && size == total);
    cr_expect(memcmp(found, bytes, total) == 0);
    free(bytes);
}

CPU_TEST(file_replacement, an_abandoned_replacement_keeps_only_the_old_file)
{
    const char *path = test_temporary("a.txt");
    put(path, "old");
    struct file_replacement *file = file_replace("test", path);
    cr_assert(file && file_write(file, "new", 3));
    cr_expect(file_exists(part(path)));
    file_abandon(file);
    file_abandon(NULL);
    cr_expect(holds(path, "old") && !file_exists(part(path)));
}

CPU_TEST(file_replacement, a_new_file_has_the_permissions_that_the_umask_leaves)
{
    const char *path = test_temporary("a.txt");
    mode_t before = umask(027);
    cr_assert(save(path, "a"));
    umask(before);
    cr_expect(mode(path) == 0640, "%o", mode(path));
}

CPU_TEST(file_replacement, a_replaced_file_keeps_its_permissions)
{
    const char *path = test_temporary("a.txt");
    put(path, "old");
    cr_assert(chmod(path, 0604) == 0);
    put(part(path), "left by a process that was killed");
    cr_assert(chmod(part(path), 0666) == 0);
    mode_t before = umask(077);
    MUST(save(path, "new"));
    umask(before);
    cr_expect(mode(path) == 0604, "%o", mode(path));
}

/* Runs `body` as a user without rights and returns its result. Returns true, which skips the check,
   when this process cannot change its user. */
static bool as_nobody(bool (*body)(const char *path), const char *path)
{
    pid_t child = fork();
    if (child == 0)
        _exit(geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0) ? 0 : !body(path));
    int status = 1;
    cr_assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_refused(const char *path)
{
    return !save(path, "new") && strstr(sb_error(), "a.txt\": Permission denied");
}

CPU_TEST(file_replacement, a_file_that_may_not_be_written_is_not_replaced)
{
    const char *path = test_temporary("a.txt");
    put(path, "old");
    cr_assert(chmod(path, 0444) == 0 && chmod(test_temporary("."), 0777) == 0);
    cr_expect(as_nobody(is_refused, path));
    cr_expect(holds(path, "old") && !file_exists(part(path)));
}

static bool is_saved(const char *path)
{
    return save(path, "new");
}

/* A folder that may be written to but not read cannot be synced; the file is written nevertheless.
 */
CPU_TEST(file_replacement, a_folder_need_not_be_readable)
{
    const char *folder = test_temporary("drop"), *path = test_temporary("drop/a.txt");
    cr_assert(mkdir(folder, 0333) == 0 && chmod(folder, 0333) == 0);
    cr_assert(chmod(test_temporary("."), 0777) == 0);
    cr_expect(as_nobody(is_saved, path));
    cr_assert(chmod(folder, 0755) == 0);
}

CPU_TEST(file_replacement, symbolic_links_stay_and_their_target_is_replaced)
{
    const char *folder = test_temporary("b"), *link = test_temporary("link");
    const char *target = test_temporary("b/a.txt"), *second = test_temporary("b/second");
    cr_assert(mkdir(folder, 0755) == 0 && symlink("b/second", link) == 0);
    cr_assert(symlink(target, second) == 0); /* a relative link to an absolute one */
    MUST(save(link, "made through a link"));
    MUST(save(link, "new"));
    struct stat about;
    cr_expect(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
    cr_expect(lstat(second, &about) == 0 && S_ISLNK(about.st_mode));
    cr_expect(lstat(target, &about) == 0 && S_ISREG(about.st_mode));
    cr_expect(holds(target, "new"));
}

CPU_TEST(file_replacement, circular_links_are_refused)
{
    const char *a = test_temporary("a"), *b = test_temporary("b");
    cr_assert(symlink("b", a) == 0 && symlink("a", b) == 0);
    REFUSED("/a\": Too many levels of symbolic links", save(a, "new"));
}

CPU_TEST(file_replacement, folders_pipes_and_devices_are_never_replaced)
{
    const char *pipe = test_temporary("pipe"), *link = test_temporary("link");
    cr_assert(mkfifo(pipe, 0600) == 0 && symlink("pipe", link) == 0);
    REFUSED("/pipe\" is not a regular file", save(link, "new"));
    REFUSED("test: \"/\" is a folder", save("/", "new"));
    REFUSED("test: the path is empty", save("", "new"));
    REFUSED("none/a.txt.softback-part\": No such file or directory",
            save(test_temporary("none/a.txt"), "new"));
    put(test_temporary("plain"), "text");
    REFUSED("plain/a.txt\": Not a directory", save(test_temporary("plain/a.txt"), "new"));
}

CPU_TEST(file_replacement, the_next_save_removes_the_file_of_a_killed_process)
{
    const char *path = test_temporary("a.txt");
    put(part(path), "a stale file, longer than the new one");
    MUST(save(path, "new"));
    cr_expect(holds(path, "new") && !file_exists(part(path)));
}

CPU_TEST(file_replacement, two_replacements_at_a_time_are_refused)
{
    const char *path = test_temporary("a.txt");
    put(path, "old");
    struct file_replacement *first = file_replace("test", path);
    cr_assert(first && file_write(first, "first", 5));
    REFUSED("a.txt\" is being written by another process", file_replace("test", path));
    MUST(file_commit(first));
    cr_expect(holds(path, "first"));
    cr_expect(save(path, "second") && holds(path, "second"), "%s", sb_error());
}

/* Instead of the C library's. */
static bool unlink_fails;

int unlink(const char *path)
{
    errno = EIO;
    return unlink_fails ? -1 : unlinkat(AT_FDCWD, path, 0);
}

CPU_TEST(file_replacement, a_try_that_leaves_its_temporary_file_fails)
{
    const char *path = test_temporary("a.txt");
    cr_expect(file_try("test", path) && !file_exists(part(path)), "%s", sb_error());
    unlink_fails = true;
    cr_expect(!file_try("test", path));
    unlink_fails = false;
    EXPECT_ERROR("test: cannot remove \"");
    EXPECT_ERROR("a.txt.softback-part\": Input/output error");
    cr_expect(save(path, "new") && !file_exists(part(path)), "the next save removes it");
}

CPU_TEST(file_replacement, of_two_that_create_a_file_one_fails)
{
    const char *path = test_temporary("a.txt");
    struct file_replacement *first = file_create("test", path);
    cr_assert(first && file_write(first, "first", 5));
    REFUSED("a.txt\" is being written by another process", file_create("test", path));
    MUST(file_commit(first));
    REFUSED("a.txt\" exists already; move it away, or name another file",
            file_create("test", path));
    cr_expect(holds(path, "first") && !file_exists(part(path)));
}

/* Saves a text of one letter repeatedly; true unless a save fails for another reason than a
   concurrent replacement. */
static bool save_repeatedly(const char *path, char letter, int rounds)
{
    char text[64];
    memset(text, letter, sizeof text);
    for (int round = 0; round < rounds; round++)
        if (!file_save("test", path, text, sizeof text) &&
            !strstr(sb_error(), "being written by another process"))
            return false;
    return true;
}

static bool is_one_letter(const char *path)
{
    size_t size;
    char *text = KEPT(file_text("test", path, 64, &size));
    return text && size == 64 && memcmp(text, text + 1, 63) == 0;
}

CPU_TEST(file_replacement, processes_that_save_at_the_same_time_do_not_mix_their_files)
{
    const char *path = test_temporary("a.txt");
    int left = 4, failed = 0, status = 0;
    for (int i = 0; i < left; i++)
        if (fork() == 0)
            _exit(!save_repeatedly(path, (char)('a' + i), test_long() ? 5000 : 100));
    while (left > 0) {
        cr_assert(!file_exists(path) || is_one_letter(path));
        if (waitpid(-1, &status, WNOHANG) > 0) {
            left--;
            failed += status != 0;
        }
    }
    cr_expect(failed == 0 && is_one_letter(path) && !file_exists(part(path)));
}

/* An attacker puts a link at the path of the temporary file. */
CPU_TEST(file_replacement, a_link_at_the_path_of_the_temporary_file_is_not_followed)
{
    const char *path = test_temporary("a.txt"), *victim = test_temporary("victim");
    put(victim, "precious");
    cr_assert(symlink("victim", part(path)) == 0);
    REFUSED("a.txt.softback-part\": Too many levels of symbolic links", save(path, "new"));
    cr_expect(holds(victim, "precious"));
}

static bool read_and_save(void *context)
{
    size_t size;
    const char *path = context;
    char *text = file_text("test", path, 1 << 20, &size);
    struct file *file = text ? file_open("test", path) : NULL;
    bool ok = file && file_save("test", path, text, size);
    file_close(file);
    memory_free(text);
    return ok;
}

CPU_TEST(file_replacement, each_allocation_may_fail)
{
    const char *path = test_temporary("a.txt"), *link = test_temporary("link");
    put(path, "text");
    cr_assert(symlink("a.txt", link) == 0);
    cr_expect(test_each_allocation_fails(read_and_save, (void *)link) >= 8);
    cr_expect(holds(path, "text") && !file_exists(part(path)));
}

/* ---- A full disk. ---- */

static char *long_text(size_t size)
{
    char *text = KEPT(malloc(size + 1));
    memset(text, 'n', size);
    text[size] = '\0';
    return text;
}

/* From now on no file grows beyond so many bytes. */
static void limit_files(rlim_t most)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

CPU_TEST(file_replacement, at_the_limit_of_file_size_the_old_file_stays)
{
    const char *path = test_temporary("a.txt");
    char *text = long_text(300000);
    put(path, "old");
    limit_files(200000);
    bool saved = save(path, text);
    limit_files(RLIM_INFINITY);
    cr_expect(!saved);
    EXPECT_ERROR("test: cannot write \"");
    EXPECT_ERROR("a.txt.softback-part\": File too large");
    cr_expect(holds(path, "old") && !file_exists(part(path)));
}

CPU_TEST(file_replacement, after_a_failed_write_nothing_more_is_written)
{
    const char *path = test_temporary("a.txt");
    char *text = long_text(300000);
    put(path, "old");
    struct file_replacement *file = file_replace("test", path);
    cr_assert(file != NULL);
    limit_files(200000);
    bool written = file_write(file, text, 300000);
    limit_files(RLIM_INFINITY);
    cr_expect(!written && !file_write(file, "more", 4));
    cr_expect(!file_commit(file) && holds(path, "old"));
    EXPECT_ERROR("File too large");
}

/* On a file system of 64 kB; needs the right to mount one. */
CPU_TEST(file_replacement, on_a_full_disk_the_old_file_stays)
{
    const char *folder = test_temporary("disk"), *path = test_temporary("disk/a.txt");
    cr_assert(mkdir(folder, 0755) == 0);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, "size=64k") != 0)
        cr_skip_test("no permission to mount a small disk");
    char *text = long_text(100000);
    put(path, "old");
    REFUSED("disk/a.txt.softback-part\": No space left on device", save(path, text));
    cr_expect(holds(path, "old") && !file_exists(part(path)));
    cr_assert(umount(folder) == 0);
}

/* ---- A process that is killed, or an error, at each system call. ---- */

enum { SAVED = 0, FAILED = 1, UNCLEAR = 2, NOT_SYNCED = 3 };

struct saving {
    const char *path, *text;
    const char *reason; /* that a failure must name */
};

static int save_traced(const void *context)
{
    const struct saving *s = context;
    struct file_replacement *file = file_replace("test", s->path);
    size_t half = strlen(s->text) / 2;
    bool ok = file && file_write(file, s->text, half) &&
              file_write(file, s->text + half, strlen(s->text) - half);
    if (!ok)
        file_abandon(file);
    else if (file_commit(file))
        return SAVED;
    if (strstr(sb_error(), "is replaced, but"))
        return NOT_SYNCED;
    return strstr(sb_error(), s->reason) || strstr(sb_error(), "memory") ? FAILED : UNCLEAR;
}

CPU_TEST(file_replacement, a_process_killed_at_any_system_call_leaves_the_old_or_the_new_file)
{
    const char *path = test_temporary("a.txt");
    char *text = long_text(150000);
    int old_left = 0, new_left = 0;
    for (int at = 0;; at++) {
        put(path, "old");
        struct saving s = {path, text, ""};
        struct trace trace = trace_run(save_traced, &s, TRACE_KILL, at, 0);
        if (!trace.possible)
            cr_skip_test("no permission to trace a process");
        cr_assert(trace.killed || trace.result == SAVED);
        bool is_old = holds(path, "old"), is_new = holds(path, text);
        cr_assert(is_old || is_new, "neither the old nor the new file after call %d", at);
        cr_assert(is_new || trace.killed);
        old_left += is_old;
        new_left += is_new;
        if (!trace.killed)
            break;
        cr_assert(save(path, "next"), "after a kill at call %d: %s", at, sb_error());
        cr_assert(holds(path, "next") && !file_exists(part(path)));
    }
    cr_expect(old_left > 8 && new_left > 2, "%d old, %d new", old_left, new_left);
}

/* Fails each call with the error and calls expect(path, text, outcome, number). Returns how many.
 */
static int fail_each_call(int error, const char *text,
                          void (*expect)(const char *path, const char *text, int result,
                                         long number))
{
    const char *path = test_temporary("a.txt"), *link = test_temporary("link");
    struct saving s = {link, text, strerror(error)};
    put(path, "old");
    cr_assert(symlink("a.txt", link) == 0);
    struct trace whole = trace_run(save_traced, &s, TRACE_WATCH, 0, 0);
    if (!whole.possible || !trace_can(TRACE_FAIL))
        cr_skip_test("no permission to trace a process, or another processor");
    int tried = 0;
    for (int at = 0; at < whole.calls; at++) {
        put(path, "old");
        struct trace trace = trace_run(save_traced, &s, TRACE_FAIL, at, error);
        cr_assert(trace.number[at] == whole.number[at]);
        expect(path, text, trace.result, whole.number[at]);
        struct stat about;
        cr_assert(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
        cr_assert(!file_exists(part(path)), "after a failing call %ld", whole.number[at]);
        tried++;
    }
    return tried;
}

static void expect_old_or_new(const char *path, const char *text, int result, long number)
{
    cr_assert(result == SAVED || result == FAILED || result == NOT_SYNCED, "call %ld: result %d",
              number, result);
    cr_assert(holds(path, result == FAILED ? "old" : text), "call %ld", number);
}

CPU_TEST(file_replacement, a_failing_system_call_keeps_the_old_file_and_is_reported)
{
    char *text = long_text(150000);
    int tried = fail_each_call(EIO, text, expect_old_or_new);
    cr_expect(tried > 12, "%d calls", tried);
}

static void expect_saved(const char *path, const char *text, int result, long number)
{
    if (number == SYS_write || number == SYS_fsync || number == SYS_openat)
        cr_assert(result == SAVED && holds(path, text), "call %ld: result %d", number, result);
}

CPU_TEST(file_replacement, interrupted_calls_are_repeated)
{
    char *text = long_text(150000);
    int tried = fail_each_call(EINTR, text, expect_saved);
    cr_expect(tried > 12, "%d calls", tried);
}

CPU_TEST(file_replacement, short_writes_are_continued)
{
    const char *path = test_temporary("a.txt");
    struct saving s = {path, "written byte by byte", ""};
    struct trace trace = trace_run(save_traced, &s, TRACE_SHORT_WRITE, 0, 0);
    if (!trace.possible || !trace_can(TRACE_SHORT_WRITE))
        cr_skip_test("no permission to trace a process, or another processor");
    int writes = 0;
    for (int i = 0; i < trace.calls; i++)
        writes += trace.number[i] == SYS_write;
    cr_expect(trace.result == SAVED && writes == (int)strlen(s.text), "%d writes", writes);
    cr_expect(holds(path, s.text));
}

/* A power failure cannot be tested here, but the order of calls that protects against it can. */
CPU_TEST(file_replacement, it_is_written_then_synced_then_renamed_then_the_folder_is_synced)
{
    struct saving s = {test_temporary("a.txt"), "text", ""};
    struct trace trace = trace_run(save_traced, &s, TRACE_WATCH, 0, 0);
    if (!trace.possible)
        cr_skip_test("no permission to trace a process");
    char order[TRACE_CALLS] = "";
    for (int i = 0, used = 0; i < trace.calls; i++) {
        long number = trace.number[i];
        if (number == SYS_write)
            order[used++] = 'w';
        if (number == SYS_fsync)
            order[used++] = 's';
        if (number == SYS_renameat2 || number == SYS_renameat)
            order[used++] = 'r';
#ifdef SYS_rename
        if (number == SYS_rename)
            order[used++] = 'r';
#endif
    }
    cr_expect(trace.result == SAVED && strcmp(order, "wsrs") == 0, "%s", order);
}
