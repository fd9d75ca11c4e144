#include "program/run/paths.h"
#include "program/run/log.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"
#include "tensor/error.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_FOLLOWED = 40 };

/* Where a path leads. */
struct place {
    int error; /* errno, when it leads nowhere */
    bool exists;
    struct stat about;     /* of the file, or else of its folder */
    char target[PATH_MAX]; /* the resolved path; without a file, its last part is the name */
    size_t folder;         /* how much of it is the folder, with the last '/' */
};

/* ---- where a path leads ---- */

/* Puts the target of a symbolic link in its place; false when there is none. */
static bool paths_follow(struct place *p)
{
    char link[PATH_MAX];
    const ssize_t size = readlink(p->target, link, sizeof link - 1);
    if (size <= 0)
        return false;
    link[size] = '\0';
    const size_t kept = link[0] == '/' ? 0 : p->folder; /* an absolute link replaces the folder */
    if (kept + (size_t)size < sizeof p->target)
        memcpy(p->target + kept, link, (size_t)size + 1);
    else
        p->error = ENAMETOOLONG;
    return true;
}

/* Cuts slashes off the end, and finds the folder. */
static void paths_split(struct place *p)
{
    size_t size = strlen(p->target);
    while (size > 1 && p->target[size - 1] == '/')
        p->target[--size] = '\0';
    const char *slash = strrchr(p->target, '/');
    p->folder = slash ? (size_t)(slash - p->target) + 1 : 0;
}

/* The first `size` bytes of a path; 0: the folder that the program runs in. */
static struct path_text paths_begin(const char *path, size_t size)
{
    return path_format("%.*s", size ? (int)size : 1, size ? path : ".");
}

static struct place paths_find(const char *path)
{
    struct place p = {.error = strlen(path) >= sizeof p.target ? ENAMETOOLONG : 0};
    snprintf(p.target, sizeof p.target, "%s", path);
    for (int links = 0; p.error == 0; links++) {
        paths_split(&p);
        p.exists = stat(p.target, &p.about) == 0;
        if (p.exists)
            return p;
        p.error = errno != ENOENT ? errno : links == LINKS_FOLLOWED ? ELOOP : 0;
        if (p.error == 0 && !paths_follow(&p)) {
            if (stat(paths_begin(p.target, p.folder).text, &p.about) != 0)
                p.error = errno;
            else if (!S_ISDIR(p.about.st_mode))
                p.error = ENOTDIR;
            return p;
        }
    }
    return p;
}

void paths_add(struct paths *paths, enum path_use use, const char *role, const char *path)
{
    if (!path || paths->failed)
        return;
    char *copy = use == PATH_TEMPORARY ? memory_format("%s.softback-part", paths_find(path).target)
                                       : memory_text(path);
    paths->failed = !copy || paths->count == MOST_PATHS;
    if (paths->failed) {
        memory_free(copy);
        return;
    }
    paths->item[paths->count++] = (struct path){role, copy, use};
    if (use == PATH_CREATED || use == PATH_NEW || use == PATH_PAGE || use == PATH_FIGURE)
        paths_add(paths, PATH_TEMPORARY, role, path);
}

const char *paths_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct path_text path_format(const char *format, ...)
{
    struct path_text path;
    va_list values;
    va_start(values, format);
    vsnprintf(path.text, sizeof path.text, format, values);
    va_end(values);
    return path;
}

struct path_text paths_beside(const char *out, const char *mark, const char *ending)
{
    const char *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
    bool has_ending = dot && (!slash || dot > slash + 1) && dot != out;
    int stem = (int)(has_ending ? dot - out : (long)strlen(out));
    return path_format("%.*s%s%s", stem, out, mark, ending ? ending : has_ending ? dot : "");
}

void paths_add_model(struct paths *paths, const char *out)
{
    paths_add(paths, PATH_CREATED, "--out", out);
    paths_add(paths, PATH_CREATED, "the state of --out", paths_beside(out, ".state", NULL).text);
}

void paths_add_numbered(struct paths *paths, const char *role, const char *prefix,
                        const char *ending)
{
    const char *begins = paths_name(prefix);
    const int others = paths->count;
    for (int i = 0; i < others; i++) {
        const struct place place = paths_find(paths->item[i].path);
        const char *name = paths_name(place.target);
        const bool like = strncmp(name, begins, strlen(begins)) == 0;
        const long long number = like ? strtoll(name + strlen(begins), NULL, 10) : 0;
        if (number > 0)
            paths_add(paths, PATH_NEW, role, path_format("%s%lld%s", prefix, number, ending).text);
    }
}

/* ---- two paths, one file ---- */

/* Devices and pipes have no content to overwrite. */
static bool paths_same_file(const struct place *a, const struct place *b)
{
    if (a->error || b->error || a->exists != b->exists || a->about.st_dev != b->about.st_dev ||
        a->about.st_ino != b->about.st_ino)
        return false;
    return a->exists ? S_ISREG(a->about.st_mode)
                     : strcmp(a->target + a->folder, b->target + b->folder) == 0;
}

