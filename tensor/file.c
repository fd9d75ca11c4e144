#include "tensor/file.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    int descriptor;
    int64_t size;
    const char *who;
    char *path;
};

void *file_fail(const char *who, const char *attempt, const char *path)
{
    const char *reason = strerror(errno);
    return sb_fail("%s: cannot %s %s: %s", who, attempt, utf8_quote(path).text, reason);
}

int file_descriptor(const char *path, int flags, unsigned mode)
{
    int descriptor;
    do
        descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

void file_close(struct file *file)
{
    if (!file)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    memory_free(file->path);
    memory_free(file);
}

/* Without O_NONBLOCK, opening a pipe that has no writer would block forever. */
static bool open_regular(struct file *file)
{
    struct stat about;
    file->descriptor = file_descriptor(file->path, O_RDONLY | O_NONBLOCK, 0);
    if (file->descriptor < 0 || fstat(file->descriptor, &about) != 0)
        return file_fail(file->who, "open", file->path);
    if (S_ISDIR(about.st_mode))
        return sb_fail("%s: %s is a folder", file->who, utf8_quote(file->path).text);
    if (!S_ISREG(about.st_mode))
        return sb_fail("%s: %s is not a regular file", file->who, utf8_quote(file->path).text);
    file->size = about.st_size;
    return true;
}

struct file *file_open(const char *who, const char *path)
{
    if (!path)
        return fail_null(who, "path");
    struct file *file = memory_new(sizeof *file);
    if (!file)
        return sb_fail("%s: out of memory", who);
    *file = (struct file){.descriptor = -1, .who = who, .path = memory_text(path)};
    bool ok = file->path ? open_regular(file) : sb_fail("%s: out of memory", who) != NULL;
    if (ok)
        return file;
    file_close(file);
    return NULL;
}

int64_t file_size(const struct file *file)
{
    return file->size;
}

bool file_read(const struct file *file, int64_t offset, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        off_t at = (off_t)(offset + (int64_t)done);
        ssize_t count = pread(file->descriptor, (char *)bytes + done, size - done, at);
        if (count < 0 && errno != EINTR)
            return file_fail(file->who, "read", file->path);
        if (count == 0)
            return sb_fail("%s: %s ends at byte %lld, within the %zu bytes wanted from %lld on",
                           file->who, utf8_quote(file->path).text, (long long)at, size,
                           (long long)offset);
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* Reads from the descriptor to its end. */
static char *read_to_end(const char *who, const char *path, int descriptor, size_t limit,
                         size_t *size)
{
    struct stat about;
    bool known = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= 0;
    size_t room = known && (uint64_t)about.st_size < limit ? (size_t)about.st_size + 2 : 4096;
    char *text = memory_new(room);
    *size = 0;
    for (ssize_t count = -1; text && count != 0;) {
        count = read(descriptor, text + *size, room - 1 - *size);
        if (count < 0 && errno != EINTR) {
            file_fail(who, "read", path);
            memory_free(text);
            return NULL;
        }
        *size += count > 0 ? (size_t)count : 0;
        if (*size > limit) {
            memory_free(text);
            return sb_fail("%s: %s is larger than %zu bytes, the most that is read", who,
                           utf8_quote(path).text, limit);
        }
        if (*size == room - 1) {
            char *grown = memory_resize(text, room *= 2);
            if (!grown)
                memory_free(text);
            text = grown;
        }
    }
    if (!text)
        return sb_fail("%s: out of memory for %s", who, utf8_quote(path).text);
    return text; /* new memory is zero, so a NUL follows */
}

char *file_text(const char *who, const char *path, size_t limit, size_t *size)
{
    if (!path || !size)
        return fail_null(who, path ? "size" : "path");
    int descriptor = file_descriptor(path, O_RDONLY, 0);
    if (descriptor < 0)
        return file_fail(who, "open", path);
    char *text = read_to_end(who, path, descriptor, limit, size);
    close(descriptor);
    return text;
}

bool file_exists(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0;
}
