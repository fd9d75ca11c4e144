/*
 * All file access: reading files, and replacing a file atomically.
 *
 * `who` opens the messages, which name the file and the system's reason. It must outlive the call
 * and the object that the call returns.
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
/* Reads exactly these bytes; fails when the file ends before them. */
bool file_read(const struct file *file, int64_t offset, void *bytes, size_t size);
void file_close(struct file *file); /* NULL is allowed */

/* Reads all of a file or pipe and appends a NUL; free it with memory_free. Fails above `limit`
   bytes. */
char *file_text(const char *who, const char *path, size_t limit, size_t *size);

/* Whether the path exists. */
bool file_exists(const char *path);

/*
 * Replaces a file atomically: a reader of `path` gets the complete old file or the complete new
 * one, even if the process is killed or the machine stops at any moment.
 *
 * The new contents go to <path>.softback-part in the same folder; file_commit syncs that file,
 * renames it, and syncs the folder. The new file gets the permissions, and if possible the owner,
 * of the old file, or the permissions of the umask. A symbolic link is followed and stays. On
 * failure the old file is unchanged and the temporary file is removed; after a killed process, the
 * next replacement of the file removes it. Two concurrent replacements of one file are refused.
 */
struct file_replacement;

struct file_replacement *file_replace(const char *who, const char *path);
/* The same for a file that must not exist: of two that create it, one fails. */
struct file_replacement *file_create(const char *who, const char *path);
/* After a failure, all further writes and the commit fail too and keep the first message. */
bool file_write(struct file_replacement *file, const void *bytes, size_t size);
/* Puts the new file in place, and frees the object in any case. */
bool file_commit(struct file_replacement *file);
void file_abandon(struct file_replacement *file); /* the old file stays; NULL is allowed */

/* Whether a file can be replaced: makes its temporary file, and removes it. */
bool file_try(const char *who, const char *path);

/* All of the above in one call. */
bool file_save(const char *who, const char *path, const void *bytes, size_t size);

/* For callers that need a descriptor, to lock a file. "<who>: cannot <attempt> <path>: <errno's
 * reason>". */
void *file_fail(const char *who, const char *attempt, const char *path);
/* open(2), again when a signal interrupts it, and not inherited by programs that are started. */
int file_descriptor(const char *path, int flags, unsigned mode);

#endif
