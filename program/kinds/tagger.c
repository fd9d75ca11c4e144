/* Training taggers, on pairs of a text and its tags. */
#include "models/tagger.h"
#include "models/training/evaluation.h"
#include "program/kinds/evaluate.h"
#include "program/kinds/pairs.h"

static sb_data *tagger_encode(const struct training *t, const sb_pairs *pairs,
                              const sb_data_options *options)
{
    const struct pairs_data *x = t->data;
    return tagger_data_new(pairs, x->source, x->target, options);
}

static bool tagger_open_data(struct training *t)
{
    t->scored = &t->held_source;
    t->usual_best = BEST_ACCURACY;
    return pairs_find_vocabularies(t) && pairs_encode(t, pairs_longest(t));
}

static void tagger_measure(const struct training *t, const sb_evaluation *e, int digits, char *text,
                           size_t size)
{
    (void)t;
    snprintf(text, size,
             digits > 1 ? ", %.*f %% of tags, %.*f %% of texts right"
                        : "  tags %.*f %%  texts %.*f %%",
             digits, 100 * (1 - e->unit_error), digits, 100 * (1 - e->error));
}

static bool tagger_evaluate(const struct evaluate_request *r, const struct checkpoint *c)
{
    const struct text_model *m = c->subject.self;
    const sb_data_options options = {.longest = INT64_MAX};
    sb_evaluation e;
    sb_pairs *pairs = r->data ? sb_pairs_read(r->data, NULL)
                              : sb_fail("no task has tags; evaluate a tagger on --data FILE");
    sb_data *data = pairs ? tagger_data_new(pairs, m->source, m->target, &options) : NULL;
    const sb_source source = sb_data_as_source(data);
    const bool ok = data && sb_evaluate(&c->subject, &source, &source, NULL, &e);
    if (ok && r->json)
        evaluate_print(json_pack("{s:o, s:o, s:o}", "loss", evaluate_number(e.loss), "tag_accuracy",
                                 evaluate_number(1 - e.unit_error), "text_accuracy",
                                 evaluate_number(1 - e.error)));
    else if (ok)
        printf("texts           %lld\nloss            %.4f nats a tag\nright           %.2f %% of "
               "the tags, %.2f %% of the texts\n",
               (long long)sb_data_pairs(data), e.loss, 100 * (1 - e.unit_error),
               100 * (1 - e.error));
    sb_data_free(data);
    sb_pairs_free(pairs);
    return ok;
}

const struct training_kind training_tagger = {.title = "a tagger",
                                              .trained = "a tagger on texts with tags",
                                              .file = "lines of text, tab, tags",
                                              .items = "texts",
                                              .model = &tagger_kind,
                                              .two_files = true,
                                              .task = "",
                                              .data_size = sizeof(struct pairs_data),
                                              .open_texts = pairs_open,
                                              .open_data = tagger_open_data,
                                              .add_words = pairs_add_words,
                                              .close = pairs_close,
                                              .describe = pairs_describe,
                                              .scores = 1 << BEST_LOSS | 1 << BEST_ACCURACY,
                                              .measure = tagger_measure,
                                              .add_item = pairs_add_item,
                                              .evaluate = tagger_evaluate,
                                              .encode = tagger_encode,
                                              .watch = pairs_watch};