static bool paths_is_standard_input(const struct path *path)
{
    return path->use == PATH_READ && strcmp(path->path, "-") == 0;
}

static const char *paths_part_of(const struct path *path)
{
    return path->use == PATH_TEMPORARY ? "the temporary file of " : "";
}

static bool paths_check_pair(const struct path *a, const struct path *b)
{
    if ((a->use == PATH_READ && b->use == PATH_READ) || paths_is_standard_input(a) ||
        paths_is_standard_input(b))
        return true;
    const struct place x = paths_find(a->path), y = paths_find(b->path);
    return !paths_same_file(&x, &y) ||
           sb_fail("%s%s %s and %s%s %s are the same file; give one of them another name",
                   paths_part_of(a), a->role, utf8_quote(a->path).text, paths_part_of(b), b->role,
                   utf8_quote(b->path).text);
}

/* ---- what may be written ---- */

/* What softback may write over, by how it begins. */
static bool paths_is_own(enum path_use use, const char *head)
{
    const char *signature = use == PATH_PAGE ? SIGNATURE_PAGE : SIGNATURE_FIGURE;
    return use == PATH_LOG ? log_begins(head)
                           : !head[0] || strncmp(head, signature, strlen(signature)) == 0;
}

static bool paths_refuse(const struct path *path, const char *problem, const char *remedy)
{
    return sb_fail("%s%s %s: %s; %s", paths_part_of(path), path->role, utf8_quote(path->path).text,
                   problem, remedy);
}

static bool paths_check_content(const struct path *path, const struct place *place)
{
    if (path->use == PATH_NEW)
        return true;
    if (path->use == PATH_CREATED)
        return paths_refuse(path, "it exists already", "move it away or name another file");
    char head[LOG_HEAD];
    FILE *file = fopen(place->target, "rb");
    if (!file)
        return paths_refuse(path, strerror(errno), "name another file");
    errno = 0;
    head[fread(head, 1, sizeof head - 1, file)] = '\0';
    const int reason = ferror(file) ? errno : 0;
    fclose(file);
    if (reason)
        return paths_refuse(path, strerror(reason), "name another file");
    if ((head[0] || place->about.st_size == 0) && paths_is_own(path->use, head))
        return true;
    const long long format = path->use == PATH_LOG ? run_log_format(head) : -1;
    char problem[80];
    snprintf(problem, sizeof problem, "its format is %lld, expected %d", format, LOG_FORMAT);
    if (format >= 0)
        return paths_refuse(path, problem,
                            "move it away and train the model anew with this version");
    return paths_refuse(path,
                        path->use == PATH_PAGE     ? "it is not a report of softback"
                        : path->use == PATH_FIGURE ? "it is not a figure of softback"
                                                   : "it is not a log of softback",
                        "move it away or name another file");
}

static bool paths_check_access(const struct path *path)
{
    if (path->use != PATH_LOG)
        return file_try(path->role, path->path) || sb_fail("%s; name another file", sb_error());
    const struct place p = paths_find(path->path);
    const struct path_text at = paths_begin(p.target, p.exists ? strlen(p.target) : p.folder);
    return faccessat(AT_FDCWD, at.text, p.exists ? W_OK : W_OK | X_OK, AT_EACCESS) == 0 ||
           paths_refuse(path, strerror(errno), "name another file");
}

static bool paths_check_written(const struct path *path)
{
    const struct place p = paths_find(path->path);
    const size_t size = strlen(path->path);
    const bool special = p.exists && !S_ISREG(p.about.st_mode);
    if (size == 0)
        return paths_refuse(path, "the name is empty", "name a file");
    if (path->path[size - 1] == '/' || (p.exists && S_ISDIR(p.about.st_mode)))
        return paths_refuse(path, "it is a folder", "name a file in it");
    if (p.error == ENOENT)
        return paths_refuse(path, "its folder does not exist", "create it or name another file");
    if (p.error)
        return paths_refuse(path, strerror(p.error), "name another file");
    if (special && path->use != PATH_LOG)
        return paths_refuse(path, "it is a device or pipe", "name a file");
    return path->use == PATH_TEMPORARY || !p.exists || special || paths_check_content(path, &p);
}

/* ---- all of them ---- */

static bool paths_check_all(const struct paths *paths)
{
    const struct path *path = paths->item, *end = path + paths->count;
    for (const struct path *a = path; a < end; a++)
        for (const struct path *b = a + 1; b < end; b++)
            if (!paths_check_pair(a, b))
                return false;
    for (const struct path *a = path; a < end; a++)
        if (a->use != PATH_READ && !paths_check_written(a))
            return false;
    for (const struct path *a = path; a < end; a++) /* last, as it makes temporary files */
        if (a->use != PATH_READ && a->use != PATH_TEMPORARY && !paths_check_access(a))
            return false;
    return true;
}

bool paths_check(struct paths *paths)
{
    const bool ok =
        paths->failed ? sb_fail("out of memory for paths") != NULL : paths_check_all(paths);
    for (int i = 0; i < paths->count; i++)
        memory_free(paths->item[i].path);
    *paths = (struct paths){0};
    return ok;
}
