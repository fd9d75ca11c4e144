/* Options of the command line that stand for settings. */
#ifndef SOFTBACK_PROGRAM_SCREEN_OPTIONS_H
#define SOFTBACK_PROGRAM_SCREEN_OPTIONS_H

#include "models/training/settings.h"
#include <argp.h>

enum { SETTING_KEY = 1000, MOST_OPTIONS = 128 };

/* A command's n own options, then one for each setting, below a heading for each group. */
void options_with_settings(struct argp_option options[MOST_OPTIONS], const struct argp_option *own,
                           size_t n);

/* Handles an option of a setting; false for other keys. *error is argp's. */
bool options_parse(int key, const char *argument, struct argp_state *state,
                   struct settings *settings, bool given[], error_t *error);

/* Returns an argument that names a built-in task; otherwise ends the program as options_fail does,
   and suggests the nearest name. */
const char *options_task(struct argp_state *state, const char *argument);

/* The same for the name of an attention. */
const char *options_attention(struct argp_state *state, const char *argument);

/* For an argp parser: prints a message, made safe for a terminal, and leaves with the exit code for
   misuse; options_fail: sb_error(). */
void options_refuse(struct argp_state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void options_fail(struct argp_state *state);

/* A whole number in least..most; otherwise ends the program as options_fail does. */
int64_t options_count(struct argp_state *state, const char *option, const char *argument,
                      int64_t least, int64_t most);
double options_number(struct argp_state *state, const char *option, const char *argument,
                      double least, double most);

#endif
