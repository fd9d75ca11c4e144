#include "models/setting.h"
#include "models/description_parts.h"
#include "tensor/option.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct setting *setting_add(struct setting_table *t, const char *name, double least,
                                   double most, const char *help)
{
    assert(t->count < MOST_SETTINGS);
    t->at[t->count] = (struct setting){
        .name = name, .group = t->group, .least = least, .most = most, .help = help};
    return &t->at[t->count++];
}

void setting_add_count(struct setting_table *t, const char *name, int64_t *count, double least,
                       double most, const char *help)
{
    setting_add(t, name, least, most, help)->count = count;
}

void setting_add_small(struct setting_table *t, const char *name, int *small, double least,
                       double most, const char *help)
{
    setting_add(t, name, least, most, help)->small = small;
}

void setting_add_seed(struct setting_table *t, const char *name, uint64_t *seed, const char *help)
{
    setting_add(t, name, 0, 9007199254740991.0, help)->seed = seed;
}

void setting_add_number(struct setting_table *t, const char *name, double *number, double least,
                        double most, const char *help)
{
    setting_add(t, name, least, most, help)->number = number;
}

void setting_add_flag(struct setting_table *t, const char *name, bool *flag, const char *help)
{
    setting_add(t, name, 0, 0, help)->flag = flag;
}

void setting_add_choice(struct setting_table *t, const char *name, unsigned *choice,
                        const char *const *choices, const char *help)
{
    struct setting *setting = setting_add(t, name, 0, 0, help);
    setting->choice = choice;
    setting->choices = choices;
}

void setting_add_text(struct setting_table *t, const char *name, char text[SETTING_TEXT],
                      const char *argument, char separator, const char *help)
{
    struct setting *setting = setting_add(t, name, 0, 0, help);
    setting->text = text;
    setting->argument = argument;
    setting->separator = separator;
}

void setting_zero(struct setting_table *t, enum setting_zero zero)
{
    t->at[t->count - 1].zero = zero;
}

static bool setting_set_choice(const struct setting *setting, const char *text)
{
    char all[160] = "";
    for (unsigned i = 0; setting->choices[i]; i++) {
        if (strcmp(setting->choices[i], text) == 0) {
            *setting->choice = i;
            return true;
        }
        strcat(strcat(all, i ? ", " : ""), setting->choices[i]);
    }
    return sb_fail("--%s: \"%s\" is none of %s", setting->name, text, all);
}

static bool setting_set_flag(const struct setting *setting, const char *text)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return sb_fail("--%s: \"%s\" is neither true nor false", setting->name, text);
    *setting->flag = text[0] == 't';
    return true;
}

static bool setting_set_number(const struct setting *setting, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= setting->least && value <= setting->most))
        return sb_fail("--%s: \"%s\" is not a number in %.10g..%.10g", setting->name, text,
                       setting->least, setting->most);
    *setting->number = value;
    return true;
}

static bool setting_set_count(const struct setting *setting, const char *text)
{
    const char *digits = text + (text[0] == '-');
    const bool whole = digits[0] && digits[strspn(digits, "0123456789")] == '\0';
    const double value = whole ? strtod(text, NULL) : 0; /* exact below 2^53, as are all limits */
    if (!whole || value < setting->least || value > setting->most)
        return sb_fail("--%s: \"%s\" is not a whole number in %.0f..%.0f", setting->name, text,
                       setting->least, setting->most);
    if (setting->small)
        *setting->small = (int)value;
    else if (setting->seed)
        *setting->seed = (uint64_t)value;
    else
        *setting->count = (int64_t)value;
    return true;
}

static bool setting_set_text(const struct setting *setting, const char *text)
{
    if (strlen(text) >= SETTING_TEXT)
        return sb_fail("--%s: %zu bytes are too many; at most %d are possible", setting->name,
                       strlen(text), SETTING_TEXT - 1);
    memset(setting->text, 0, SETTING_TEXT);
    strcpy(setting->text, text);
    return true;
}

/* Appends a text to those that were given before. */
static bool setting_append(const struct setting *setting, const char *text)
{
    char all[2 * SETTING_TEXT];
    const char separator[] = {setting->text[0] ? setting->separator : '\0', '\0'};
    if (!text[0])
        return sb_fail("--%s: the text is empty", setting->name);
    snprintf(all, sizeof all, "%s%s%s", setting->text, separator, text);
    return setting_set_text(setting, all);
}

bool setting_write(const struct setting *setting, const char *text)
{
    return setting->choice   ? setting_set_choice(setting, text)
           : setting->text   ? setting_set_text(setting, text)
           : setting->flag   ? setting_set_flag(setting, text)
           : setting->number ? setting_set_number(setting, text)
                             : setting_set_count(setting, text);
}

bool setting_give(const struct setting *setting, const char *text)
{
    if (setting->text)
        return setting_append(setting, text);
    if (!setting_write(setting, text))
        return false;
    if (!setting->number || *setting->number != 0 || setting->zero == ZERO_IS_ZERO)
        return true;
    if (setting->zero == ZERO_IS_DEFAULT_ALONE)
        return sb_fail("--%s: \"%s\" is not a number above 0; leave the option out for the default",
                       setting->name, text);
    *setting->number = SB_ZERO;
    return true;
}

static struct setting_text setting_whole(long long count)
{
    struct setting_text value;
    snprintf(value.text, sizeof value.text, "%lld", count);
    return value;
}

static struct setting_text setting_word(const char *text)
{
    struct setting_text value;
    snprintf(value.text, sizeof value.text, "%s", text);
    return value;
}

struct setting_text setting_read(const struct setting *setting)
{
    return setting->choice   ? setting_word(setting->choices[*setting->choice])
           : setting->text   ? setting_word(setting->text)
           : setting->flag   ? setting_word(*setting->flag ? "true" : "false")
           : setting->number ? setting_word(number_text(*setting->number).text)
           : setting->small  ? setting_whole(*setting->small)
           : setting->seed   ? setting_whole((long long)*setting->seed)
                             : setting_whole(*setting->count);
}

bool settings_describe(const struct setting_table *table, sb_description *description)
{
    for (int i = 0; i < table->count; i++)
        if (!sb_description_set(description, table->at[i].name, setting_read(&table->at[i]).text))
            return false;
    return true;
}

bool settings_take(const struct setting_table *table, const sb_description *description)
{
    for (int i = 0; i < table->count; i++) {
        const char *text = sb_description_get(description, table->at[i].name);
        if (text && !setting_write(&table->at[i], text))
            return false;
    }
    return true;
}
