#include "nn/shares.h"
#include "autograd/replicas.h"
#include "autograd/watch.h"
#include "nn/parameter_set.h"
#include "nn/shares_run.h"
#include "ops/context.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/ranks.h"
#include "tensor/threads.h"

/* ---- replicas of the parameters ---- */

/* Those of a share; the first one uses the parameters themselves. */
struct share_replica {
    struct replicas leaves;
    sb_tensor *gradients; /* as the set's flat buffer */
};

struct share_replicas {
    int64_t layout; /* of the gradients */
    int count;
    struct share_replica share[MOST_SHARES];
};

static void shares_drop(struct share_replicas *s)
{
    for (int i = 0; i < s->count; i++) {
        replicas_free(&s->share[i].leaves);
        sb_tensor_release(s->share[i].gradients);
    }
    *s = (struct share_replicas){0};
}

void shares_free(struct share_replicas *shares)
{
    if (shares)
        shares_drop(shares);
    memory_free(shares);
}

int64_t shares_bytes(const sb_parameters *set)
{
    const int extra = set->shares ? set->shares->count : 0;
    return extra * (int64_t)(set->gradients ? tensor_bytes(set->gradients) : 0);
}

static bool shares_fill(const sb_parameters *set, struct share_replica *share)
{
    const sb_tensor *g = set->gradients;
    share->gradients = tensor_new("shares", g->device, g->dtype, g->rank, g->dim);
    bool ok = share->gradients && tensor_zero(share->gradients) && /* the gaps, too */
              replicas_new(&share->leaves, set->count);
    for (int64_t i = 0; ok && i < set->count; i++) {
        const struct parameter *p = &set->item[i];
        if (!p->frozen)
            ok = replicas_add(
                &share->leaves, p->tensor,
                tensor_view("shares", share->gradients, p->slot, p->tensor->rank, p->tensor->dim));
    }
    return ok;
}

/* Makes the replicas that are not there yet. */
static bool shares_make(sb_parameters *set, int shares)
{
    if (!parameters_lay_out(set))
        return false;
    if (!set->shares)
        set->shares = memory_new(sizeof *set->shares);
    struct share_replicas *s = set->shares;
    if (!s)
        return sb_fail("shares: out of memory");
    if (s->layout != set->layout)
        shares_drop(s);
    s->layout = set->layout;
    while (s->count < shares - 1)
        if (!shares_fill(set, &s->share[s->count++])) {
            shares_drop(s);
            return false;
        }
    return true;
}

/* ---- sums ---- */

/* A gradient that some shares have and others have not is zero there. */
static bool shares_complete(struct share_replicas *s, int replicas, sb_tensor *w)
{
    bool any = w->grad_current;
    for (int i = 0; i < replicas; i++)
        any |= replica_of(&s->share[i].leaves, w)->grad_current;
    bool ok = !any || w->grad_current || tensor_zero(w->grad);
    for (int i = 0; any && i < replicas; i++) {
        sb_tensor *leaf = replica_of(&s->share[i].leaves, w);
        ok = ok && (leaf->grad_current || tensor_zero(leaf->grad));
        leaf->grad_current = false;
    }
    w->grad_current = any;
    return ok;
}

/* Adds all gradients to the set's. What is stale in all of them stays so. */
static bool shares_add(const sb_parameters *set, int replicas)
{
    struct share_replicas *s = set->shares;
    const struct update_kernels *kernels = kernel_row(&update_rows, set->gradients);
    const void *x[MOST_SHARES];
    bool ok = kernels != NULL;
    for (int64_t i = 0; ok && i < set->count; i++)
        ok = set->item[i].frozen || shares_complete(s, replicas, set->item[i].tensor);
    for (int i = 0; i < replicas; i++)
        x[i] = s->share[i].gradients->data;
    return ok && kernels->add(tensor_size(set->gradients), replicas, x, set->gradients->data);
}

/* ---- runs ---- */

