/* The word that somebody may have meant. */
#ifndef SOFTBACK_PROGRAM_NEAREST_H
#define SOFTBACK_PROGRAM_NEAREST_H

/* Of the words name(list, 0), name(list, 1), ... up to a NULL, the one that is most alike; NULL
   when none is alike at all. */
const char *nearest_word(const char *word, const char *(*name)(const void *list, int i),
                         const void *list);

#endif
