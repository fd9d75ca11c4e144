/*
 * File access, all of it: reading, and replacing a file as a whole.
 *
 * `who` opens the messages, each of which names the file and the system's reason. It must be a
 * text that outlives the call, or the object that is returned.
 */
#ifndef SOFTBACK_TENSOR_FILE_H
#define SOFTBACK_TENSOR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file, open for reading. Several threads may read from it. */
struct file;

struct file *file_open(const char *who, const char *path);
int64_t file_size(const struct file *file); /* in bytes, when it was opened */
/* Reads exactly these bytes; a file that ends before them is a failure. */
bool file_read(const struct file *file, int64_t offset, void *bytes, size_t size);
void file_close(struct file *file); /* NULL is allowed */

/* All that a file (or a pipe) holds, followed by a NUL; to be freed with memory_free. Fails when
   it is more than `limit` bytes. */
char *file_text(const char *who, const char *path, size_t limit, size_t *size);

/* Whether something is there. */
bool file_exists(const char *path);

/* Adds to the end of a file, which is made if it is not there. */
bool file_append(const char *who, const char *path, const void *bytes, size_t size);

/*
 * The replacement of a file by another, at once: whoever opens `path` sees the whole old file or
 * the whole new one, also when the process is killed or the machine stops at any moment.
 *
 * The new contents go to <path>.softback-part in the same folder; file_commit syncs that, renames
 * it, and syncs the folder. Permissions, and where possible the owner, are the old file's, or else
 * what the umask leaves. A symbolic link is followed and stays. On a failure the old file stays as
 * it was and the temporary file is removed; one that a killed process left behind is removed by the
 * next replacement of the same file. Two replacements of one file at a time are refused.
 */
struct file_replacement;

struct file_replacement *file_replace(const char *who, const char *path);
/* After a failure, all further writes and the commit fail too; the first one leaves the message. */
bool file_write(struct file_replacement *file, const void *bytes, size_t size);
/* Puts the new file in place, and frees the object in any case. */
bool file_commit(struct file_replacement *file);
void file_abandon(struct file_replacement *file); /* the old file stays; NULL is allowed */

/* All of the above in one call. */
bool file_save(const char *who, const char *path, const void *bytes, size_t size);

/* For the files that implement this header. "<who>: cannot <attempt> <path>: <errno's reason>". */
void *file_fail(const char *who, const char *attempt, const char *path);
/* open(2), again when a signal interrupts it, and not inherited by programs that are started. */
int file_descriptor(const char *path, int flags, unsigned mode);
/* write(2), until all is written or it fails. */
bool file_put(int descriptor, const void *bytes, size_t size);

#endif
