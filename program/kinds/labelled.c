#include "program/kinds/labelled.h"
#include "models/data/tagged.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/memory.h"
#include <math.h>

bool labelled_open_texts(struct training *t, const struct training_request *r)
{
    struct learned_labels *x = t->learned;
    if (x->pairs.held == NULL && !pairs_open(&x->pairs, r))
        return false;
    t->progress.data_hash = pairs_mark(&x->pairs);
    return true;
}

/* The labels of the model that is resumed are those of the data, whose hash is the same. */
static bool labelled_learn(struct training *t, bool tags)
{
    struct learned_labels *x = t->learned;
    const sb_pairs *pairs = pairs_to_learn(&x->pairs);
    const int64_t n = sb_pairs_count(pairs);
    const struct settings *s = &t->settings;
    const sb_vocabulary_options options = {.units = s->units, .size = s->vocabulary};
    const struct text_model *model = t->loaded ? t->loaded->subject.self : NULL;
    x->labels = (tags ? tagged_labels : sb_labels_new)(sb_pairs_targets(pairs), n);
    if (x->labels)
        x->vocabulary = model ? sb_vocabulary_retain(model->source)
                              : sb_vocabulary_new(sb_pairs_sources(pairs), n, &options);
    return x->vocabulary != NULL;
}

bool labelled_open_data(struct training *t, bool tags)
{
    struct learned_labels *x = t->learned;
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    if (!labelled_learn(t, tags))
        return false;
    sb_labelled *(*const make)(const sb_pairs *, sb_vocabulary *, const sb_labels *,
                               const sb_data_options *) = tags ? tagged_new : sb_labelled_new;
    x->data = make(pairs_to_learn(&x->pairs), x->vocabulary, x->labels, &options);
    x->held_data = x->data ? make(x->pairs.held, x->vocabulary, x->labels, &options) : NULL;
    if (!x->held_data)
        return false;
    t->source = sb_labelled_as_source(x->data);
    t->held_source = sb_labelled_as_source(x->held_data);
    return true;
}

const char **labelled_texts(const struct training *t)
{
    const struct learned_labels *x = t->learned;
    const int64_t n = sb_labels_count(x->labels);
    const char **texts = memory_new((size_t)n * sizeof *texts);
    for (int64_t i = 0; texts && i < n; i++)
        texts[i] = sb_labels_text(x->labels, i);
    return texts ? texts : sb_fail("out of memory");
}

void labelled_close(struct training *t)
{
    struct learned_labels *x = t->learned;
    sb_labelled_free(x->data);
    sb_labelled_free(x->held_data);
    sb_vocabulary_release(x->vocabulary);
    sb_labels_free(x->labels);
    pairs_close(&x->pairs);
}

int64_t labelled_batch_items(const struct training *t)
{
    return t->settings.data.batch_pairs;
}

int64_t labelled_epoch_batches(const struct training *t)
{
    const struct learned_labels *x = t->learned;
    return sb_labelled_count(x->data) / t->settings.data.batch_pairs + 1;
}

void labelled_describe(const struct training *t, const struct training_request *r, FILE *out)
{
    const struct learned_labels *x = t->learned;
    const int64_t left_out = sb_labelled_left_out(x->data), n = sb_labels_count(x->labels);
    if (t->task)
        fprintf(out, "task       %s; %s texts, %s held out\n", t->task,
                count_text(sb_pairs_count(x->pairs.rest)).text,
                count_text(sb_pairs_count(x->pairs.held)).text);
    else
        pairs_describe(&x->pairs, r, 0, 0, out);
    if (left_out > 0)
        fprintf(out, "left out   %s texts of more than %s symbols\n", count_text(left_out).text,
                count_text(t->settings.data.longest).text);
    fprintf(out, "text       %s, %s symbols\n",
            sb_units_description(sb_vocabulary_units(x->vocabulary)),
            count_text(sb_vocabulary_symbols(x->vocabulary)).text);
    fprintf(out, "labels     %s: ", count_text(n).text);
    for (int64_t i = 0; i < n && i < 8; i++)
        fprintf(out, i ? ", %s" : "%s", foreign(sb_labels_text(x->labels, i)));
    fputs(n > 8 ? ", ...\n" : "\n", out);
}

best_score labelled_best(const struct training *t)
{
    (void)t;
    return BEST_ACCURACY;
}

void labelled_measure(const struct training *t, const sb_evaluation *e, int digits, char *text,
                      size_t size)
{
    (void)t;
    snprintf(text, size, digits > 1 ? ", accuracy %.*f %%" : "  accuracy %.*f %%", digits,
             100 * (1 - e->error));
    if (isnan(e->error))
        text[0] = '\0';
}

bool labelled_line(struct buffer *to, const struct text_model *m, const sb_batch *batch, int64_t b)
{
    sb_tensor *ids = sb_batch_get(batch, "text"), *label = sb_batch_get(batch, "label");
    const int64_t L = sb_tensor_dim(ids, 1), n = sb_tensor_size(label) / batch->items;
    char *text = sb_vocabulary_decode(m->source, (const int32_t *)sb_tensor_data(ids) + b * L,
                                      (int64_t)sb_tensor_get(sb_batch_get(batch, "lengths"), b));
    bool ok = text && buffer_add_text(to, text), first = true;
    for (int64_t i = 0; ok && i < n; i++) {
        const char *name = sb_labels_text(m->labels, (int64_t)sb_tensor_get(label, b * n + i));
        if (!name) /* of begin or padding */
            continue;
        ok = buffer_add_text(to, first ? "\t" : " ") && buffer_add_text(to, name);
        first = false;
    }
    sb_free(text);
    return ok && buffer_add_text(to, "\n");
}

char *labelled_batch_text(const struct training *t, const sb_batch *batch)
{
    struct buffer buffer = {0};
    bool ok = true;
    for (int64_t b = 0; ok && b < batch->items; b++)
        ok = labelled_line(&buffer, t->subject.self, batch, b);
    char *text = ok ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return text;
}

char *labelled_report_text(const struct training *t)
{
    const struct learned_labels *x = t->learned;
    return pairs_short_source(&x->pairs);
}
