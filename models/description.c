#include "models/description.h"
#include "models/description_parts.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
    char *name, *text;
};

struct named_vocabulary {
    char *name;
    sb_vocabulary *vocabulary;
};

struct sb_description {
    char *kind;
    int64_t values, value_room;
    struct value *value;
    int64_t vocabularies, vocabulary_room;
    struct named_vocabulary *vocabulary;
    int64_t labels, label_room;
    char **label;
    sb_communicator *ranks;
};

sb_description *sb_description_new(const char *kind)
{
    if (!kind)
        return fail_null("description", "kind");
    sb_description *d = memory_new(sizeof *d);
    char *copy = memory_text(kind);
    if (d && copy) {
        d->kind = copy;
        return d;
    }
    memory_free(copy);
    memory_free(d);
    return sb_fail("description: out of memory");
}

void sb_description_free(sb_description *d)
{
    if (!d)
        return;
    for (int64_t i = 0; i < d->values; i++) {
        memory_free(d->value[i].name);
        memory_free(d->value[i].text);
    }
    for (int64_t i = 0; i < d->vocabularies; i++) {
        memory_free(d->vocabulary[i].name);
        sb_vocabulary_release(d->vocabulary[i].vocabulary);
    }
    for (int64_t i = 0; i < d->labels; i++)
        memory_free(d->label[i]);
    memory_free(d->label);
    memory_free(d->value);
    memory_free(d->vocabulary);
    memory_free(d->kind);
    memory_free(d);
}

const char *sb_description_kind(const sb_description *d)
{
    return d ? d->kind : NULL;
}

/* ---- values ---- */

static struct value *description_find(const sb_description *d, const char *name)
{
    for (int64_t i = 0; d && name && i < d->values; i++)
        if (strcmp(d->value[i].name, name) == 0)
            return &d->value[i];
    return NULL;
}

static bool description_add(sb_description *d, const char *name, char *text)
{
    char *copy = memory_text(name);
    if (copy && memory_room(&d->value, d->values, &d->value_room, sizeof *d->value)) {
        d->value[d->values++] = (struct value){copy, text};
        return true;
    }
    memory_free(copy);
    return false;
}

bool sb_description_set(sb_description *d, const char *name, const char *value)
{
    if (!d || !name || !value)
        return fail_null("description", !d ? "description" : !name ? "name" : "value");
    struct value *old = description_find(d, name);
    char *text = memory_text(value);
    if (text && old) {
        memory_free(old->text);
        old->text = text;
        return true;
    }
    if (text && description_add(d, name, text))
        return true;
    memory_free(text);
    return sb_fail("description: out of memory");
}

struct number_text number_text(double number)
{
    struct number_text value;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(value.text, sizeof value.text, "%.*g", digits, number);
        if (strtod(value.text, NULL) == number)
            break;
    }
    return value;
}

bool sb_description_set_number(sb_description *d, const char *name, double value)
{
    return sb_description_set(d, name, number_text(value).text);
}

const char *sb_description_get(const sb_description *d, const char *name)
{
    const struct value *value = description_find(d, name);
    return value ? value->text : NULL;
}

bool sb_description_number(const sb_description *d, const char *name, double least, double most,
                           double *value)
{
    if (!d || !name || !value)
        return fail_null("description", !d ? "description" : !name ? "name" : "value");
    const char *text = sb_description_get(d, name);
    char *end;
    if (!text)
        return sb_fail("description: \"%s\" of a %s model is missing", name, d->kind);
    *value = strtod(text, &end);
    return (end != text && !*end && *value >= least && *value <= most) ||
           sb_fail("description: \"%s\" is \"%s\"; it must be a number in %.10g..%.10g", name, text,
                   least, most);
}

const char *sb_description_name(const sb_description *d, int64_t i)
{
    return d && i >= 0 && i < d->values ? d->value[i].name : NULL;
}

const char *sb_description_value(const sb_description *d, int64_t i)
{
    return d && i >= 0 && i < d->values ? d->value[i].text : NULL;
}

/* ---- vocabularies ---- */

bool sb_description_add_vocabulary(sb_description *d, const char *name, sb_vocabulary *vocabulary)
{
    if (!d || !name || !vocabulary)
        return fail_null("description", !d ? "description" : !name ? "name" : "vocabulary");
    char *copy = memory_text(name);
    if (copy &&
        memory_room(&d->vocabulary, d->vocabularies, &d->vocabulary_room, sizeof *d->vocabulary)) {
        d->vocabulary[d->vocabularies++] =
            (struct named_vocabulary){copy, sb_vocabulary_retain(vocabulary)};
        return true;
    }
    memory_free(copy);
    return sb_fail("description: out of memory");
}

sb_vocabulary *sb_description_vocabulary(const sb_description *d, const char *name)
{
    if (!d || !name)
        return fail_null("description", d ? "name" : "description");
    for (int64_t i = 0; i < d->vocabularies; i++)
        if (strcmp(d->vocabulary[i].name, name) == 0)
            return d->vocabulary[i].vocabulary;
    return sb_fail("description: the vocabulary \"%s\" of a %s model is missing", name, d->kind);
}

bool sb_description_add_label(sb_description *d, const char *label)
{
    if (!d || !label)
        return fail_null("description", d ? "label" : "description");
    char *copy = memory_text(label);
    if (copy && memory_room(&d->label, d->labels, &d->label_room, sizeof *d->label)) {
        d->label[d->labels++] = copy;
        return true;
    }
    memory_free(copy);
    return sb_fail("description: out of memory");
}

const char *sb_description_label(const sb_description *d, int64_t i)
{
    return d && i >= 0 && i < d->labels ? d->label[i] : NULL;
}

void sb_description_set_ranks(sb_description *d, sb_communicator *ranks)
{
    if (d)
        d->ranks = ranks;
}

sb_communicator *sb_description_ranks(const sb_description *d)
{
    return d ? d->ranks : NULL;
}

const char *description_vocabulary_at(const sb_description *d, int64_t i,
                                      sb_vocabulary **vocabulary)
{
    if (i >= d->vocabularies)
        return NULL;
    *vocabulary = d->vocabulary[i].vocabulary;
    return d->vocabulary[i].name;
}

const char *const *description_labels(const sb_description *d, int64_t *count)
{
    static const char *const none[] = {NULL};
    *count = d->labels;
    return d->labels > 0 ? (const char *const *)d->label : none;
}

/* ---- comparing ---- */

bool description_same_vocabulary(const sb_vocabulary *a, const sb_vocabulary *b)
{
    int64_t n = sb_vocabulary_size(a);
    if (a == b)
        return true;
    bool same = sb_vocabulary_units(a) == sb_vocabulary_units(b) && n == sb_vocabulary_size(b);
    for (int32_t id = 0; same && id < n; id++)
        same = strcmp(sb_vocabulary_symbol(a, id), sb_vocabulary_symbol(b, id)) == 0;
    return same;
}

bool description_same_words(const sb_description *a, const sb_description *b)
{
    bool same = a->vocabularies == b->vocabularies && a->labels == b->labels;
    for (int64_t i = 0; same && i < a->vocabularies; i++)
        same =
            strcmp(a->vocabulary[i].name, b->vocabulary[i].name) == 0 &&
            description_same_vocabulary(a->vocabulary[i].vocabulary, b->vocabulary[i].vocabulary);
    for (int64_t i = 0; same && i < a->labels; i++)
        same = strcmp(a->label[i], b->label[i]) == 0;
    return same;
}
