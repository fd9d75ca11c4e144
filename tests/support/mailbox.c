#include "tests/support/mailbox.h"
#include <pthread.h>

enum { MOST_RANKS = 8 };

/* A message, or a request for one. */
struct message {
    struct message *next;
    int part, from, to, tag; /* ranks of all */
    size_t bytes;
    void *data;
};

struct group {
    struct mailbox *mailbox;
    int part;               /* distinguishes groups of the same ranks; 0: all */
    int rank, size;         /* this one's */
    int member[MOST_RANKS]; /* their ranks of all */
};

struct mailbox {
    int ranks, waiting, barriers;
    bool turns; /* a rank holds the lock whenever it runs */
    struct message *first, **last;
    int64_t sent[MOST_RANKS];
    int color[MOST_RANKS], key[MOST_RANKS]; /* of those that split */
    pthread_mutex_t lock;
    pthread_cond_t arrival;
};

/* In the mailbox's functions a rank holds the lock in any case. */
static void mailbox_lock(struct mailbox *m)
{
    if (!m->turns)
        pthread_mutex_lock(&m->lock);
}

static void mailbox_unlock(struct mailbox *m)
{
    if (!m->turns)
        pthread_mutex_unlock(&m->lock);
}

struct mailbox *mailbox_open(int ranks)
{
    struct mailbox *m = calloc(1, sizeof *m);
    m->ranks = ranks;
    m->last = &m->first;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->arrival, NULL);
    return m;
}

void mailbox_close(struct mailbox *m)
{
    cr_expect(!m->first, "a message was not received");
    free(m);
}

int64_t mailbox_sent(const sb_communicator *c)
{
    return c->group->mailbox->sent[c->rank];
}

static struct group_sizes sizes_of(const struct group *group)
{
    return (struct group_sizes){.rank = group->rank, .size = group->size};
}

static void close_group(struct group *group)
{
    free(group);
}

static bool start_send(struct group *group, const void *data, size_t bytes, int to, int tag,
                       struct transfer *transfer)
{
    struct mailbox *m = group->mailbox;
    struct message *message = malloc(sizeof *message);
    const int from = group->member[group->rank];
    *message =
        (struct message){NULL, group->part, from, group->member[to], tag, bytes, malloc(bytes + 1)};
    memcpy(message->data, data, bytes);
    mailbox_lock(m);
    *m->last = message;
    m->last = &message->next;
    m->sent[from] += (int64_t)bytes;
    pthread_cond_broadcast(&m->arrival);
    mailbox_unlock(m);
    transfer->word = 0;
    return true;
}

/* What a transfer of a receive points to. */
struct request {
    struct mailbox *mailbox;
    struct message wanted;
};

static bool start_receive(struct group *group, void *room, size_t bytes, int from, int tag,
                          struct transfer *transfer)
{
    struct request *request = malloc(sizeof *request);
    const int to = group->member[group->rank];
    *request = (struct request){group->mailbox,
                                {NULL, group->part, group->member[from], to, tag, bytes, room}};
    transfer->word = (uint64_t)(uintptr_t)request;
    return true;
}

/* Delivers the first message that is wanted, if there is one. */
static bool deliver(struct request *request)
{
    struct mailbox *m = request->mailbox;
    const struct message *w = &request->wanted;
    struct message **at = &m->first, *l;
    while ((l = *at) &&
           (l->part != w->part || l->from != w->from || l->to != w->to || l->tag != w->tag))
        at = &l->next;
    if (!l)
        return false;
    if (l->bytes == w->bytes)
        memcpy(w->data, l->data, l->bytes);
    else
        sb_fail("mailbox: received %zu bytes, expected %zu", l->bytes, w->bytes);
    *at = l->next;
    m->last = l->next ? m->last : at;
    free(l->data);
    free(l);
    free(request);
    return true;
}

static bool complete(struct transfer *transfer, bool *done)
{
    struct request *request = (struct request *)(uintptr_t)transfer->word;
    struct mailbox *m = request ? request->mailbox : NULL;
    bool delivered = !request;
    if (request) {
        mailbox_lock(m);
        while (!(delivered = deliver(request)) && !done)
            pthread_cond_wait(&m->arrival, &m->lock);
        mailbox_unlock(m);
    }
    transfer->word = delivered ? 0 : transfer->word;
    if (done)
        *done = delivered;
    return true;
}

static bool broadcast(struct group *group, void *data, size_t bytes, int root)
{
    struct transfer t;
    for (int to = 0; group->rank == root && to < group->size; to++)
        if (to != root)
            start_send(group, data, bytes, to, -1, &t);
    return group->rank == root ||
           (start_receive(group, data, bytes, root, -1, &t) && complete(&t, NULL));
}

