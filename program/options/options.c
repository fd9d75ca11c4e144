#include "program/options/options.h"
#include "program/options/nearest.h"
#include "tensor/error.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct command_option *option_add(struct options *o, const char *argument,
                                         struct field field, void *object)
{
    assert(o->count < MOST_OPTIONS);
    struct command_option *option = &o->at[o->count++];
    *option = (struct command_option){.field = field,
                                      .object = object,
                                      .argument = argument,
                                      .group = o->group,
                                      .kind = o->kind,
                                      .refusal = EXIT_USAGE};
    return option;
}

void option_group(struct options *o, const char *heading)
{
    o->group++;
    if (heading)
        option_add(o, NULL, (struct field){.help = heading}, NULL);
}

struct command_option *option_flag(struct options *o, const char *name, bool *flag,
                                   const char *help)
{
    return option_add(o, NULL, (struct field){.name = name, .type = FIELD_FLAG, .help = help},
                      flag);
}

struct command_option *option_text(struct options *o, const char *name, const char *argument,
                                   const char **text, const char *help)
{
    struct command_option *option =
        option_add(o, argument, (struct field){.name = name, .help = help}, NULL);
    option->text = text;
    return option;
}

struct command_option *option_count(struct options *o, const char *name, int64_t *count,
                                    double least, double most, const char *help)
{
    return option_add(
        o, "N",
        (struct field){
            .name = name, .type = FIELD_COUNT, .help = help, .least = least, .most = most},
        count);
}

struct command_option *option_number(struct options *o, const char *name, double *number,
                                     double least, double most, const char *help)
{
    return option_add(
        o, "X",
        (struct field){
            .name = name, .type = FIELD_NUMBER, .help = help, .least = least, .most = most},
        number);
}

struct command_option *option_seed(struct options *o, const char *name, uint64_t *seed,
                                   const char *help)
{
    return option_add(
        o, "N",
        (struct field){
            .name = name, .type = FIELD_SEED, .help = help, .least = 0, .most = MOST_SEED},
        seed);
}

struct command_option *option_choice(struct options *o, const char *name, unsigned *choice,
                                     const char *const *choices, const char *help)
{
    return option_add(
        o, "WORD",
        (struct field){.name = name, .type = FIELD_CHOICE, .help = help, .choices = choices},
        choice);
}

struct command_option *option_take(struct options *o, const char *name, const char *argument,
                                   bool (*take)(struct command_option *option, const char *value),
                                   void *to, const char *help)
{
    struct command_option *option =
        option_add(o, argument, (struct field){.name = name, .help = help}, NULL);
    option->take = take;
    option->to = to;
    return option;
}

/* ---- built-in tasks ---- */

static const char *option_task_name(const void *other, int i)
{
    return i < SB_TASKS ? sb_task_name((sb_task)i) : i == SB_TASKS ? other : NULL;
}

static bool option_take_task(struct command_option *option, const char *value)
{
    const char *other = option->to;
    sb_task task;
    if ((other && strcmp(value, other) == 0) || sb_task_find(value, &task))
        return true;
    const char *nearest = nearest_word(value, option_task_name, other);
    return sb_fail("--%s%s%s%s", sb_error(), nearest ? "; did you mean " : "",
                   nearest ? nearest : "", nearest ? "?" : "");
}

struct command_option *option_task(struct options *o, const char **task, const char *other,
                                   const char *help)
{
    struct command_option *option = option_text(o, "task", "NAME", task, help);
    option->take = option_take_task;
    option->to = (void *)other;
    return option;
}

/* ---- attentions ---- */

static bool option_take_attention(struct command_option *option, const char *value)
{
    static const char *const names[] = {"cross", "encoder", "decoder"};
    (void)option;
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], value) == 0)
            return true;
    return sb_fail("--kind: \"%s\" is none of cross, encoder, decoder", value);
}

struct command_option *option_attention(struct options *o, const char **attention, const char *help)
{
    struct command_option *option = option_text(o, "kind", "WORD", attention, help);
    option->take = option_take_attention;
    return option;
}

/* ---- settings ---- */

static const char *options_argument_name(const struct field *field)
{
    return field->type == FIELD_FLAG     ? NULL
           : field->type == FIELD_TEXT   ? field->argument
           : field->type == FIELD_CHOICE ? "WORD"
           : field->type == FIELD_NUMBER ? "X"
                                         : "N";
}

/* The default as text. With "(0: never)" in the help, a default of 0 is "never", and that part is
   cut off the help. */
static struct field_text options_default_of(const struct field *field, char *help)
{
    const struct settings usual = settings_default();
    struct field_text value = field_read(field, &usual);
    char *zero = strstr(help, " (0: ");
    if (field->type == FIELD_FLAG)
        strcpy(value.text, "off");
    else if (field->type == FIELD_TEXT && !zero)
        strcpy(value.text, "none");
    else if (zero && (!value.text[0] || strcmp(value.text, "0") == 0)) {
        snprintf(value.text, sizeof value.text, "%.*s", (int)strcspn(zero + 5, ")"), zero + 5);
        *zero = '\0';
    }
    return value;
}

/* "help [pre, post; default pre]", kept for as long as the program runs. */
static const char *options_explain(const struct field *field, int i)
{
    static char text[MOST_SETTINGS][320];
    char help[224];
    snprintf(help, sizeof help, "%s", field->help);
    struct field_text value = options_default_of(field, help);
    int used = snprintf(text[i], sizeof text[i], "%s [", help);
    for (int c = 0; field->choices && field->choices[c]; c++)
        used += snprintf(text[i] + used, sizeof text[i] - (size_t)used, c ? ", %s" : "%s",
                         field->choices[c]);
    snprintf(text[i] + used, sizeof text[i] - (size_t)used, "%s%s]",
             field->choices ? "; default " : "", value.text);
    return text[i];
}

void options_of_settings(struct options *o, struct settings *settings, bool given[])
{
    static const char *const headings[] = {"The model:", "Training:", "Data:"};
    for (int group = 0; group < 3; group++) {
        option_group(o, headings[group]);
        for (int i = 0; setting_name(i); i++) {
            struct field field = setting_at(i);
            if ((int)field.group != group)
                continue;
            field.help = options_explain(&field, i);
            option_add(o, options_argument_name(&field), field, settings)->note = &given[i];
        }
    }
}