struct shares_run {
    struct share_replicas *replicas; /* NULL: all use the parameters themselves */
    int shares;
    const sb_random *random;
    uint64_t end; /* the position of the random stream after the last share */
    share_loss *loss;
    void *context;
    double value[MOST_SHARES];
};

/* The i-th from the end: batches are sorted by length, and the longest share begins first. */
static bool shares_pass(void *shares_run, int64_t i)
{
    struct shares_run *run = shares_run;
    const int share = run->shares - 1 - (int)i;
    sb_partition place = {0};
    const sb_context context = {.partition = &place};
    sb_random random = run->random ? *run->random : (sb_random){0};
    struct replicas own = {0}; /* the leaves that others replace */
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_RECORD, &context);
    sb_tape_random(&tape, run->random ? &random : NULL);
    if (run->replicas && run->shares > 1) {
        const struct replicas *leaves = &run->replicas->share[0].leaves;
        own = (struct replicas){.at = leaves->at, .count = leaves->count, .in_place = true};
        tape_open()->replicas = share == 0 ? &own : &run->replicas->share[share - 1].leaves;
    }
    sb_tensor *loss = run->loss(run->context, share, &place, &run->value[share]);
    const bool ok = loss && sb_backward(loss);
    if (share == run->shares - 1)
        run->end = random.position;
    return sb_tape_end(&tape) && ok;
}

/* On threads, unless a watcher is there; on a device in turn, without replicas. */
static bool shares_compute(sb_parameters *set, struct shares_run *run)
{
    if (sb_device_in_use() != sb_device_cpu())
        return threads_each(run->shares, true, shares_pass, run);
    if (!shares_make(set, run->shares))
        return false;
    run->replicas = set->shares;
    const bool ok = threads_each(run->shares, watch_is_on(), shares_pass, run);
    return shares_add(set, run->shares - 1) && ok;
}

bool shares_run(sb_parameters *set, int shares, sb_random *random, share_loss *loss, void *context,
                double *sum)
{
    struct shares_run run = {.shares = shares, .random = random, .loss = loss, .context = context};
    if (tape_open() && tape_open()->twins)
        return sb_fail("backward_in_shares: it was called inside an exact derivative, whose dual "
                       "numbers other threads do not have; call it outside");
    *sum = 0;
    if (!parameters_share(set, true))
        return false;
    const bool ok = shares_compute(set, &run);
    parameters_share(set, false);
    for (int i = 0; i < shares; i++)
        *sum += run.value[i];
    if (!ok)
        sb_parameters_clear(set);
    else if (random)
        random->position = run.end;
    return ok;
}

/* ---- loops of one's own ---- */

struct own_loss {
    int64_t items;
    int shares;
    sb_share_loss loss;
    void *context;
};

static sb_tensor *own_share_loss(void *own_loss, int share, sb_partition *place, double *value)
{
    const struct own_loss *own = own_loss;
    const int64_t first = share_begin(own->items, share, own->shares),
                  end = share_begin(own->items, share + 1, own->shares);
    place->items = (sb_piece){.of = own->items, .first = first};
    sb_tensor *loss = own->loss(own->context, first, end - first);
    *value = loss ? sb_tensor_value(loss) : 0;
    return loss;
}

bool sb_backward_in_shares(sb_parameters *set, int64_t items, int shares, sb_random *random,
                           sb_share_loss loss, void *context, double *sum)
{
    const char *who = "backward_in_shares";
    double value;
    if (!set || !loss)
        return fail_null(who, set ? "loss" : "set");
    if (shares < 1 || shares > MOST_SHARES || shares > items)
        return sb_fail(
            "%s: %d shares of %lld items; expected from 1 to %d, each of an item at least", who,
            shares, (long long)items, MOST_SHARES);
    struct own_loss own = {items, shares, loss, context};
    if (!shares_run(set, shares, random, own_share_loss, &own, &value))
        return false;
    if (sum)
        *sum = value;
    return true;
}