static bool barrier(struct group *group)
{
    struct mailbox *m = group->mailbox;
    mailbox_lock(m);
    const int this = m->barriers;
    if (++m->waiting == m->ranks) {
        m->waiting = 0;
        m->barriers++;
        pthread_cond_broadcast(&m->arrival);
    }
    while (m->barriers == this)
        pthread_cond_wait(&m->arrival, &m->lock);
    mailbox_unlock(m);
    return true;
}

/* Of all ranks only. */
static struct group *split(struct group *all, int color, int key)
{
    struct mailbox *m = all->mailbox;
    struct group *part = malloc(sizeof *part);
    *part = (struct group){.mailbox = m, .part = 1 + color};
    m->color[all->rank] = color;
    m->key[all->rank] = key;
    barrier(all);
    for (int r = 0; r < m->ranks; r++) {
        if (m->color[r] != color)
            continue;
        int at = part->size++;
        for (; at > 0 && m->key[part->member[at - 1]] > m->key[r]; at--)
            part->member[at] = part->member[at - 1];
        part->member[at] = r;
    }
    while (part->member[part->rank] != all->rank)
        part->rank++;
    barrier(all); /* before the next one */
    return part;
}

static const struct communicator_plugin plugin = {.split = split,
                                                  .close = close_group,
                                                  .sizes = sizes_of,
                                                  .send = start_send,
                                                  .receive = start_receive,
                                                  .complete = complete,
                                                  .broadcast = broadcast,
                                                  .barrier = barrier};

sb_communicator *mailbox_rank(struct mailbox *mailbox, int rank)
{
    struct group *group = malloc(sizeof *group);
    *group = (struct group){.mailbox = mailbox, .rank = rank, .size = mailbox->ranks};
    for (int r = 0; r < mailbox->ranks; r++)
        group->member[r] = r;
    return KEPT(communicator_new(&plugin, group));
}

/* ---- threads ---- */

struct rank {
    pthread_t thread;
    sb_communicator *c;
    void (*body)(sb_communicator *c, void *context);
    void *context;
};

static void *run(void *argument)
{
    const struct rank *rank = argument;
    struct mailbox *m = rank->c->group->mailbox;
    if (m->turns)
        pthread_mutex_lock(&m->lock);
    rank->body(rank->c, rank->context);
    if (m->turns)
        pthread_mutex_unlock(&m->lock);
    return NULL;
}

void mailbox_run(int ranks, void (*body)(sb_communicator *c, void *context), void *context)
{
    struct rank rank[MOST_RANKS];
    struct mailbox *m = mailbox_open(ranks);
    m->turns = sb_device_in_use() != sb_device_cpu();
    for (int i = 0; i < ranks; i++) {
        rank[i] = (struct rank){.c = mailbox_rank(m, i), .body = body, .context = context};
        cr_assert(pthread_create(&rank[i].thread, NULL, run, &rank[i]) == 0);
    }
    for (int i = 0; i < ranks; i++)
        pthread_join(rank[i].thread, NULL);
    mailbox_close(m);
}

/* ---- parts of tensors ---- */

static int64_t place_of(const sb_piece *piece, int64_t n)
{
    return piece->turn && n >= piece->turn ? piece->second + n - piece->turn : piece->first + n;
}

/* The index in t of element e of a part of t whose axis has `here` elements. */
static int64_t element_of(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here,
                          int64_t e)
{
    int64_t inner = 1;
    for (int i = axis + 1; i < t->rank; i++)
        inner *= t->dim[i];
    const int64_t outer = e / inner / here, n = place_of(piece, e / inner % here);
    return (outer * t->dim[axis] + n) * inner + e % inner;
}

sb_tensor *share_part(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here)
{
    int64_t dim[SB_MAX_RANK];
    memcpy(dim, t->dim, sizeof dim);
    dim[axis] = here;
    sb_tensor *part = KEPT(sb_tensor_zeros(t->dtype, t->rank, dim));
    double *numbers = numbers_of(t), *own = numbers_of(part);
    for (int64_t e = 0; e < sb_tensor_size(part); e++)
        own[e] = numbers[element_of(t, axis, piece, here, e)];
    sb_tensor_write(part, own);
    return sb_dtype_is_real(part->dtype) ? sb_tensor_requires_grad(part) : part;
}

void share_add(sb_tensor *t, int axis, const sb_piece *piece, const sb_tensor *x)
{
    double *numbers = numbers_of(x), *sum = numbers_of(t);
    const int64_t here = x->rank > 0 ? x->dim[axis] : 1;
    for (int64_t e = 0; e < sb_tensor_size(x); e++)
        sum[element_of(t, axis, piece, here, e)] += numbers[e];
    sb_tensor_write(t, sum);
}
