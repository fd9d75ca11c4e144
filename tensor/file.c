#include "tensor/file.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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

/* ---- replacing a file ---- */

enum { BUFFER_BYTES = 1 << 16, LINKS_FOLLOWED = 40, ATTEMPTS = 100 };

struct file_replacement {
    const char *who;
    char *path;      /* the path of the file after following symbolic links */
    char *temporary; /* in the same folder, so that it can be renamed */
    char *folder;
    int descriptor; /* of the temporary file, locked; -1: none */
    bool failed;
    size_t used; /* of the buffer */
    unsigned char buffer[BUFFER_BYTES];
};

/* write(2), until all is written or it fails. */
static bool file_put(int descriptor, const void *bytes, size_t size)
{
    const size_t most = 1 << 30; /* Linux writes at most 2^31 - 4096 bytes in one call */
    for (const char *at = bytes; size > 0;) {
        ssize_t count = write(descriptor, at, size < most ? size : most);
        if (count == 0)
            errno = EIO;
        if (count == 0 || (count < 0 && errno != EINTR))
            return false;
        at += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* The length of the part of a path that names its folder, with the last '/'. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* The target of a path after following symbolic links; the target need not exist. */
static char *follow_links(const char *who, const char *path)
{
    char *target = memory_text(path);
    for (int links = 0; target; links++) {
        char link[PATH_MAX];
        ssize_t size = readlink(target, link, sizeof link - 1);
        if (size < 0 && (errno == EINVAL || errno == ENOENT))
            return target; /* not a link, or does not exist */
        if (size >= 0 && links == LINKS_FOLLOWED)
            errno = ELOOP;
        if (size < 0 || links == LINKS_FOLLOWED) {
            file_fail(who, "write", path);
            memory_free(target);
            return NULL;
        }
        link[size] = '\0';
        int folder = link[0] == '/' ? 0 : folder_length(target);
        char *next = memory_format("%.*s%s", folder, target, link);
        memory_free(target);
        target = next;
    }
    return sb_fail("%s: out of memory", who);
}

/* Whether the path still leads to the file that the descriptor has open. */
static bool leads_to(const char *path, int descriptor)
{
    struct stat at_path, open_one;
    return lstat(path, &at_path) == 0 && fstat(descriptor, &open_one) == 0 &&
           at_path.st_dev == open_one.st_dev && at_path.st_ino == open_one.st_ino;
}

/* Locks a temporary file. Its writer holds the lock, which the system releases when a process ends;
   without support for locks this succeeds. */
static bool lock(struct file_replacement *file, int descriptor)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true;
    return sb_fail("%s: %s is being written by another process", file->who,
                   utf8_quote(file->path).text);
}

/* Removes the temporary file of a process that was killed. Only the holder of its lock may. */
static bool remove_stale(struct file_replacement *file)
{
    int descriptor = file_descriptor(file->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (descriptor < 0)
        return errno == ENOENT || file_fail(file->who, "open", file->temporary);
    bool ok = lock(file, descriptor);
    if (ok && leads_to(file->temporary, descriptor) && unlink(file->temporary) != 0)
        ok = file_fail(file->who, "remove", file->temporary);
    close(descriptor);
    return ok;
}

/* Makes the temporary file and locks it. Before it has the lock, another process may remove the
   file as stale; then it tries again. */
static bool make_temporary(struct file_replacement *file, unsigned mode)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int descriptor = file_descriptor(file->temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (descriptor >= 0) {
            bool locked = lock(file, descriptor);
            if (locked && leads_to(file->temporary, descriptor)) {
                file->descriptor = descriptor;
                return true;
            }
            close(descriptor);
            if (!locked)
                return false;
        } else if (errno != EEXIST) {
            return file_fail(file->who, "make", file->temporary);
        } else if (!remove_stale(file)) {
            return false;
        }
    }
    return sb_fail("%s: %s reappears whenever it is removed", file->who,
                   utf8_quote(file->temporary).text);
}

/* Copies owner and permissions of the old file as far as the system allows. If the group cannot be
   copied, the new file grants no rights to its group. */
static void copy_permissions(int descriptor, const struct stat *old)
{
    bool same_group = fchown(descriptor, old->st_uid, old->st_gid) == 0 ||
                      fchown(descriptor, (uid_t)-1, old->st_gid) == 0;
    if (fchmod(descriptor, old->st_mode & (same_group ? 0777 : 0707)) != 0)
        return; /* it keeps 0600 */
}

static bool begin(struct file_replacement *file, const char *path)
{
    const char *who = file->who;
    file->path = follow_links(who, path);
    if (!file->path)
        return false;
    int folder = folder_length(file->path);
    file->temporary = memory_format("%s.softback-part", file->path);
    file->folder = folder ? memory_text_part(file->path, (size_t)folder) : memory_text(".");
    if (!file->temporary || !file->folder)
        return sb_fail("%s: out of memory", who);
    struct stat old;
    bool replaces = stat(file->path, &old) == 0;
    if (!replaces && errno != ENOENT)
        return file_fail(who, "write", file->path);
    if (replaces && S_ISDIR(old.st_mode))
        return sb_fail("%s: %s is a folder", who, utf8_quote(file->path).text);
    if (replaces && !S_ISREG(old.st_mode))
        return sb_fail("%s: %s is not a regular file", who, utf8_quote(file->path).text);
    if (replaces && faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0)
        return file_fail(who, "write", file->path);
    if (!make_temporary(file, replaces ? 0600 : 0666))
        return false;
    if (replaces)
        copy_permissions(file->descriptor, &old);
    return true;
}

struct file_replacement *file_replace(const char *who, const char *path)
{
    if (!path)
        return fail_null(who, "path");
    if (!path[0])
        return sb_fail("%s: the path is empty", who);
    struct file_replacement *file = memory_new(sizeof *file);
    if (!file)
        return sb_fail("%s: out of memory", who);
    file->who = who;
    file->descriptor = -1;
    if (begin(file, path))
        return file;
    file_abandon(file);
    return NULL;
}

/* A file is renamed to its path while its writer holds the lock, so none appears after this. */
struct file_replacement *file_create(const char *who, const char *path)
{
    struct file_replacement *file = file_replace(who, path);
    if (!file || !file_exists(file->path))
        return file;
    sb_fail("%s: %s exists already; move it away, or name another file", who,
            utf8_quote(path).text);
    file_abandon(file);
    return NULL;
}

/* Frees the object. */
static bool discard(struct file_replacement *file, bool reports)
{
    const bool removed = file->descriptor < 0 || unlink(file->temporary) == 0;
    if (!removed && reports)
        file_fail(file->who, "remove", file->temporary);
    if (file->descriptor >= 0)
        close(file->descriptor);
    memory_free(file->path);
    memory_free(file->temporary);
    memory_free(file->folder);
    memory_free(file);
    return removed;
}

/* Keeps the message of what went wrong before; the next replacement removes what is left. */
void file_abandon(struct file_replacement *file)
{
    if (file)
        discard(file, false);
}

bool file_try(const char *who, const char *path)
{
    struct file_replacement *file = file_replace(who, path);
    return file && discard(file, true);
}

static bool put(struct file_replacement *file, const void *bytes, size_t size)
{
    if (!file->failed && !file_put(file->descriptor, bytes, size)) {
        file_fail(file->who, "write", file->temporary);
        file->failed = true;
    }
    return !file->failed;
}

static bool flush(struct file_replacement *file)
{
    size_t size = file->used;
    file->used = 0;
    return put(file, file->buffer, size);
}

bool file_write(struct file_replacement *file, const void *bytes, size_t size)
{
    if (file->failed || (size > BUFFER_BYTES - file->used && !flush(file)))
        return false;
    if (size > BUFFER_BYTES)
        return put(file, bytes, size);
    memcpy(file->buffer + file->used, bytes, size);
    file->used += size;
    return true;
}

static bool sync_retrying(int descriptor)
{
    int result;
    do
        result = fsync(descriptor);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Makes a rename durable. Some file systems cannot sync folders (EINVAL), and a writable folder may
   be unreadable (EACCES): these are not failures. */
static bool sync_folder(const struct file_replacement *file)
{
    int descriptor = file_descriptor(file->folder, O_RDONLY | O_DIRECTORY, 0);
    bool ok = descriptor >= 0 ? sync_retrying(descriptor) || errno == EINVAL : errno == EACCES;
    if (!ok)
        sb_fail("%s: %s is replaced, but the new one may be lost if the machine stops now: cannot "
                "sync its folder: %s",
                file->who, utf8_quote(file->path).text, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return ok;
}

bool file_commit(struct file_replacement *file)
{
    if (!file)
        return fail_null("file_commit", "file");
    bool ok = flush(file);
    if (ok && !sync_retrying(file->descriptor))
        ok = file_fail(file->who, "sync", file->temporary);
    /* Keeps the lock until after the rename, so that no other process removes the file as stale. */
    if (ok && rename(file->temporary, file->path) != 0)
        ok = file_fail(file->who, "rename the temporary file to", file->path);
    if (!ok) {
        file_abandon(file);
        return false;
    }
    close(file->descriptor);
    file->descriptor = -1;
    ok = sync_folder(file);
    file_abandon(file);
    return ok;
}

bool file_save(const char *who, const char *path, const void *bytes, size_t size)
{
    struct file_replacement *file = file_replace(who, path);
    if (!file)
        return false;
    file_write(file, bytes, size);
    return file_commit(file);
}
