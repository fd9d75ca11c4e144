#include "tests/support/parallel_run.h"
#include "models/kinds.h"
#include "models/text_model.h"
#include "nn/flat.h"
#include "tensor/hash.h"
#include "tensor/random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is trained: a small model of any kind, with data for it. */
struct parallel_parts {
    sb_vocabulary *vocabulary;
    sb_data *data;
    sb_windows *windows;
    sb_labelled *labelled;
    sb_source source; /* one of these */
    sb_parameters *weights;
    sb_model model;
    sb_trainer *trainer;
};

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

/* kind: NULL or "seq2seq", an encoder-decoder that learns pairs, or to reverse digits without any;
   "language_model", windows of a made text; "classifier", which letter a text begins with. Close
   it even when this fails. */
static bool parallel_parts_open(struct parallel_parts *p, const char *kind,
                                const struct settings *s, const sb_pairs *pairs, sb_dtype dtype)
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

static void parallel_parts_close(struct parallel_parts *p)
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

struct settings parallel_settings(void)
{
    struct settings s = settings_default();
    s.model.transformer.width = 8;
    s.model.transformer.heads = 2;
    s.model.transformer.feed_forward = 12;
    s.model.transformer.encoder_layers = s.model.transformer.decoder_layers = 2;
    s.model.transformer.dropout = 0;
    s.model.label_smoothing = 0.1;
    s.trainer.optimiser.schedule.kind = SB_SCHEDULE_CONSTANT;
    s.trainer.optimiser.schedule.warmup = 3;
    s.data.batch_pairs = 7;
    s.model.context = 6;
    s.task = (sb_task_options){.min_length = 1, .max_length = 5};
    return s;
}

/* The gradient in the flat buffer after a step: that of the mean loss, or of the sum. */
static bool take_gradient(struct parallel_run *run, const struct parallel_parts *p, bool mean,
                          int64_t targets)
{
    const int64_t count = sb_parameters_count(p->weights);
    sb_tensor *g = parts_join(p->weights, parameters_gradients(p->weights), 0, count);
    if (!g)
        return false;
    run->size = tensor_size(g);
    run->gradient = malloc((size_t)run->size * sizeof(double));
    const bool ok = tensor_read_part(g, 0, run->size, run->gradient);
    for (int64_t i = 0; i < run->size && !mean; i++)
        run->gradient[i] /= (double)targets;
    sb_tensor_release(g);
    return ok;
}

/* A hash of all weights. */
static bool take_bits(struct parallel_run *run, const struct parallel_parts *p)
{
    const int64_t count = sb_parameters_count(p->weights);
    sb_tensor *w = parts_join(p->weights, parameters_values(p->weights), 0, count);
    const size_t size = w ? (size_t)tensor_size(w) * sizeof(double) : 0;
    unsigned char *byte = malloc(size + 1);
    const bool ok = w && byte && tensor_read_part(w, 0, tensor_size(w), (double *)(void *)byte);
    if (ok)
        run->bits = hash_add(run->bits, byte, size);
    free(byte);
    sb_tensor_release(w);
    return ok;
}

static bool train(struct parallel_run *run, struct parallel_parts *p, bool mean)
{
    for (int i = 0; i < run->steps; i++) {
        sb_trained trained;
        if (!sb_trainer_step(p->trainer, &trained) ||
            (i == 0 && !take_gradient(run, p, mean, trained.targets)))
            return false;
        run->loss[i] = trained.loss;
    }
    run->position = sb_trainer_save(p->trainer).random_position;
    return take_bits(run, p);
}

void parallel_run_make(struct parallel_run *run, sb_communicator *c, const struct parallel_job *job)
{
    const int rank = sb_communicator_rank(c), heads = job->heads ? job->heads : 1;
    struct settings s = *job->settings;
    struct parallel_parts parts;
    sb_communicator *ranks = sb_communicator_split(c, rank / heads, rank);
    sb_communicator *others = sb_communicator_split(c, rank % heads, rank);
    s.model.transformer.ranks = ranks;
    s.trainer.communicator = others;
    s.trainer.sequence_ranks = c ? s.trainer.sequence_ranks : 0;
    *run = (struct parallel_run){.steps = job->steps};
    run->ok = parallel_parts_open(&parts, job->kind, &s, job->pairs, job->dtype) &&
              train(run, &parts, s.trainer.accumulate == 1 && sb_communicator_size(others) == 1);
    if (!run->ok)
        snprintf(run->message, sizeof run->message, "%s", sb_error());
    parallel_parts_close(&parts);
    sb_communicator_close(others);
    sb_communicator_close(ranks);
}

void parallel_run_rank(sb_communicator *c, void *ranks_)
{
    struct parallel_ranks *ranks = ranks_;
    struct parallel_run *run = &ranks->run[sb_communicator_rank(c)];
    parallel_run_make(run, c, &ranks->one);
    if (run->ok)
        return;
    fprintf(stderr, "rank %d: %s\n", sb_communicator_rank(c), run->message);
    abort();
}

void parallel_run_free(struct parallel_run *run)
{
    free(run->gradient);
    *run = (struct parallel_run){.ok = false};
}

struct parallel_compared parallel_compare(const struct parallel_run *a,
                                          const struct parallel_run *b)
{
    struct parallel_compared c = {0, 0};
    double most = 0, apart = 0;
    for (int64_t i = 0; i < b->size; i++) {
        const double difference = fabs(a->gradient[i] - b->gradient[i]);
        apart = difference <= apart ? apart : difference; /* a NaN too */
        most = fmax(most, fabs(b->gradient[i]));
    }
    c.gradients = apart / most;
    for (int i = 0; i < b->steps; i++) {
        const double difference = fabs(a->loss[i] - b->loss[i]) / b->loss[i];
        c.losses = difference <= c.losses ? c.losses : difference;
    }
    return c;
}
