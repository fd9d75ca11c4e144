#include "program/kinds/pairs.h"
#include "models/data/data_source.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/stream.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include <string.h>

/* Holds out one pair in twenty, at least one and at most 2,000. */
static bool pairs_divide(struct pairs_data *p, const char *file)
{
    int64_t held = sb_pairs_count(p->read) / 20;
    if (sb_pairs_count(p->read) < 2)
        return sb_fail("%s has one pair; held-out pairs need another, or give --valid", file);
    held = held < 1 ? 1 : held > 2000 ? 2000 : held;
    return sb_pairs_divide(p->read, held, &p->train, &p->held);
}

static bool pairs_read_files(struct pairs_data *p, const struct training_request *r)
{
    p->read = r->data ? sb_pairs_read(r->data, NULL)
                      : sb_pairs_read_two(r->source_file, r->target_file, NULL);
    if (!p->read)
        return false;
    if (!r->valid)
        return pairs_divide(p, r->data ? r->data : r->source_file);
    p->held = sb_pairs_read(r->valid, NULL);
    return p->held != NULL;
}

const sb_pairs *pairs_to_train(const struct pairs_data *p)
{
    return p->train ? p->train : p->read;
}

const sb_pairs *pairs_to_decode(const struct pairs_data *x)
{
    return x->fitting ? x->fitting : x->held;
}

static uint64_t pairs_hash(uint64_t hash, const sb_pairs *pairs)
{
    for (int64_t i = 0, n = sb_pairs_count(pairs); i < 2 * n; i++) {
        const char *text = i < n ? sb_pairs_source(pairs, i) : sb_pairs_target(pairs, i - n);
        hash = hash_add(hash, text, strlen(text) + 1);
    }
    return hash;
}

static uint64_t pairs_mark(const struct pairs_data *p)
{
    const uint64_t rest = pairs_hash(HASH_START, pairs_to_train(p));
    return pairs_hash(rest, p->held) >> 1; /* JSON's integers are signed */
}

/* ---- what is said of them ---- */

static void pairs_describe_problems(FILE *out, const char *file, const sb_pairs *pairs)
{
    int64_t skipped = sb_pairs_skipped(pairs);
    const char *problem;
    if (skipped > 0)
        fprintf(out, "skipped    %s malformed line%s of %s\n", count_text(skipped).text,
                skipped == 1 ? "" : "s", foreign(file));
    for (int64_t i = 0; (problem = sb_pairs_problem(pairs, i)); i++)
        fprintf(out, "           %s\n", foreign(problem));
    if (skipped > SB_PAIRS_PROBLEMS)
        fputs("           ...\n", out);
}

void pairs_describe_files(const struct pairs_data *p, const struct training_request *r,
                          int64_t left_out, int64_t longest, FILE *out)
{
    int64_t held = sb_pairs_count(p->held);
    const char *file = r->data ? r->data : r->source_file;
    fprintf(out, "%-10s %s pairs; ", foreign(paths_name(file)),
            count_text(sb_pairs_count(pairs_to_train(p))).text);
    if (p->train)
        fprintf(out, "no --valid, so %s held out\n", count_text(held).text);
    else
        fprintf(out, "%s of %s to evaluate on\n", count_text(held).text, foreign(r->valid));
    pairs_describe_problems(out, file, p->read);
    if (!p->train)
        pairs_describe_problems(out, r->valid, p->held);
    if (left_out > 0)
        fprintf(out, "left out   %s pairs of more than %s symbols on a side\n",
                count_text(left_out).text, count_text(longest).text);
    int64_t shared = p->train ? 0 : sb_pairs_shared(p->read, p->held);
    if (shared > 0)
        fprintf(out, "warning    %s pairs of %s have a source of the training data\n",
                count_text(shared).text, foreign(r->valid));
}

int64_t pairs_unknown(const sb_vocabulary *vocabulary, const char *const *texts, int64_t n)
{
    int64_t unknown = 0;
    for (int64_t i = 0; i < n; i++)
        unknown += unknown_count(vocabulary, texts[i]);
    return unknown;
}

/* ---- for the tables of kinds ---- */

