/*
 * Settings: members of structs of options, by name and as texts. Tables of them define the options
 * of the command line, the values of descriptions, and the output of `softback info`.
 */
#ifndef SOFTBACK_MODELS_SETTING_H
#define SOFTBACK_MODELS_SETTING_H

#include "models/description.h"

enum setting_group { SETTING_OF_MODEL, SETTING_OF_TRAINING, SETTING_OF_DATA };

/* What 0 is in a struct of options and in files: itself, or the default. Whoever gives a 0 means
   it: then it becomes SB_ZERO, "-0" in files, unless a default of 0 makes no sense. */
enum setting_zero { ZERO_IS_ZERO, ZERO_IS_DEFAULT, ZERO_IS_DEFAULT_ALONE };

enum { SETTING_TEXT = 512 }; /* the most bytes of a setting's text, with the one that ends it */

/* One setting, bound to options: one of the pointers points to its value there. */
struct setting {
    const char *name; /* "feed-forward" */
    const char *help;
    enum setting_group group;
    int64_t *count;
    uint64_t *seed; /* a count too */
    int *small;     /* a count too */
    double *number;
    unsigned *choice; /* an enum */
    bool *flag;
    char *text;                 /* SETTING_TEXT bytes */
    const char *argument;       /* what a text is called in help: "PATTERN" */
    char separator;             /* between texts that were given one after the other */
    enum setting_zero zero;     /* of a number */
    double least, most;         /* of a count or number */
    const char *const *choices; /* of a choice, ended by NULL */
};

enum { MOST_SETTINGS = 128 };

struct setting_table {
    enum setting_group group; /* of the settings that are added next */
    int count;
    struct setting at[MOST_SETTINGS];
};

void setting_add_count(struct setting_table *table, const char *name, int64_t *count, double least,
                       double most, const char *help);
void setting_add_small(struct setting_table *table, const char *name, int *small, double least,
                       double most, const char *help);
void setting_add_seed(struct setting_table *table, const char *name, uint64_t *seed,
                      const char *help);
void setting_add_number(struct setting_table *table, const char *name, double *number, double least,
                        double most, const char *help);
void setting_add_flag(struct setting_table *table, const char *name, bool *flag, const char *help);
void setting_add_choice(struct setting_table *table, const char *name, unsigned *choice,
                        const char *const *choices, const char *help);

/* A text, empty by default. What is given later is appended, after the separator. */
void setting_add_text(struct setting_table *table, const char *name, char text[SETTING_TEXT],
                      const char *argument, char separator, const char *help);

/* Says of the number that was added last what its 0 is. */
void setting_zero(struct setting_table *table, enum setting_zero zero);

/* As setting_write, for a text that somebody gave: 0 is 0, and refused where it can only stand for
   the default. */
bool setting_give(const struct setting *setting, const char *text);

/* Sets one from text ("true" or "false" for a flag); the message names what was expected. */
bool setting_write(const struct setting *setting, const char *text);

/* Its value as text; a number is restored to the same bits. */
struct setting_text {
    char text[SETTING_TEXT];
};
struct setting_text setting_read(const struct setting *setting);

/* Copies all settings to a description, and back; settings that it lacks stay unchanged. */
bool settings_describe(const struct setting_table *table, sb_description *description);
bool settings_take(const struct setting_table *table, const sb_description *description);

#endif
