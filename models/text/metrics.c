#include "models/text/metrics.h"
#include "models/text/table.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include <string.h>

static int64_t metrics_smallest(int64_t a, int64_t b, int64_t c)
{
    int64_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Row i holds the distances from the first i of a to each prefix of b (Wagner and Fischer 1974);
   `row` is overwritten by the next one. */
static int64_t metrics_distance(const int32_t *a, int64_t a_count, const int32_t *b,
                                int64_t b_count, int64_t *row)
{
    for (int64_t j = 0; j <= b_count; j++)
        row[j] = j;
    for (int64_t i = 1; i <= a_count; i++) {
        int64_t diagonal = row[0];
        row[0] = i;
        for (int64_t j = 1; j <= b_count; j++) {
            int64_t substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = metrics_smallest(substituted, diagonal + 1, row[j - 1] + 1);
        }
    }
    return row[b_count];
}

int64_t sb_edit_distance(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count)
{
    if (a_count < 0 || b_count < 0 || (a_count > 0 && !a) || (b_count > 0 && !b)) {
        sb_fail("edit_distance: %s of %lld and %lld ids; expected counts of at least 0, and ids",
                (a || a_count == 0) && (b || b_count == 0) ? "counts" : "NULL", (long long)a_count,
                (long long)b_count);
        return -1;
    }
    while (a_count > 0 && b_count > 0 && a[0] == b[0]) { /* common ends cost nothing */
        a++;
        b++;
        a_count--;
        b_count--;
    }
    while (a_count > 0 && b_count > 0 && a[a_count - 1] == b[b_count - 1]) {
        a_count--;
        b_count--;
    }
    if (a_count == 0 || b_count == 0)
        return a_count + b_count;
    int64_t *row = memory_new((size_t)(b_count + 1) * sizeof *row);
    if (!row) {
        sb_fail("edit_distance: out of memory");
        return -1;
    }
    int64_t edits = metrics_distance(a, a_count, b, b_count, row);
    memory_free(row);
    return edits;
}

double sb_perplexity(double log_likelihood, int64_t count)
{
    return check_at_least("perplexity", "count", count, 1)
               ? math_exp(-log_likelihood / (double)count)
               : NAN;
}

/* The units of a text as numbers. */
struct ids {
    int32_t *id;
    int64_t count, room;
};

/* The results of one source so far. */
struct source {
    const char *output;
    int64_t edits, units; /* distance to the closest reference (-1: none yet), and its length */
    bool right;
};

struct scoring {
    sb_units units;
    struct table numbers, sources;
    struct ids output, reference, answer;
    struct source *source;
    sb_text_score *score;
};

static bool metrics_number_units(struct scoring *scoring, const char *text, struct ids *ids)
{
    struct unit unit;
    size_t size = strlen(text);
    ids->count = 0;
    for (size_t at = 0; unit_next(scoring->units, text, size, &at, &unit);) {
        int64_t number = table_add(&scoring->numbers, unit.text, unit.size);
        if (number < 0 || !memory_room(&ids->id, ids->count, &ids->room, sizeof *ids->id))
            return false;
        ids->id[ids->count++] = (int32_t)number;
    }
    return true;
}

/* Adds the positions of one line, whose units have been numbered. */
static void metrics_count_positions(const struct ids *output, const struct ids *reference,
                                    sb_text_score *score)
{
    int64_t shared = output->count < reference->count ? output->count : reference->count;
    int64_t longer = output->count + reference->count - shared;
    score->positions += longer;
    for (int64_t i = 0; i < shared; i++)
        score->right += output->id[i] == reference->id[i];
}

static bool metrics_score_line(struct scoring *scoring, const char *source_text,
                               const char *reference, const char *output)
{
    int64_t index = table_add(&scoring->sources, source_text, strlen(source_text));
    if (index < 0 || !metrics_number_units(scoring, output, &scoring->output) ||
        !metrics_number_units(scoring, reference, &scoring->reference))
        return sb_fail("score_texts: out of memory");
    scoring->score->exact += strcmp(output, reference) == 0;
    metrics_count_positions(&scoring->output, &scoring->reference, scoring->score);
    struct source *source = &scoring->source[index];
    if (!source->output)
        *source = (struct source){output, -1, 0, false};
    if (!metrics_number_units(scoring, source->output, &scoring->answer))
        return sb_fail("score_texts: out of memory");
    const struct ids *answer = &scoring->answer, *expected = &scoring->reference;
    int64_t edits = sb_edit_distance(answer->id, answer->count, expected->id, expected->count);
    if (edits < 0)
        return false;
    source->right |= strcmp(source->output, reference) == 0;
    if (source->edits < 0 || edits < source->edits) {
        source->edits = edits;
        source->units = expected->count;
    }
    return true;
}

static double metrics_share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void metrics_sum_up(const struct scoring *scoring, int64_t lines)
{
    sb_text_score *score = scoring->score;
    score->lines = lines;
    score->sources = scoring->sources.count;
    for (int64_t i = 0; i < score->sources; i++) {
        score->wrong += !scoring->source[i].right;
        score->edits += scoring->source[i].edits;
        score->units += scoring->source[i].units;
    }
    score->exact_match = metrics_share(score->exact, score->lines);
    score->token_accuracy = metrics_share(score->right, score->positions);
    score->error = metrics_share(score->wrong, score->sources);
    score->unit_error = metrics_share(score->edits, score->units);
}

static bool metrics_score_lines(struct scoring *scoring, const char *const *sources,
                                const char *const *references, const char *const *outputs,
                                int64_t count)
{
    scoring->source = memory_new((size_t)count * sizeof *scoring->source);
    if (!scoring->source)
        return sb_fail("score_texts: out of memory");
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        if (!text_check("score_texts", sources[i], &size) ||
            !text_check("score_texts", references[i], &size) ||
            !text_check("score_texts", outputs[i], &size) ||
            !metrics_score_line(scoring, sources[i], references[i], outputs[i]))
            return false;
    }
    metrics_sum_up(scoring, count);
    return true;
}

bool sb_score_texts(const char *const *sources, const char *const *references,
                    const char *const *outputs, int64_t count, sb_units units, sb_text_score *score)
{
    if (!sources || !references || !outputs || !score)
        return fail_null("score_texts", !sources      ? "sources"
                                        : !references ? "references"
                                        : !outputs    ? "outputs"
                                                      : "score");
    if (!check_at_least("score_texts", "count", count, 1))
        return false;
    if (units == SB_UNITS_BPE)
        units = SB_UNITS_WORDS;
    if (units != SB_UNITS_CHARACTERS && units != SB_UNITS_BYTES && units != SB_UNITS_WORDS)
        return sb_fail("score_texts: units is %s; it must be characters, bytes or words",
                       sb_units_name(units));
    *score = (sb_text_score){0};
    struct scoring scoring = {.units = units, .score = score};
    bool ok = metrics_score_lines(&scoring, sources, references, outputs, count);
    table_free(&scoring.numbers);
    table_free(&scoring.sources);
    memory_free(scoring.output.id);
    memory_free(scoring.reference.id);
    memory_free(scoring.answer.id);
    memory_free(scoring.source);
    return ok;
}
