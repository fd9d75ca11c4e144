#include "models/training/agreement.h"
#include "ops/gemm.h"
#include "ops/kernel.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>

/* What a rank computes with, in a form that does not change from version to version: it is compared
   first. */
struct build {
    char version[32], kernels[96];
};

/* The rest of the state, as it is sent. */
struct report {
    bool failed;
    char failure[640], task[32];
    uint64_t data, weights, part;
    int64_t steps;
    int sequence_ranks, head_ranks, threads;
    struct field_text setting[MOST_SETTINGS];
};

struct verdict {
    char text[1024]; /* "": all ranks agree */
};

static struct build agreement_build_of(const struct rank_state *s)
{
    struct build build = {.version = ""};
    snprintf(build.version, sizeof build.version, "%s", s->version);
    snprintf(build.kernels, sizeof build.kernels, "%s, %s kernels, products by %s",
             sb_device_name(sb_device_in_use()), kernel_cpu_name(), gemm_library());
    return build;
}

static void agreement_write_report(struct report *report, const struct rank_state *s)
{
    *report = (struct report){.failed = s->failure != NULL};
    snprintf(report->failure, sizeof report->failure, "%s", s->failure ? s->failure : "");
    if (s->failure)
        return;
    snprintf(report->task, sizeof report->task, "%s", s->task);
    report->data = s->data;
    report->weights = s->weights;
    report->steps = s->steps;
    report->part = s->part;
    report->sequence_ranks = s->sequence_ranks;
    report->head_ranks = s->head_ranks;
    report->threads = s->threads;
    for (int i = 0; setting_name(i); i++)
        report->setting[i] = setting_get(&s->settings, i);
}

/* ---- comparing ---- */

/* Compares the states of all ranks, which lie one after the other. */
typedef void agreement_comparison(const void *all, int ranks, struct verdict *verdict);

static void agreement_compare_build(int rank, const struct build *a, const struct build *b,
                                    struct verdict *verdict)
{
    if (strcmp(a->version, b->version) != 0)
        snprintf(verdict->text, sizeof verdict->text, "rank %d is softback %s, rank 0 is %s", rank,
                 b->version, a->version);
    else if (strcmp(a->kernels, b->kernels) != 0)
        snprintf(verdict->text, sizeof verdict->text, "rank %d computes on %s; rank 0 on %s", rank,
                 b->kernels, a->kernels);
}

static void agreement_compare_builds(const void *builds, int ranks, struct verdict *verdict)
{
    const struct build *all = builds;
    for (int k = 1; k < ranks && !verdict->text[0]; k++)
        agreement_compare_build(k, &all[0], &all[k], verdict);
}

static bool agreement_same_settings(int rank, const struct report *a, const struct report *b,
                                    struct verdict *verdict)
{
    for (int i = 0; setting_name(i); i++)
        if (strcmp(a->setting[i].text, b->setting[i].text) != 0) {
            snprintf(verdict->text, sizeof verdict->text, "rank %d has --%s %s, rank 0 has %s",
                     rank, setting_name(i), b->setting[i].text, a->setting[i].text);
            return false;
        }
    return true;
}

/* Ranks with different splits hold different parts of a model, so this is compared first. */
static void agreement_compare_splits(int rank, const struct report *a, const struct report *b,
                                     struct verdict *verdict)
{
    if (a->failed || b->failed)
        return;
    if (a->sequence_ranks != b->sequence_ranks)
        snprintf(verdict->text, sizeof verdict->text,
                 "rank %d has --split sequence=%d, rank 0 has sequence=%d", rank, b->sequence_ranks,
                 a->sequence_ranks);
    else if (a->head_ranks != b->head_ranks)
        snprintf(verdict->text, sizeof verdict->text,
                 "rank %d has --split heads=%d, rank 0 has heads=%d", rank, b->head_ranks,
                 a->head_ranks);
    else if (a->head_ranks > 1 && a->threads != b->threads) /* all must compute the same bits */
        snprintf(verdict->text, sizeof verdict->text,
                 "rank %d has %d threads, rank 0 has %d; --split heads needs equal --threads", rank,
                 b->threads, a->threads);
}

