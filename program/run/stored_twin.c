#include "program/run/stored_twin.h"
#include "models/kinds.h"
#include "models/training/checkpoint.h"
#include "program/run/kind.h"

static bool stored_twin_read_batch(struct stored_twin *s, const struct stored_twin_request *r)
{
    const sb_data_options options = {
        .batch_pairs = r->count, .batch_symbols = 1 << 24, .longest = 1 << 20};
    s->pairs = r->task ? task_pairs(r->task, &s->checkpoint->settings, SB_PART_TEST, r->count)
                       : sb_pairs_read(r->data, NULL);
    sb_pairs *first = s->pairs ? sb_pairs_new() : NULL;
    bool ok = first != NULL;
    for (int64_t i = 0; ok && i < r->count && i < sb_pairs_count(s->pairs); i++)
        ok = sb_pairs_add(first, sb_pairs_source(s->pairs, i), sb_pairs_target(s->pairs, i));
    if (ok)
        s->data = sb_data_new(first, sb_seq2seq_source(s->checkpoint->subject.self),
                              sb_seq2seq_target(s->checkpoint->subject.self), &options);
    sb_pairs_free(first);
    return s->data != NULL;
}

bool stored_twin_open(struct stored_twin *s, const struct stored_twin_request *r)
{
    *s = (struct stored_twin){.checkpoint = checkpoint_open(r->path, NULL)};
    const bool pairs =
        s->checkpoint && training_kind_check(s->checkpoint, r->path, &training_seq2seq);
    const sb_batch *batch = pairs && stored_twin_read_batch(s, r) ? sb_data_next(s->data) : NULL;
    return batch && model_twin_open(&s->twin, &s->checkpoint->subject, batch, SB_F64);
}

void stored_twin_close(struct stored_twin *s)
{
    model_twin_close(&s->twin);
    sb_data_free(s->data);
    sb_pairs_free(s->pairs);
    checkpoint_free(s->checkpoint);
}
