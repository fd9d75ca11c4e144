/*
 * The files that a command reads and writes, checked together before it begins its work.
 *
 * Paths are compared as files: by device and inode where there is a file, otherwise by the folder
 * and the name in it, behind all links.
 */
#ifndef SOFTBACK_PROGRAM_PATHS_H
#define SOFTBACK_PROGRAM_PATHS_H

#include <stdbool.h>

enum path_use {
    PATH_READ,
    PATH_NEW, /* written; the command itself refuses what it may not write over */
    PATH_LOG,
    PATH_LOG_RESUMED, /* one of an earlier version goes on too */
    PATH_PAGE,
    PATH_FIGURE,
    PATH_TEMPORARY, /* added by paths_add, of files that are replaced as a whole */
};

enum { MOST_PATHS = 160 };

struct paths {
    bool failed; /* without memory */
    int count;
    struct path {
        const char *role; /* "--log" */
        char *path;
        enum path_use use;
    } item[MOST_PATHS];
};

/* Adds a path; NULL is none. `role` is kept. */
void paths_add(struct paths *paths, enum path_use use, const char *role, const char *path);

/*
 * Whether each path that is written has a file of its own, in a folder that is there and can be
 * written to, where nothing is yet or what softback wrote for that use. Leaves all files as they
 * are. Frees the paths in any case.
 */
bool paths_check(struct paths *paths);

#endif