static void agreement_compare_report(int rank, const struct report *all, struct verdict *verdict)
{
    char *text = verdict->text;
    const size_t size = sizeof verdict->text;
    const struct report *a = &all[0], *b = &all[rank];
    const int like = a->head_ranks > 1 ? rank % a->head_ranks : 0; /* has the same part */
    if (a->failed || b->failed)
        snprintf(text, size, "rank %d: %s", a->failed ? 0 : rank,
                 a->failed ? a->failure : b->failure);
    else if (strcmp(a->task, b->task) != 0)
        snprintf(text, size, "rank %d trains on %s, rank 0 on %s", rank,
                 b->task[0] ? b->task : "files", a->task[0] ? a->task : "files");
    else if (!agreement_same_settings(rank, a, b, verdict))
        return;
    else if (a->data != b->data)
        snprintf(text, size, "rank %d has different data from rank 0", rank);
    else if (a->steps != b->steps)
        snprintf(text, size, "rank %d continues after step %lld, rank 0 after %lld", rank,
                 (long long)b->steps, (long long)a->steps);
    else if (a->weights != b->weights)
        snprintf(text, size, "rank %d starts with different weights from rank 0", rank);
    else if (all[like].part != b->part)
        snprintf(text, size, "rank %d starts with different weights from rank %d", rank, like);
}

/* Whether all fail, and for the same reason. */
static bool agreement_fail_alike(const struct report *all, int ranks)
{
    bool alike = true;
    for (int k = 0; k < ranks; k++)
        alike = alike && all[k].failed && strcmp(all[k].failure, all[0].failure) == 0;
    return alike;
}

static void agreement_compare_reports(const void *reports, int ranks, struct verdict *verdict)
{
    const struct report *all = reports;
    if (agreement_fail_alike(all, ranks))
        snprintf(verdict->text, sizeof verdict->text, "%s", all[0].failure);
    for (int k = 1; k < ranks && !verdict->text[0]; k++)
        agreement_compare_splits(k, &all[0], &all[k], verdict);
    for (int k = 1; k < ranks && !verdict->text[0]; k++)
        agreement_compare_report(k, all, verdict);
}

/* ---- communication ---- */

/* Rank 0 receives the blocks of all ranks in order, of so many bytes each. */
static bool agreement_gather(sb_communicator *c, const void *own, void *all, size_t bytes)
{
    const int rank = sb_communicator_rank(c), size = sb_communicator_size(c);
    if (rank == 0)
        memcpy(all, own, bytes);
    char nothing = 0;
    for (int k = 1; k < size; k++) {
        if (rank != 0 && rank != k)
            continue;
        sb_exchange *e = rank == 0 ? sb_exchange_start(c, k, &nothing, 0, k,
                                                       (char *)all + (size_t)k * bytes, bytes)
                                   : sb_exchange_start(c, 0, own, bytes, 0, &nothing, 0);
        if (!e || !sb_exchange_finish(e))
            return false;
    }
    return true;
}

/* Rank 0 compares the states of all ranks, and broadcasts its verdict. */
static bool agreement_on(sb_communicator *c, const void *own, size_t bytes,
                         agreement_comparison *compare, bool *alike)
{
    const bool first = sb_communicator_rank(c) == 0;
    const int ranks = sb_communicator_size(c);
    struct verdict verdict = {.text = ""};
    void *all = first ? memory_new((size_t)ranks * bytes) : NULL;
    const bool ok = (all || !first || sb_fail("comparing ranks: out of memory")) &&
                    agreement_gather(c, own, all, bytes);
    if (ok && first)
        compare(all, ranks, &verdict);
    memory_free(all);
    *alike = ok && sb_communicator_broadcast(c, 0, &verdict, sizeof verdict);
    return *alike && (!verdict.text[0] || sb_fail("%s", verdict.text));
}

bool agreement_check(sb_communicator *c, const struct rank_state *state, bool *alike)
{
    *alike = sb_communicator_size(c) == 1;
    if (*alike)
        return !state->failure || sb_fail("%s", state->failure);
    const struct build build = agreement_build_of(state);
    struct report *report = memory_new(sizeof *report);
    if (!report)
        return sb_fail("comparing ranks: out of memory");
    agreement_write_report(report, state);
    const bool ok = agreement_on(c, &build, sizeof build, agreement_compare_builds, alike) &&
                    agreement_on(c, report, sizeof *report, agreement_compare_reports, alike);
    memory_free(report);
    return ok;
}
