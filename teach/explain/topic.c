#include "teach/explain/topic.h"
#include "tensor/failure.h"
#include <string.h>

/* In the order of the lessons, and so of a first reading. Portable builds have no dual numbers, and
   so no Hessians. */
static const struct topic *const topics[] = {
    &topic_softmax,    &topic_wrong_gradient, &topic_gradcheck,      &topic_cross_entropy,
    &topic_saturation, &topic_scaling,        &topic_saturated_rows, &topic_mask,
    &topic_attention,  &topic_flash,          &topic_tape,           &topic_positions,
    &topic_layer_norm,
#ifndef SOFTBACK_PORTABLE
    &topic_hessian,
#endif
    &topic_claims};

enum { TOPICS = sizeof topics / sizeof topics[0] };

const struct topic *topic_at(int i)
{
    return i < TOPICS ? topics[i] : NULL;
}

const struct topic *topic_named(const char *name)
{
    for (int i = 0; i < TOPICS; i++)
        if (strcmp(topics[i]->name, name) == 0)
            return topics[i];
    return NULL;
}

struct page *topic_page(const struct topic *topic, const struct explain_options *options)
{
    struct page *page = page_new(topic->name);
    if (page)
        topic->write(page, options);
    if (page && topic->takes & TAKES_REFERENCE && (options->reference || options->code))
        page_operation(page, topic->name, options->code);
    else if (page && topic->takes & TAKES_REFERENCE)
        page_text(page, "--reference adds its documentation in ops.h, with all options, and a "
                        "gradient check; --code its C as well.");
    if (!page || !page->failed)
        return page;
    page_free(page);
    return NULL;
}

struct numbers list_or(const struct numbers *given, int count, const double own[])
{
    struct numbers list = {.count = count};
    for (int i = 0; i < count; i++)
        list.value[i] = own[i];
    return given->count > 0 ? *given : list;
}

bool check_count(const char *option, const struct numbers *list, int n, const char *as)
{
    if (list->count == 0 || list->count == n)
        return true;
    return sb_fail("--%s: there are %d numbers, but %d %s", option, list->count, n, as);
}
