#include "tests/support/parallel_parts.h"
#include "models/kinds.h"
#include "models/text_model.h"
#include "tensor/random.h"
#include <string.h>

enum { TEXT = 400, TEXTS = 60, LONGEST = 7 };
static const char letters[] = "abcdefg";
static const char *const labels[] = {"first", "other"};

static sb_vocabulary *characters(const char *const *texts, int64_t count)
{
    const sb_vocabulary_options options = {.units = SB_UNITS_CHARACTERS};
    return sb_vocabulary_new(texts, count, &options);
}

static void open_encoder_decoder(struct parallel_parts *p, const struct settings *s,
                                 const sb_pairs *pairs)
{
    sb_data_options options = s->data;
    options.seed = s->trainer.seed;
    if (pairs) {
        p->vocabulary = characters(sb_pairs_sources(pairs), sb_pairs_count(pairs));
        p->data = sb_data_new(pairs, p->vocabulary, p->vocabulary, &options);
    } else {
        p->data = sb_data_task_with(SB_TASK_REVERSE, &s->task, &options);
    }
    p->source = sb_data_as_source(p->data);
    sb_seq2seq_options own = s->model;
    text_options_of_kind(&own, &seq2seq_kind);
    sb_seq2seq *model = p->data ? sb_seq2seq_new(p->weights, p->data, &own) : NULL;
    if (model)
        p->model = sb_seq2seq_as_model(model);
}

/* Each letter mostly follows from the one before it. */
static sb_documents *made_text(void)
{
    char text[TEXT];
    uint32_t last = 0;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < TEXT; i++) {
        last += sb_random_below(&random, 4) ? 1 : 2;
        text[i] = letters[last % strlen(letters)];
    }
    sb_documents *d = sb_documents_new();
    if (d && sb_documents_add(d, "text", text, TEXT, SB_DOCUMENTS_FILES))
        return d;
    sb_documents_free(d);
    return NULL;
}

static void open_language_model(struct parallel_parts *p, const struct settings *s)
{
    const sb_windows_options cut = {
        .seed = s->trainer.seed, .length = s->model.context, .batch_windows = s->data.batch_pairs};
    sb_language_model_options options = s->model;
    text_options_of_kind(&options, &language_model_kind);
    options.running_text = true;
    sb_documents *text = made_text();
    p->vocabulary = characters(&(const char *){letters}, 1);
    p->windows = text ? sb_windows_new(text, p->vocabulary, &cut) : NULL;
    p->source = sb_windows_as_source(p->windows);
    sb_language_model *model =
        p->windows ? sb_language_model_for(p->weights, p->vocabulary, &options) : NULL;
    if (model)
        p->model = sb_language_model_as_model(model);
    sb_documents_free(text);
}

/* Texts of 1 to LONGEST letters, of which every second begins with an a. */
static sb_pairs *made_labels(void)
{
    sb_pairs *pairs = sb_pairs_new();
    sb_random random = sb_random_new(2, SB_STREAM_USER);
    bool ok = pairs != NULL;
    for (int i = 0; ok && i < TEXTS; i++) {
        char text[LONGEST + 1] = "";
        const uint32_t n = 1 + sb_random_below(&random, LONGEST);
        for (uint32_t k = 0; k < n; k++)
            text[k] = letters[1 + sb_random_below(&random, 6)];
        text[0] = i % 2 ? text[0] : 'a';
        ok = sb_pairs_add(pairs, text, labels[i % 2]);
    }
    if (ok)
        return pairs;
    sb_pairs_free(pairs);
    return NULL;
}

static void open_classifier(struct parallel_parts *p, const struct settings *s)
{
    sb_data_options order = s->data;
    order.seed = s->trainer.seed;
    sb_classifier_options options = s->model;
    text_options_of_kind(&options, &classifier_kind);
    sb_pairs *pairs = made_labels();
    sb_labels *known = sb_labels_new(labels, 2);
    p->vocabulary = characters(&(const char *){letters}, 1);
    p->labelled = pairs && known ? sb_labelled_new(pairs, p->vocabulary, known, &order) : NULL;
    p->source = sb_labelled_as_source(p->labelled);
    sb_classifier *model =
        p->labelled ? sb_classifier_for(p->weights, p->vocabulary, labels, 2, &options) : NULL;
    if (model)
        p->model = sb_classifier_as_model(model);
    sb_labels_free(known);
    sb_pairs_free(pairs);
}

bool parallel_parts_open(struct parallel_parts *p, const char *kind, const struct settings *s,
                         const sb_pairs *pairs, sb_dtype dtype)
{
    *p = (struct parallel_parts){.weights = sb_parameters_of(dtype, s->trainer.seed)};
    if (!p->weights)
        return false;
    if (!kind || strcmp(kind, "seq2seq") == 0)
        open_encoder_decoder(p, s, pairs);
    else if (strcmp(kind, "language_model") == 0)
        open_language_model(p, s);
    else
        open_classifier(p, s);
    if (p->model.kind)
        p->trainer = sb_trainer_for(&p->model, &p->source, &s->trainer);
    return p->trainer != NULL;
}

void parallel_parts_close(struct parallel_parts *p)
{
    sb_trainer_free(p->trainer);
    if (p->model.kind)
        sb_model_free(&p->model);
    sb_parameters_free(p->weights);
    sb_data_free(p->data);
    sb_windows_free(p->windows);
    sb_labelled_free(p->labelled);
    sb_vocabulary_release(p->vocabulary);
}
