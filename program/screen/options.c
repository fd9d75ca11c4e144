#include "program/screen/options.h"
#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "program/screen/nearest.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const headings[] = {"The model:", "Training:", "Data:"};

static const char *options_argument_name(const struct setting *setting)
{
    return setting->flag     ? NULL
           : setting->text   ? setting->argument
           : setting->choice ? "WORD"
           : setting->number ? "X"
                             : "N";
}

/* The default as text. With "(0: never)" in the help, a default of 0 is "never", and that part is
   cut off the help. */
static struct setting_text options_default_of(int i, char *help)
{
    struct settings usual = settings_default();
    struct setting_text value = setting_get(&usual, i);
    char *zero = strstr(help, " (0: ");
    if (setting_at(&usual, i).flag)
        strcpy(value.text, "off");
    else if (setting_at(&usual, i).text && !zero)
        strcpy(value.text, "none");
    else if (zero && (!value.text[0] || strcmp(value.text, "0") == 0)) {
        snprintf(value.text, sizeof value.text, "%.*s", (int)strcspn(zero + 5, ")"), zero + 5);
        *zero = '\0';
    }
    return value;
}

/* "help [pre, post; default pre]", kept for as long as the program runs. */
static const char *options_explain(const struct setting *setting, int i)
{
    static char text[MOST_SETTINGS][320];
    char help[224];
    snprintf(help, sizeof help, "%s", setting->help);
    struct setting_text value = options_default_of(i, help);
    int used = snprintf(text[i], sizeof text[i], "%s [", help);
    for (int c = 0; setting->choices && setting->choices[c]; c++)
        used += snprintf(text[i] + used, sizeof text[i] - (size_t)used, c ? ", %s" : "%s",
                         setting->choices[c]);
    snprintf(text[i] + used, sizeof text[i] - (size_t)used, "%s%s]",
             setting->choices ? "; default " : "", value.text);
    return text[i];
}

void options_with_settings(struct argp_option options[MOST_OPTIONS], const struct argp_option *own,
                           size_t n)
{
    memcpy(options, own, n * sizeof *own);
    struct settings usual = settings_default();
    for (int group = 0; group < 3; group++) {
        options[n++] = (struct argp_option){.doc = headings[group], .group = group + 1};
        for (int i = 0; setting_name(i); i++) {
            const struct setting setting = setting_at(&usual, i);
            if ((int)setting.group == group)
                options[n++] = (struct argp_option){setting.name,
                                                    SETTING_KEY + i,
                                                    options_argument_name(&setting),
                                                    0,
                                                    options_explain(&setting, i),
                                                    group + 1};
        }
    }
    options[n] = (struct argp_option){0};
}

static const char *options_task_name(const void *unused, int i)
{
    (void)unused;
    return i < SB_TASKS ? sb_task_name((sb_task)i) : NULL;
}

const char *options_task(struct argp_state *state, const char *argument)
{
    sb_task task;
    if (sb_task_find(argument, &task))
        return argument;
    const char *nearest = nearest_word(argument, options_task_name, NULL);
    options_refuse(state, "--%s%s%s%s", sb_error(), nearest ? "; did you mean " : "",
                   nearest ? nearest : "", nearest ? "?" : "");
    return NULL;
}

const char *options_attention(struct argp_state *state, const char *argument)
{
    static const char *const names[] = {"cross", "encoder", "decoder"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], argument) == 0)
            return names[i];
    options_refuse(state, "--kind: \"%s\" is none of cross, encoder, decoder", argument);
    return NULL;
}

void options_refuse(struct argp_state *state, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!command_speaks())
        exit(argp_err_exit_status);
    argp_failure(state, argp_err_exit_status, 0, "%s", foreign(text));
}

void options_fail(struct argp_state *state)
{
    options_refuse(state, "%s", sb_error());
}

bool options_parse(int key, const char *argument, struct argp_state *state,
                   struct settings *settings, bool given[], error_t *error)
{
    const int i = key - SETTING_KEY;
    const struct setting setting = setting_at(settings, i);
    if (!setting.name)
        return false;
    *error = 0;
    given[i] = true;
    if (!setting_give(&setting, setting.flag ? "true" : argument))
        options_fail(state);
    return true;
}

int64_t options_count(struct argp_state *state, const char *option, const char *argument,
                      int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(argument, &end, 10);
    if (end == argument || *end || errno || value < least || value > most)
        options_refuse(state, "--%s: \"%s\" is not a whole number in %lld..%lld", option, argument,
                       (long long)least, (long long)most);
    return value;
}

double options_number(struct argp_state *state, const char *option, const char *argument,
                      double least, double most)
{
    char *end;
    double value = strtod(argument, &end);
    if (end == argument || *end || !(value >= least && value <= most))
        options_refuse(state, "--%s: \"%s\" is not a number in %g..%g", option, argument, least,
                       most);
    return value;
}
