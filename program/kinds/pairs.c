#include "program/kinds/pairs.h"
#include "program/run/paths.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include <string.h>

/* Holds out one pair in twenty, at least one and at most 2,000. */
static bool pairs_divide(struct divided_pairs *p, const char *file)
{
    int64_t held = sb_pairs_count(p->read) / 20;
    if (sb_pairs_count(p->read) < 2)
        return sb_fail("%s has one pair; held-out pairs need another, or give --valid", file);
    held = held < 1 ? 1 : held > 2000 ? 2000 : held;
    return sb_pairs_divide(p->read, held, &p->train, &p->held);
}

bool pairs_open(struct divided_pairs *p, const struct training_request *r)
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

void pairs_close(struct divided_pairs *p)
{
    sb_pairs_free(p->read);
    sb_pairs_free(p->train);
    sb_pairs_free(p->held);
}

const sb_pairs *pairs_to_train(const struct divided_pairs *p)
{
    return p->train ? p->train : p->read;
}

static uint64_t pairs_hash(uint64_t hash, const sb_pairs *pairs)
{
    for (int64_t i = 0, n = sb_pairs_count(pairs); i < 2 * n; i++) {
        const char *text = i < n ? sb_pairs_source(pairs, i) : sb_pairs_target(pairs, i - n);
        hash = hash_add(hash, text, strlen(text) + 1);
    }
    return hash;
}

uint64_t pairs_mark(const struct divided_pairs *p)
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
        fprintf(out, "skipped    %s malformed lines of %s\n", count_text(skipped).text,
                foreign(file));
    for (int64_t i = 0; (problem = sb_pairs_problem(pairs, i)); i++)
        fprintf(out, "           %s\n", foreign(problem));
    if (skipped > SB_PAIRS_PROBLEMS)
        fputs("           ...\n", out);
}

void pairs_describe(const struct divided_pairs *p, const struct training_request *r,
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

/* ---- for a report ---- */

enum { MOST_BYTES = 60 };

int64_t pairs_short(const struct divided_pairs *p, int64_t most, int64_t index[])
{
    int64_t n = 0;
    for (int64_t i = 0; i < sb_pairs_count(p->held) && n < most; i++) {
        const size_t source = strlen(sb_pairs_source(p->held, i)),
                     target = strlen(sb_pairs_target(p->held, i));
        if (source > 0 && source <= MOST_BYTES && target <= MOST_BYTES)
            index[n++] = i;
    }
    return n;
}

bool pairs_choose_drawn(const struct divided_pairs *p, int64_t index, struct training *t)
{
    t->drawn = memory_text(sb_pairs_source(p->held, index));
    return t->drawn || sb_fail("out of memory");
}
