/*
 * The files that a command reads and writes, checked together before it begins its work.
 *
 * Paths are compared as files: by device and inode where there is a file, otherwise by the folder
 * and the name in it, after links are followed.
 */
#ifndef SOFTBACK_PROGRAM_RUN_PATHS_H
#define SOFTBACK_PROGRAM_RUN_PATHS_H

#include <limits.h>
#include <stdbool.h>

enum path_use {
    PATH_READ,
    PATH_CREATED, /* must not exist yet */
    PATH_NEW,     /* written; the command itself refuses a file that exists */
    PATH_LOG,
    PATH_PAGE,
    PATH_FIGURE,
    PATH_TEMPORARY, /* added by paths_add for each file that is replaced as a whole */
};

enum { MOST_PATHS = 256 };

struct paths {
    bool failed; /* out of memory */
    int count;
    struct path {
        const char *role; /* "--log" */
        char *path;
        enum path_use use;
    } item[MOST_PATHS];
};

/* Adds a path, unless it is NULL. `role` must outlive the paths. */
void paths_add(struct paths *paths, enum path_use use, const char *role, const char *path);

/* A path. What does not fit is cut off; the rest is then too long for the system, which refuses it.
 */
struct path_text {
    char text[PATH_MAX + 1];
};
struct path_text path_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "model.safetensors" and ".state" make "model.state.safetensors"; an ending, if given, replaces
   the path's own. */
struct path_text paths_beside(const char *out, const char *mark, const char *ending);

/* Adds the model that a command makes. Neither it nor its state may exist: a run with that state
   writes the model too. */
void paths_add_model(struct paths *paths, const char *out);

/* The last part of a path. */
const char *paths_name(const char *path);

/* Adds the files <prefix>N<ending> that paths added before may name; which numbers N a command
   writes need not be known. */
void paths_add_numbered(struct paths *paths, const char *role, const char *prefix,
                        const char *ending);

/*
 * Whether each written path names a file of its own, in a folder that exists and can be written to,
 * and that file does not exist or was written by softback for the same use. Changes no file. Frees
 * the paths in any case.
 */
bool paths_check(struct paths *paths);

#endif
