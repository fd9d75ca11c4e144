#include "tensor/communicator.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/reduction.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sb_communicator *communicator_new(const struct communicator_plugin *plugin, struct group *group)
{
    sb_communicator *c = memory_new(sizeof *c);
    if (!c)
        return sb_fail("communicator: out of memory");
    *c = (sb_communicator){.plugin = plugin, .group = group, .size = 1};
    if (plugin) {
        const struct group_sizes sizes = plugin->sizes(group);
        c->rank = c->job_rank = sizes.rank;
        c->size = sizes.size;
    }
    return c;
}

void sb_communicator_close(sb_communicator *c)
{
    if (c && c->plugin)
        c->plugin->close(c->group);
    memory_free(c);
}

sb_communicator *sb_communicator_split(sb_communicator *c, int color, int key)
{
    if (!check_at_least("communicator_split", "color", color, 0))
        return NULL;
    if (!c || !c->plugin)
        return communicator_new(NULL, NULL);
    struct group *group = c->plugin->split(c->group, color, key);
    sb_communicator *part = group ? communicator_new(c->plugin, group) : NULL;
    if (part) {
        part->job_rank = c->job_rank;
        part->whole = c;
    } else if (group) {
        c->plugin->close(group);
    }
    return part;
}

int sb_communicator_rank(const sb_communicator *c)
{
    return c ? c->rank : 0;
}

int sb_communicator_size(const sb_communicator *c)
{
    return c ? c->size : 1;
}

int64_t communicator_share(const sb_communicator *c, int rank, int64_t count)
{
    return share_begin(count, rank, sb_communicator_size(c));
}

int sb_communicator_processors(const sb_communicator *c)
{
    return c && c->plugin ? c->plugin->sizes(c->group).processors : 0;
}

int64_t sb_communicator_sent(const sb_communicator *c)
{
    return c ? c->sent : 0;
}

bool communicator_send(sb_communicator *c, const void *data, size_t bytes, int to, int tag,
                       struct transfer *transfer)
{
    if (!c->plugin->send(c->group, data, bytes, to, tag, transfer))
        return false;
    for (sb_communicator *all = to == c->rank ? NULL : c; all; all = all->whole)
        all->sent += (int64_t)bytes;
    return true;
}

static bool is_rank(const sb_communicator *c, const char *who, int rank)
{
    const int size = sb_communicator_size(c);
    return (rank >= 0 && rank < size) ||
           sb_fail("%s: there is no rank %d among %d", who, rank, size);
}

bool sb_communicator_broadcast(sb_communicator *c, int root, void *data, size_t bytes)
{
    if (!data && bytes > 0)
        return fail_null("communicator_broadcast", "data");
    if (!is_rank(c, "communicator_broadcast", root))
        return false;
    const size_t most = (size_t)1 << 30; /* MPI counts are of type int */
    for (size_t at = 0, part; c && c->plugin && at < bytes; at += part) {
        part = bytes - at < most ? bytes - at : most;
        if (!c->plugin->broadcast(c->group, (char *)data + at, part, root))
            return false;
    }
    return true;
}

bool sb_communicator_barrier(sb_communicator *c)
{
    return !c || !c->plugin || c->plugin->barrier(c->group);
}

bool sb_communicator_sum(sb_communicator *c, sb_dtype dtype, int64_t n, void *x)
{
    const int64_t most = (int64_t)1 << 26;
    if (!check_at_least("communicator_sum", "n", n, 0))
        return false;
    if (!x && n > 0)
        return fail_null("communicator_sum", "x");
    for (int64_t at = 0, part; at < n; at += part) {
        part = n - at < most ? n - at : most;
        struct reduction *sum = reduction_new(c, sb_device_cpu(), dtype, part);
        const bool ok = sum &&
                        reduction_start(sum, (char *)x + (size_t)at * sb_dtype_bytes(dtype)) &&
                        reduction_finish(sum);
        reduction_free(sum);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- exchanges ---- */

struct sb_exchange {
    const struct communicator_plugin *plugin;
    struct transfer sent, received;
};

/* An exchange of a rank with itself. */
static bool copy(const void *data, size_t bytes, void *room, size_t room_bytes)
{
    if (bytes != room_bytes)
        return sb_fail("exchange: %zu bytes are sent and %zu expected", bytes, room_bytes);
    if (bytes > 0) /* memmove does not take NULL */
        memmove(room, data, bytes);
    return true;
}

sb_exchange *sb_exchange_start(sb_communicator *c, int to, const void *data, size_t bytes, int from,
                               void *room, size_t room_bytes)
{
    if ((!data && bytes > 0) || (!room && room_bytes > 0))
        return fail_null("exchange", !data && bytes > 0 ? "data" : "room");
    if (!is_rank(c, "exchange", to) || !is_rank(c, "exchange", from))
        return NULL;
    sb_exchange *e = memory_new(sizeof *e);
    if (!e)
        return sb_fail("exchange: out of memory");
    e->plugin = c ? c->plugin : NULL;
    if (e->plugin
            ? e->plugin->receive(c->group, room, room_bytes, from, EXCHANGE_TAG, &e->received) &&
                  communicator_send(c, data, bytes, to, EXCHANGE_TAG, &e->sent)
            : copy(data, bytes, room, room_bytes))
        return e;
    memory_free(e);
    return NULL;
}

bool sb_exchange_finish(sb_exchange *e)
{
    if (!e)
        return fail_null("exchange_finish", "exchange");
    const bool ok = !e->plugin || (e->plugin->complete(&e->received, NULL) &&
                                   e->plugin->complete(&e->sent, NULL));
    memory_free(e);
    return ok;
}

/* ---- faults ---- */

bool sb_communicator_watch(sb_communicator *c, double seconds)
{
    if (!(seconds >= 1))
        return sb_fail("communicator_watch: seconds is %g; it must be at least 1", seconds);
    return !c || !c->plugin || c->plugin->watch(c->group, seconds);
}

void sb_communicator_abort(sb_communicator *c, const char *who, const char *message)
{
    fflush(stdout);
    fprintf(stderr, "%s: rank %d: %s\n", who ? who : "softback", c ? c->job_rank : 0,
            message ? message : "aborted");
    fflush(stderr);
    if (c && c->plugin)
        c->plugin->abort();
    exit(EXIT_FAILURE);
}
