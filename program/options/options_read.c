/* Reading a command line by the table of its options; argp parses, and prints help. */
#include "program/options/nearest.h"
#include "program/options/options.h"
#include "tensor/error.h"
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_KEY = 1000 }; /* of the first option; letters would be short names */

/* ---- names that do not exist ---- */

static const char *options_name(const void *options, int i)
{
    static const char *const own[] = {"help", "usage"}; /* argp's */
    const struct options *o = options;
    if (i < o->count)
        return o->at[i].field.name ? o->at[i].field.name : "";
    return i - o->count < 2 ? own[i - o->count] : NULL;
}

/* How many options begin with a word; 1 when it is the whole name of one. *option is the last. */
static int options_matches(const struct options *o, const char *word, int *option)
{
    int count = 0;
    for (int i = 0; options_name(o, i); i++) {
        const bool begins = strncmp(options_name(o, i), word, strlen(word)) == 0;
        if (begins)
            *option = i;
        if (strcmp(options_name(o, i), word) == 0)
            return 1;
        count += begins;
    }
    return count;
}

static int options_check_names(const struct options *o)
{
    const char *command = o->command->name;
    for (int i = 1; i < o->argc && strcmp(o->argv[i], "--") != 0; i++) {
        if (strncmp(o->argv[i], "--", 2) != 0)
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(o->argv[i] + 2, "="), o->argv[i] + 2);
        int option = 0, count = options_matches(o, word, &option);
        if (count == 1) { /* its value may look like an option */
            const bool has_value = option < o->count && o->at[option].argument;
            i += has_value && !strchr(o->argv[i], '=');
            continue;
        }
        if (count > 1)
            return command_misused(command, "--%s is ambiguous: several options begin with it",
                                   word);
        const char *nearest = nearest_word(word, options_name, o);
        return nearest ? command_misused(command, "there is no option --%s; did you mean --%s?",
                                         word, nearest)
                       : command_misused(command, "there is no option --%s", word);
    }
    return -1;
}

/* ---- values ---- */

static bool option_set(struct command_option *option, const char *value)
{
    option->given = true;
    if (option->note)
        *option->note = true;
    if (option->text)
        *option->text = value;
    if (option->take)
        return option->take(option, value);
    return option->text || field_give(&option->field, option->object,
                                      option->field.type == FIELD_FLAG ? "true" : value);
}

static error_t options_parse(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;
    if (key == ARGP_KEY_ARGS) {
        o->argv = state->argv + state->next;
        o->argc = state->argc - state->next;
        return 0;
    }
    if (key < OPTION_KEY || key >= OPTION_KEY + o->count)
        return ARGP_ERR_UNKNOWN;
    struct command_option *option = &o->at[key - OPTION_KEY];
    if (option_set(option, value))
        return 0;
    o->refused = option;
    return EINVAL;
}

static int options_refuse(const struct options *o, int code)
{
    if (command_speaks() || code == EXIT_FAILED)
        command_failed(o->command->name);
    return code;
}

/* ---- arguments ---- */

void options_arguments(struct options *o, const char **first, const char **second,
                       const char *excess)
{
    o->argument[0] = first;
    o->argument[1] = second;
    o->excess = excess;
}

void options_rest(struct options *o, char ***rest, int *count)
{
    o->rest = rest;
    o->rest_count = count;
}

static int options_take_arguments(struct options *o)
{
    int taken = 0;
    for (; taken < o->argc && taken < 2 && o->argument[taken]; taken++)
        *o->argument[taken] = o->argv[taken];
    if (o->rest) {
        *o->rest = o->argv + taken;
        *o->rest_count = o->argc - taken;
    } else if (taken < o->argc) {
        sb_fail("unexpected argument \"%s\"%s%s", o->argv[taken], o->excess ? "; " : "",
                o->excess ? o->excess : "");
        return options_refuse(o, EXIT_USAGE);
    }
    return -1;
}

int options_read(struct options *o)
{
    static char name[64]; /* static: hwloc, which Open MPI uses, reads it later */
    struct argp_option rows[MOST_OPTIONS + 1] = {{0}};
    int wrong = options_check_names(o);
    if (wrong >= 0)
        return wrong;
    for (int i = 0; i < o->count; i++) {
        const struct field *s = &o->at[i].field;
        rows[i] = (struct argp_option){
            s->name, s->name ? OPTION_KEY + i : 0, o->at[i].argument, 0, s->help, o->at[i].group};
    }
    const struct argp argp = {rows, options_parse, o->command->arguments, o->command->help, NULL,
                              NULL, NULL};
    snprintf(name, sizeof name, "softback %s", o->command->name);
    o->argv[0] = name; /* argp's own messages begin with it */
    program_invocation_name = name;
    argp_err_exit_status = EXIT_USAGE;
    const int argc = o->argc;
    o->argc = 0;
    if (argp_parse(&argp, argc, o->argv, 0, NULL, o) != 0)
        return options_refuse(o, o->refused ? o->refused->refusal : EXIT_FAILED);
    return options_take_arguments(o);
}

bool option_given(const struct options *o, const char *name)
{
    for (int i = 0; i < o->count; i++)
        if (o->at[i].field.name && strcmp(o->at[i].field.name, name) == 0)
            return o->at[i].given;
    return false;
}

const char *options_given(const struct options *o, unsigned kind)
{
    for (int i = 0; i < o->count; i++)
        if (o->at[i].given && o->at[i].kind & kind)
            return o->at[i].field.name;
    return NULL;
}
