#include "tensor/plugin_file.h"
#include "tensor/error.h"
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of the library or program that contains this function, ending in a slash, or "". */
static void own_folder(size_t size, char *folder)
{
    Dl_info about;
    struct link_map *map = NULL;
    folder[0] = '\0';
    if (!dladdr1((void *)(uintptr_t)plugin_file_open, &about, (void **)&map, RTLD_DL_LINKMAP) ||
        !map)
        return;
    if (map->l_name[0]) {
        snprintf(folder, size, "%s", map->l_name);
    } else { /* the program itself */
        ssize_t length = readlink("/proc/self/exe", folder, size - 1);
        folder[length > 0 ? length : 0] = '\0';
    }
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
}

static void *open_library(const char *name)
{
    char path[4096];
    own_folder(sizeof path, path);
    strncat(path, name, sizeof path - strlen(path) - 1);
    bool beside = !strchr(name, '/') && access(path, R_OK) == 0;
    return dlopen(beside ? path : name, RTLD_NOW | RTLD_LOCAL);
}

void *plugin_file_open(const char *who, const char *name, const char *symbol, void *function)
{
    void *library = open_library(name);
    if (!library)
        return sb_fail("%s: cannot open the plug-in %s: %s", who, name, dlerror());
    void *found = dlsym(library, symbol);
    memcpy(function, &found,
           sizeof found); /* ISO C has no conversion from data pointers to function pointers */
    if (found)
        return library;
    sb_fail("%s: %s is not a softback plug-in: it has no %s", who, name, symbol);
    dlclose(library);
    return NULL;
}

void plugin_file_close(void *library)
{
    dlclose(library);
}