bool pairs_open(struct training *t)
{
    const struct training_request *r = t->request;
    struct pairs_data *x = t->data;
    if (t->task ? !x->held : !pairs_read_files(x, r))
        return false;
    t->progress.data_hash = pairs_mark(x);
    t->progress.held_hash = pairs_hash(HASH_START, x->held) >> 1;
    return true;
}

int64_t pairs_longest(const struct training *t)
{
    sb_transformer_options o = {0};
    sb_transformer_complete(&t->settings.model.transformer, &o);
    int64_t longest = t->settings.data.longest;
    bool learned = o.positions == SB_POSITIONS_LEARNED && o.positions_longest > 1 &&
                   o.positions_longest <= longest;
    return learned ? o.positions_longest - 1 : longest;
}

/* Longer texts than learned positions allow cannot be decoded. */
static bool pairs_find_fitting(struct pairs_data *x, int64_t longest)
{
    const int64_t n = sb_pairs_count(x->held);
    bool ok = (x->fitting = sb_pairs_new()) != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        int64_t length;
        const char *source = sb_pairs_source(x->held, i);
        int32_t *ids = sb_vocabulary_encode(x->source, source, &length, NULL);
        ok = ids &&
             (length > longest || sb_pairs_add(x->fitting, source, sb_pairs_target(x->held, i)));
        sb_free(ids);
    }
    return ok;
}

static sb_data *pairs_data_of(const struct pairs_data *x, const sb_pairs *pairs,
                              const sb_data_options *options)
{
    return x->labels ? labelled_data(sb_labelled_new(pairs, x->source, x->labels, options))
                     : sb_data_new(pairs, x->source, x->target, options);
}

bool pairs_encode(struct training *t)
{
    struct pairs_data *x = t->data;
    const int64_t longest = pairs_longest(t);
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    options.longest = longest;
    if (!x->data)
        x->data = pairs_data_of(x, pairs_to_train(x), &options);
    x->held_data = x->data ? pairs_data_of(x, x->held, &options) : NULL;
    if (!x->held_data || (longest < t->settings.data.longest && !pairs_find_fitting(x, longest)))
        return false;
    t->held_pairs = pairs_to_decode(x);
    t->source = sb_data_as_source(x->data);
    t->held_source = sb_data_as_source(x->held_data);
    t->epoch_items = sb_data_pairs(x->data);
    return true;
}

void pairs_close(struct training *t)
{
    struct pairs_data *x = t->data;
    sb_data_free(x->data);
    sb_data_free(x->held_data);
    sb_vocabulary_release(x->source);
    sb_vocabulary_release(x->target);
    sb_pairs_free(x->read);
    sb_pairs_free(x->train);
    sb_pairs_free(x->held);
    sb_pairs_free(x->fitting);
    sb_pairs_free(x->sample);
    sb_labels_free(x->labels);
}

/* The first held-out pairs that are short enough to draw. */
static sb_pairs *pairs_short(const sb_pairs *held)
{
    enum { MOST_BYTES = 60 };
    sb_pairs *few = sb_pairs_new();
    for (int64_t i = 0; sb_pairs_count(few) < MOST_WATCHED && i < sb_pairs_count(held); i++) {
        const char *source = sb_pairs_source(held, i), *target = sb_pairs_target(held, i);
        const bool fits = source[0] && strlen(source) <= MOST_BYTES && strlen(target) <= MOST_BYTES;
        if (fits && !sb_pairs_add(few, source, target)) {
            sb_pairs_free(few);
            return NULL;
        }
    }
    return few;
}

bool pairs_watch(struct training *t)
{
    const struct pairs_data *x = t->data;
    sb_pairs *few = pairs_short(pairs_to_decode(x));
    const int64_t n = few ? sb_pairs_count(few) : 0;
    if (n > 0) {
        t->drawn = memory_text(sb_pairs_source(few, 0));
        t->drawn_target = memory_text(sb_pairs_target(few, 0));
        sb_data *data = t->drawn && t->drawn_target
                            ? pairs_data_of(x, few, &(sb_data_options){.longest = INT64_MAX})
                            : sb_fail("out of memory");
        t->watched = data ? cursor_batch(&data->cursor, 0, data->pairs) : NULL;
        sb_data_free(data);
    }
    sb_pairs_free(few);
    return few && (n == 0 || t->watched);
}
