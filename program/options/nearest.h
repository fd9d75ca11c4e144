/* Suggests a name for a misspelt one. */
#ifndef SOFTBACK_PROGRAM_OPTIONS_NEAREST_H
#define SOFTBACK_PROGRAM_OPTIONS_NEAREST_H

/* The one of name(list, 0), name(list, 1), ... up to a NULL with the least edit distance; NULL when
   none is near. */
const char *nearest_word(const char *word, const char *(*name)(const void *list, int i),
                         const void *list);

#endif
