#include "models/field.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "tensor/option.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Moves *i back by the rows that it passes; the row is found when *i is -1. */
static struct field field_find(const struct field *rows, size_t at, int *i)
{
    for (const struct field *row = rows; row->name || row->help || row->rows; row++) {
        struct field found = *row;
        found.at += at;
        if (row->rows) {
            found = field_find(row->rows, found.at, i);
            found.group = row->group ? row->group : found.group;
        } else {
            --*i;
        }
        if (*i < 0)
            return found;
    }
    return (struct field){0};
}

struct field field_at(const struct field *rows, int i)
{
    return i < 0 ? (struct field){0} : field_find(rows, 0, &i);
}

/* ---- from text ---- */

static bool field_write_choice(const struct field *field, unsigned *choice, const char *text)
{
    char all[160] = "";
    for (unsigned i = 0; field->choices[i]; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            *choice = i;
            return true;
        }
        strcat(strcat(all, i ? ", " : ""), field->choices[i]);
    }
    return sb_fail("--%s: \"%s\" is none of %s", field->name, text, all);
}

static bool field_write_flag(const struct field *field, bool *flag, const char *text)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return sb_fail("--%s: \"%s\" is neither true nor false", field->name, text);
    *flag = text[0] == 't';
    return true;
}

static bool field_write_number(const struct field *field, double *number, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= field->least && value <= field->most))
        return sb_fail("--%s: \"%s\" is not a number in %.10g..%.10g", field->name, text,
                       field->least, field->most);
    *number = value;
    return true;
}

static bool field_write_whole(const struct field *field, void *to, const char *text)
{
    const char *digits = text + (text[0] == '-');
    const bool whole = digits[0] && digits[strspn(digits, "0123456789")] == '\0';
    const double value = whole ? strtod(text, NULL) : 0; /* exact below 2^53, as are all limits */
    if (!whole || value < field->least || value > field->most)
        return sb_fail("--%s: \"%s\" is not a whole number in %.0f..%.0f", field->name, text,
                       field->least, field->most);
    if (field->type == FIELD_SMALL)
        *(int *)to = (int)value;
    else if (field->type == FIELD_SEED)
        *(uint64_t *)to = (uint64_t)value;
    else
        *(int64_t *)to = (int64_t)value;
    return true;
}

static bool field_write_text(const struct field *field, char *to, const char *text)
{
    if (strlen(text) >= FIELD_TEXT_SIZE)
        return sb_fail("--%s: %zu bytes are too many; at most %d are possible", field->name,
                       strlen(text), FIELD_TEXT_SIZE - 1);
    memset(to, 0, FIELD_TEXT_SIZE);
    strcpy(to, text);
    return true;
}

bool field_write(const struct field *field, void *object, const char *text)
{
    void *to = (char *)object + field->at;
    switch (field->type) {
    case FIELD_CHOICE:
        return field_write_choice(field, to, text);
    case FIELD_TEXT:
        return field_write_text(field, to, text);
    case FIELD_FLAG:
        return field_write_flag(field, to, text);
    case FIELD_NUMBER:
        return field_write_number(field, to, text);
    case FIELD_WORDS:
        *(const char **)to = text;
        return true;
    case FIELD_NONE:
    case FIELD_OTHER:
        return true;
    default:
        return field_write_whole(field, to, text);
    }
}

/* Appends a text to those that were given before. */
static bool field_append(const struct field *field, char *to, const char *text)
{
    char all[2 * FIELD_TEXT_SIZE];
    const char separator[] = {to[0] ? field->separator : '\0', '\0'};
    if (!text[0])
        return sb_fail("--%s: the text is empty", field->name);
    snprintf(all, sizeof all, "%s%s%s", to, separator, text);
    return field_write_text(field, to, all);
}

bool field_give(const struct field *field, void *object, const char *text)
{
    void *to = (char *)object + field->at;
    double *number = to;
    if (field->type == FIELD_TEXT)
        return field_append(field, to, text);
    if (!field_write(field, object, text))
        return false;
    if (field->take)
        return field->take(field, object, text);
    if (field->type != FIELD_NUMBER || *number != 0 || field->zero == ZERO_IS_ZERO)
        return true;
    if (field->zero == ZERO_IS_DEFAULT_ALONE)
        return sb_fail("--%s: \"%s\" is not a number above 0; leave the option out for the default",
                       field->name, text);
    *number = SB_ZERO;
    return true;
}

/* ---- to text ---- */

struct field_text field_read(const struct field *field, const void *object)
{
    const void *from = (const char *)object + field->at;
    struct field_text value = {""};
    const size_t size = sizeof value.text;
    switch (field->type) {
    case FIELD_CHOICE:
        snprintf(value.text, size, "%s", field->choices[*(const unsigned *)from]);
        break;
    case FIELD_TEXT:
        snprintf(value.text, size, "%s", (const char *)from);
        break;
    case FIELD_FLAG:
        snprintf(value.text, size, "%s", *(const bool *)from ? "true" : "false");
        break;
    case FIELD_NUMBER:
        snprintf(value.text, size, "%s", number_text(*(const double *)from).text);
        break;
    case FIELD_SMALL:
        snprintf(value.text, size, "%d", *(const int *)from);
        break;
    case FIELD_SEED:
    case FIELD_COUNT:
        snprintf(value.text, size, "%lld", (long long)*(const int64_t *)from);
        break;
    default:
        break;
    }
    return value;
}

bool field_is_of(const struct field *field, const sb_model_kind *kind)
{
    return !field->models || words_have(field->models, kind->name);
}

bool fields_describe(const struct field *rows, const void *object, const sb_model_kind *kind,
                     sb_description *description)
{
    struct field f;
    for (int i = 0; f = field_at(rows, i), f.name; i++)
        if (field_is_of(&f, kind) &&
            !sb_description_set(description, f.name, field_read(&f, object).text))
            return false;
    return true;
}

bool fields_take(const struct field *rows, void *object, const sb_model_kind *kind,
                 const sb_description *description)
{
    struct field f;
    for (int i = 0; f = field_at(rows, i), f.name; i++) {
        const char *text = field_is_of(&f, kind) ? sb_description_get(description, f.name) : NULL;
        if (text && !field_write(&f, object, text))
            return false;
    }
    return true;
}
