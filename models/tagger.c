#include "models/tagger.h"
#include "autograd/tape.h"
#include "models/data/data_source.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static const struct text_kind tagger_text = {.model = &tagger_kind,
                                             .source = "source",
                                             .source_lengths = "source_lengths",
                                             .expected = "target_out"};

/* ---- data ---- */

static bool tagger_encode(const sb_data *d, const char *text, const char *tags, sb_encoded_pair *p)
{
    p->vocabulary = d->target;
    p->source = sb_vocabulary_encode(d->source, text, &p->source_length, NULL);
    p->target = sb_vocabulary_encode(d->target, tags, &p->target_length, NULL);
    return p->source && p->target &&
           ((p->source_length == p->target_length && p->source_length > 0) ||
            sb_fail("tagger: text %lld has %lld symbols and %lld tags, expected one for each",
                    (long long)(d->pairs + d->left_out), (long long)p->source_length,
                    (long long)p->target_length));
}

/* The last tag is in the place of a target's end, so that both sides have one length. */
static sb_batch *tagger_batch_of(int64_t n, sb_encoded_pair pair[])
{
    for (int64_t i = 0; i < n; i++)
        pair[i].target_length--;
    sb_batch *batch = sb_batch_new(n, pair);
    sb_tensor *tags = batch ? sb_batch_get(batch, "target_out") : NULL;
    for (int64_t i = 0; tags && i < n; i++) {
        const int64_t last = pair[i].target_length;
        sb_tensor_set(tags, i * sb_tensor_dim(tags, 1) + last, pair[i].target[last]);
    }
    return batch;
}

static sb_batch *tagger_batch(const void *data, int64_t n, const int64_t item[])
{
    sb_encoded_pair *pair = memory_new((size_t)n * sizeof *pair);
    for (int64_t i = 0; pair && i < n; i++)
        pair[i] = ((const sb_data *)data)->pair[item[i]];
    sb_batch *batch = pair ? tagger_batch_of(n, pair) : sb_fail("tagger: out of memory");
    memory_free(pair);
    return batch;
}

static uint64_t tagger_hash(const void *data)
{
    return sb_data_hash(data);
}

sb_data *tagger_data_new(const sb_pairs *pairs, sb_vocabulary *source, sb_vocabulary *target,
                         const sb_data_options *options)
{
    static const struct data_kind kind = {
        .items = {.name = "tagger", .list = data_list, .batch = tagger_batch, .hash = tagger_hash},
        .things = "texts",
        .length = "symbols",
        .encode = tagger_encode};
    return data_new(&kind, pairs, source, target, NULL, options);
}

/* ---- the kind ---- */

static void *tagger_build(sb_parameters *weights, const sb_description *d)
{
    return text_model_read(sizeof(struct text_model), &tagger_text, weights,
                           (struct text_options){0}, d);
}

/* The most probable tags, (B, L) of i32, to be released. */
static sb_tensor *tagger_tags(const struct text_model *m, const sb_batch *batch)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *logits = text_model_logits(m, batch, NULL);
    sb_tensor *tags = logits ? sb_tensor_retain(sb_argmax(logits, -1)) : NULL;
    return sb_tape_end(&tape) ? tags : NULL;
}

enum { TAGS, WRONG_TAGS, TEXTS, WRONG_TEXTS, COUNTS };

static bool tagger_count(const struct text_model *m, const sb_batch *batch, double count[COUNTS])
{
    sb_tensor *expected = sb_batch_get(batch, "target_out"), *tags = tagger_tags(m, batch);
    const int64_t L = tags ? sb_tensor_dim(tags, 1) : 0;
    for (int64_t b = 0; tags && b < batch->items; b++) {
        const double before = count[WRONG_TAGS];
        for (int64_t i = b * L; i < (b + 1) * L && sb_tensor_get(expected, i) >= 0; i++) {
            count[TAGS]++;
            count[WRONG_TAGS] += sb_tensor_get(tags, i) != sb_tensor_get(expected, i);
        }
        count[TEXTS]++;
        count[WRONG_TEXTS] += count[WRONG_TAGS] > before;
    }
    sb_tensor_release(tags);
    return tags != NULL;
}

/* The error is that of texts, the unit error that of tags. Ranks share the batches. */
static bool tagger_score(const void *self, const void *held, sb_communicator *ranks,
                         sb_evaluation *e)
{
    const sb_source *source = held;
    double count[COUNTS] = {0};
    bool ok = source->seek(source->object, (sb_data_position){0, 0});
    for (int64_t b = 0, n = source->batches(source->object); ok && b < n; b++) {
        const sb_batch *batch = source->next(source->object);
        ok = batch && (b % sb_communicator_size(ranks) != sb_communicator_rank(ranks) ||
                       tagger_count(self, batch, count));
    }
    ok = ok && sb_communicator_sum(ranks, SB_F64, COUNTS, count);
    e->error = count[WRONG_TEXTS] / count[TEXTS];
    e->unit_error = count[WRONG_TAGS] / count[TAGS];
    return ok;
}

/* A text with the tags that the model gives it. */
static bool tagger_example(const void *self, const char *text, const char *target, sb_example *e)
{
    const struct text_model *m = self;
    const sb_transformer_options *o = &m->options.transformer;
    int64_t n = 0;
    int32_t *ids = sb_vocabulary_encode(m->source, text, &n, NULL);
    const sb_example_axis axis = {m->source, ids, n};
    *e = (sb_example){.choices = sb_vocabulary_size(m->target),
                      .heads = o->heads,
                      .ids = ids,
                      .attentions = 1,
                      .attention = {{"encoder", "symbols", "the symbols that they attend to", axis,
                                     axis, 0, o->encoder_layers, .self = true}}};
    if (n > 0)
        e->batch = tagger_batch_of(1, &(sb_encoded_pair){ids, ids, n, n, m->target});
    else if (ids)
        sb_fail("the text is empty; give one with at least a symbol");
    sb_tensor *tags = e->batch ? tagger_tags(m, e->batch) : NULL;
    int32_t *found = tags ? memory_new((size_t)n * sizeof *found) : NULL;
    for (int64_t i = 0; found && i < n; i++) {
        found[i] = (int32_t)sb_tensor_get(tags, i);
        sb_tensor_set(sb_batch_get(e->batch, "target_out"), i, found[i]);
    }
    e->target = found && !target ? sb_vocabulary_decode(m->target, found, n) : NULL;
    memory_free(found);
    sb_tensor_release(tags);
    return e->target || target;
}

const sb_model_kind tagger_kind = {.name = "tagger",
                                   .build = tagger_build,
                                   .describe = text_model_describe,
                                   .free = text_model_free,
                                   .loss = text_model_loss,
                                   .score = tagger_score,
                                   .attentions = text_model_attentions,
                                   .example = tagger_example,
                                   .splits = "batch threads heads",
                                   .settings = "encoder-layers source-units target-units longest"};
