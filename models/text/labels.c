#include "models/text/labels_parts.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sb_labels {
    int64_t count;
    char **text;
};

static int labels_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Drops what occurs again in the sorted texts. */
static void labels_unite(sb_labels *labels)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < labels->count; i++) {
        if (kept > 0 && strcmp(labels->text[kept - 1], labels->text[i]) == 0)
            memory_free(labels->text[i]);
        else
            labels->text[kept++] = labels->text[i];
    }
    labels->count = kept;
}

static bool labels_take(sb_labels *labels, const char *const *texts, int64_t count)
{
    labels->text = memory_new((size_t)(count + 1) * sizeof *labels->text);
    if (!labels->text)
        return sb_fail("labels: out of memory for %lld texts", (long long)count);
    for (; labels->count < count; labels->count++) {
        const char *text = texts[labels->count];
        size_t size;
        if (!text_check("labels", text, &size))
            return false;
        if (size == 0)
            return sb_fail("labels: label %lld is empty", (long long)labels->count);
        if (!(labels->text[labels->count] = memory_text(text)))
            return sb_fail("labels: out of memory for %lld texts", (long long)count);
    }
    qsort(labels->text, (size_t)labels->count, sizeof *labels->text, labels_compare);
    labels_unite(labels);
    return labels->count > 1 ||
           sb_fail("labels: there is %lld label, expected at least 2", (long long)labels->count);
}

sb_labels *sb_labels_new(const char *const *texts, int64_t count)
{
    if (!texts || count < 1)
        return texts
                   ? sb_fail("labels: there are %lld texts, expected at least 2", (long long)count)
                   : fail_null("labels", "texts");
    sb_labels *labels = memory_new(sizeof *labels);
    if (!labels)
        return sb_fail("labels: out of memory");
    if (labels_take(labels, texts, count))
        return labels;
    sb_labels_free(labels);
    return NULL;
}

void sb_labels_free(sb_labels *labels)
{
    if (!labels)
        return;
    for (int64_t i = 0; i < labels->count; i++)
        memory_free(labels->text[i]);
    memory_free(labels->text);
    memory_free(labels);
}

int64_t sb_labels_count(const sb_labels *labels)
{
    return labels ? labels->count : 0;
}

const char *sb_labels_text(const sb_labels *labels, int64_t i)
{
    return i >= 0 && i < sb_labels_count(labels) ? labels->text[i] : NULL;
}

const char *const *labels_texts(const sb_labels *labels)
{
    return (const char *const *)labels->text;
}

int64_t sb_labels_find(const sb_labels *labels, const char *text)
{
    if (!labels || !text)
        return -1;
    char **at =
        bsearch(&text, labels->text, (size_t)labels->count, sizeof *labels->text, labels_compare);
    return at ? at - labels->text : -1;
}

sb_labels *labels_union(const sb_labels *labels, const char *const *texts, int64_t count)
{
    const int64_t n = sb_labels_count(labels);
    const char **all = memory_new((size_t)(n + count + 1) * sizeof *all);
    if (!all)
        return sb_fail("labels: out of memory for %lld texts", (long long)(n + count));
    for (int64_t i = 0; i < n + count; i++)
        all[i] = i < n ? labels->text[i] : texts[i - n];
    sb_labels *both = sb_labels_new(all, n + count);
    memory_free(all);
    return both;
}

struct labels_text labels_text(const sb_labels *labels, const sb_labels *known)
{
    struct labels_text list = {""};
    size_t size = 0;
    for (int64_t i = 0; i < sb_labels_count(labels); i++) {
        const char *text = labels->text[i], *comma = size > 0 ? ", " : "";
        if (sb_labels_find(known, text) >= 0)
            continue;
        if (size + strlen(text) + sizeof ", , ..." > sizeof list.text) {
            strcpy(list.text + size, size > 0 ? ", ..." : "...");
            break;
        }
        size += (size_t)snprintf(list.text + size, sizeof list.text - size, "%s%s", comma, text);
    }
    return list;
}
