#include "program/options/options.h"
#include "models/text/metrics.h"
#include "program/screen/foreign.h"
#include "tensor/error.h"
#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_KEY = 1000 }; /* of the first option; letters would be short names */

/* ---- how a command fails ---- */

static int code = EXIT_FAILED; /* of a command that fails */

int command_code(void)
{
    return code;
}

/* The message without the command's name, with which that of a function of the same name begins. */
static const char *command_message(const char *message)
{
    const char *space = strrchr(program_invocation_name, ' ');
    const char *name = space ? space + 1 : program_invocation_name;
    const size_t size = strlen(name);
    const bool twice = strncmp(message, name, size) == 0 && strncmp(message + size, ": ", 2) == 0;
    return twice ? message + size + 2 : message;
}

bool command_failed(void)
{
    const char *message = command_message(sb_error());
    fprintf(stderr, "%s: %s\n", program_invocation_name,
            message[0] ? message : "out of memory"); /* without one it is of an allocation */
    return false;
}

/* Whether this process prints mistakes in the command line: the first one that mpirun started, or
   the only one. All of them see the same mistake before they know of each other. */
static bool command_speaks(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank)
            return atoi(rank) == 0;
    }
    return true;
}

/* A mistake in a value, whose message names the option. */
static bool command_refused(void)
{
    code = EXIT_USAGE;
    return command_speaks() && command_failed();
}

bool command_misused(const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    code = EXIT_USAGE;
    if (command_speaks())
        fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program_invocation_name, foreign(text),
                program_invocation_name);
    return false;
}

/* ---- a name for a misspelt one ---- */

static int64_t nearest_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    int32_t x[LONGEST], y[LONGEST];
    int64_t m = 0, n = 0;
    for (; m < LONGEST && a[m]; m++)
        x[m] = a[m];
    for (; n < LONGEST && b[n]; n++)
        y[n] = b[n];
    return sb_edit_distance(x, m, y, n);
}

struct nearest_text nearest_name(const char *word, const char *(*name)(const void *list, int i),
                                 const void *list, const char *before, const char *after)
{
    struct nearest_text nearest = {""};
    int64_t least = 1 + (int64_t)strlen(word) / 2;
    for (int i = 0; name(list, i); i++) {
        const int64_t far = nearest_distance(word, name(list, i));
        if (far >= 0 && far < least) {
            least = far;
            snprintf(nearest.text, sizeof nearest.text, "; did you mean %s%s%s?", before,
                     name(list, i), after);
        }
    }
    return nearest;
}

/* ---- values that several commands take ---- */

static const char *option_task_name(const void *other, int i)
{
    return i < SB_TASKS ? sb_task_name((sb_task)i) : i == SB_TASKS ? other : NULL;
}

bool option_is_task(const char *value, const char *other)
{
    sb_task task;
    if ((other && strcmp(value, other) == 0) || sb_task_find(value, &task))
        return true;
    return sb_fail("--%s%s", sb_error(), nearest_name(value, option_task_name, other, "", "").text);
}

bool option_take_task(const struct field *field, void *request, const char *value)
{
    (void)field, (void)request;
    return option_is_task(value, NULL);
}

bool option_take_attention(const struct field *field, void *request, const char *value)
{
    static const char *const names[] = {"cross", "encoder", "decoder"};
    (void)field, (void)request;
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], value) == 0)
            return true;
    return sb_fail("--kind: \"%s\" is none of cross, encoder, decoder", value);
}

static bool unavailable; /* a process reads one command line */

bool option_unavailable(void)
{
    unavailable = true;
    return false;
}

/* ---- rows ---- */

static const char *options_argument_name(const struct field *field)
{
    return field->argument || field->type == FIELD_FLAG || !field->name ? field->argument
           : field->type == FIELD_CHOICE                                ? "WORD"
           : field->type == FIELD_NUMBER                                ? "X"
                                                                        : "N";
}

/* The default as text. With "(0: never)" in the help, a default of 0 is "never", and that part is
   cut off the help. */
static struct field_text options_default_of(const struct field *field, char *help)
{
    const struct settings usual = settings_default();
    const struct field setting = setting_at(setting_find(field->name));
    struct field_text value = field_read(&setting, &usual);
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

/* The help of a setting, "help [pre, post; default pre]", kept for as long as the program runs. */
static const char *options_explain(const struct field *field, int i)
{
    static char text[MOST_OPTIONS][320];
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

/* Settings stand in the last three groups, in any order. */
static void options_add_rows(struct options *o)
{
    int group = 0;
    struct field f;
    for (int i = 0; f = field_at(o->command->fields, i), f.name || f.help; i++) {
        assert(i < MOST_OPTIONS);
        group += !f.name;
        o->group[i] = f.group ? group - FIELD_OF_DATA + (int)f.group : group;
        if (f.group)
            f.help = options_explain(&f, i);
        o->at[i] = f;
        o->count = i + 1;
    }
}

/* ---- names that do not exist ---- */

static const char *options_name(const void *options, int i)
{
    static const char *const own[] = {"help", "usage"}; /* argp's */
    const struct options *o = options;
    if (i < o->count)
        return o->at[i].name ? o->at[i].name : "";
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
        if (word[0] && strcmp(options_name(o, i), word) == 0)
            return 1;
        count += begins;
    }
    return count;
}

static bool options_check_names(const struct options *o)
{
    for (int i = 1; i < o->argc && strcmp(o->argv[i], "--") != 0; i++) {
        if (strncmp(o->argv[i], "--", 2) != 0)
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(o->argv[i] + 2, "="), o->argv[i] + 2);
        int option = 0, count = options_matches(o, word, &option);
        if (count > 1)
            return command_misused("--%s is ambiguous: several options begin with it", word);
        if (count == 0)
            return command_misused("there is no option --%s%s", word,
                                   nearest_name(word, options_name, o, "--", "").text);
        /* its value may look like an option */
        const bool has_value = option < o->count && options_argument_name(&o->at[option]);
        i += has_value && !strchr(o->argv[i], '=');
    }
    return true;
}

/* ---- arguments ---- */

bool texts_want(const struct texts *texts, const char *word)
{
    bool wanted = texts->count == 0;
    for (int i = 0; i < texts->count; i++)
        wanted |= strcmp(texts->text[i], word) == 0;
    return wanted;
}

static bool options_is_argument(const struct field *field)
{
    return field->name && !field->name[0];
}

static bool options_take_arguments(const struct options *o)
{
    const char *excess = "";
    int taken = 0;
    for (int i = 0; i < o->count; i++) {
        void *to = (char *)o->request + o->at[i].at;
        if (!options_is_argument(&o->at[i]))
            continue;
        if (o->at[i].type == FIELD_OTHER) {
            *(struct texts *)to = (struct texts){o->argv + taken, o->argc - taken};
            return true;
        }
        if (taken < o->argc)
            *(const char **)to = o->argv[taken++];
        excess = o->at[i].help;
    }
    if (taken == o->argc)
        return true;
    sb_fail("unexpected argument \"%s\"%s%s", o->argv[taken], excess[0] ? "; " : "", excess);
    return command_refused();
}

/* ---- the command line ---- */

static error_t options_parse(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;
    const int i = key - OPTION_KEY;
    if (key == ARGP_KEY_ARGS) {
        o->argv = state->argv + state->next;
        o->argc = state->argc - state->next;
        return 0;
    }
    if (i < 0 || i >= o->count)
        return ARGP_ERR_UNKNOWN;
    o->given[i] = true;
    if (field_give(&o->at[i], o->request, value ? value : "true"))
        return 0;
    return unavailable ? ENODEV : EINVAL;
}

bool options_read(struct options *o, void *request)
{
    struct argp_option rows[MOST_OPTIONS + 1] = {{0}};
    o->request = request;
    options_add_rows(o);
    if (!options_check_names(o))
        return false;
    int count = 0;
    for (int i = 0; i < o->count; i++)
        if (o->at[i].name ? o->at[i].name[0] : o->at[i].help[0])
            rows[count++] = (struct argp_option){o->at[i].name,
                                                 o->at[i].name ? OPTION_KEY + i : 0,
                                                 options_argument_name(&o->at[i]),
                                                 0,
                                                 o->at[i].help,
                                                 o->group[i]};
    const struct argp argp = {rows, options_parse, o->command->arguments, o->command->help, NULL,
                              NULL, NULL};
    argp_err_exit_status = EXIT_USAGE;
    const int argc = o->argc;
    o->argc = 0;
    const error_t wrong = argp_parse(&argp, argc, o->argv, 0, NULL, o);
    if (wrong == EINVAL)
        return command_refused();
    return wrong ? command_failed() : options_take_arguments(o);
}

bool option_given(const struct options *o, const char *name)
{
    for (int i = 0; i < o->count; i++)
        if (o->at[i].name && strcmp(o->at[i].name, name) == 0)
            return o->given[i];
    return false;
}

const char *options_given(const struct options *o, unsigned kind)
{
    for (int i = 0; i < o->count; i++)
        if (o->given[i] && o->at[i].kind & kind)
            return o->at[i].name;
    return NULL;
}
