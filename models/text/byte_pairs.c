#include "models/text/symbols.h"
#include "models/text/table.h"
#include "models/text/unit.h"
#include "tensor/memory.h"
#include <assert.h>
#include <string.h>

/* ---- applying ---- */

struct neighbours {
    int32_t previous, next;
};

/* Pushes the pair at `at` on the heap, if it has a merge: ordered by rank, then by place. */
static bool byte_pairs_push(const sb_vocabulary *v, struct heap *heap, const int32_t *ids,
                            const struct neighbours *link, int32_t at)
{
    if (at < 0 || link[at].next < 0)
        return true;
    int32_t pair[2] = {ids[at], ids[link[at].next]};
    int64_t rank = table_find(&v->merges, pair, sizeof pair);
    return rank < 0 || heap_add(heap, (uint64_t)rank, (uint64_t)at);
}

/* Applies the earliest learned merge at its leftmost place, until none applies. The result of a
   merge is part of later merges only, so this repeats what learning did. */
static bool byte_pairs_apply_merge(const sb_vocabulary *v, struct heap *heap, int32_t *ids,
                                   struct neighbours *link)
{
    struct heap_item item;
    while (heap_take(heap, &item)) {
        int32_t at = (int32_t)item.second, right = link[at].next;
        if (ids[at] < 0 || right < 0)
            continue;
        int32_t pair[2] = {ids[at], ids[right]};
        if (table_find(&v->merges, pair, sizeof pair) != (int64_t)item.first)
            continue; /* an outdated entry: the pair has changed since */
        ids[at] = merge_result(v, (int64_t)item.first);
        ids[right] = -1;
        link[at].next = link[right].next;
        if (link[at].next >= 0)
            link[link[at].next].previous = at;
        if (!byte_pairs_push(v, heap, ids, link, link[at].previous) ||
            !byte_pairs_push(v, heap, ids, link, at))
            return false;
    }
    return true;
}

int64_t byte_pairs_apply(const sb_vocabulary *vocabulary, int32_t *ids, int64_t count)
{
    if (count < 2 || vocabulary->merges.count == 0)
        return count;
    struct heap heap = {0};
    struct neighbours *link = memory_new((size_t)count * sizeof *link);
    bool ok = link != NULL;
    for (int32_t at = 0; ok && at < count; at++)
        link[at] = (struct neighbours){at - 1, at + 1 < count ? at + 1 : -1};
    for (int32_t at = 0; ok && at < count; at++)
        ok = byte_pairs_push(vocabulary, &heap, ids, link, at);
    ok = ok && byte_pairs_apply_merge(vocabulary, &heap, ids, link);
    int64_t left = 0;
    for (int64_t at = 0; ok && at < count; at++)
        if (ids[at] >= 0)
            ids[left++] = ids[at];
    heap_free(&heap);
    memory_free(link);
    return ok ? left : -1;
}

/*
 * ---- learning ----
 *
 * Each word is a linked list of symbols. Each pair of neighbours has its number of
 * uses and a list of the places where it was counted, so that a merge visits its own places only; a
 * place that has changed since is skipped.
 */
struct pair {
    int64_t uses;
    int32_t first, last; /* its list of places, in the order of the text; -1: none */
};

struct place {
    int32_t at, next;
};

struct link {
    int32_t id; /* -1: merged into the symbol before it */
    int32_t previous, next;
    int32_t word;
};

struct learner {
    sb_vocabulary *vocabulary;
    const int64_t *word_uses;
    struct link *link;
    struct table pairs; /* keys: two ids */
    struct pair *pair;
    struct place *place;
    int64_t links, pair_count, pair_room, places, place_room;
    struct heap heap; /* (-uses, ids) of pairs; uses only decrease, so entries may be outdated */
};

static uint64_t pairs_learn_pack(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static int64_t find_pair(const struct learner *l, int32_t left, int32_t right)
{
    return table_find(&l->pairs, (int32_t[]){left, right}, 2 * sizeof(int32_t));
}

/* Counts the pair that begins at a link. */
static bool count_pair(struct learner *l, int32_t at)
{
    const struct link *link = &l->link[at];
    int32_t ids[2] = {link->id, l->link[link->next].id};
    if (ids[0] == SB_SYMBOL_UNKNOWN || ids[1] == SB_SYMBOL_UNKNOWN)
        return true;
    int64_t index = table_add(&l->pairs, ids, sizeof ids);
    if (index < 0 || !memory_room(&l->pair, l->pair_count, &l->pair_room, sizeof *l->pair) ||
        !memory_room(&l->place, l->places, &l->place_room, sizeof *l->place))
        return false;
    if (index == l->pair_count)
        l->pair[l->pair_count++] = (struct pair){0, -1, -1};
    struct pair *pair = &l->pair[index];
    int32_t place = (int32_t)l->places++;
    l->place[place] = (struct place){at, -1};
    if (pair->last < 0)
        pair->first = place;
    else
        l->place[pair->last].next = place;
    pair->last = place;
    pair->uses += l->word_uses[link->word];
    return true;
}

/* Subtracts the pair that begins at a link from its count. */
static void discount_pair(struct learner *l, int32_t at)
{
    const struct link *link = &l->link[at];
    int64_t index = find_pair(l, link->id, l->link[link->next].id);
    if (index >= 0)
        l->pair[index].uses -= l->word_uses[link->word];
}

/* Merges the link at `at` with the next one. */
static bool pairs_learn_merge_at(struct learner *l, int32_t at, int32_t merged)
{
    struct link *link = &l->link[at], *right = &l->link[link->next];
    int32_t before = link->previous, after = right->next;
    if (before >= 0)
        discount_pair(l, before);
    if (after >= 0) {
        discount_pair(l, link->next);
        l->link[after].previous = at;
    }
    right->id = -1;
    link->id = merged;
    link->next = after;
    return (before < 0 || count_pair(l, before)) && (after < 0 || count_pair(l, at));
}

/* Pushes the new pairs, from `index` on, on the heap. */
static bool push_pairs(struct learner *l, int64_t index)
{
    for (; index < l->pair_count; index++) {
        int32_t ids[2];
        memcpy(ids, table_key(&l->pairs, index), sizeof ids);
        if (l->pair[index].uses > 1 && !heap_add(&l->heap, 0 - (uint64_t)l->pair[index].uses,
                                                 pairs_learn_pack(ids[0], ids[1])))
            return false;
    }
    return true;
}

static bool pairs_learn_merge_everywhere(struct learner *l, int64_t index, int32_t left,
                                         int32_t right, int32_t merged)
{
    int64_t known = l->pair_count;
    for (int32_t place = l->pair[index].first; place >= 0; place = l->place[place].next) {
        int32_t at = l->place[place].at, next = l->link[at].next;
        if (l->link[at].id == left && next >= 0 && l->link[next].id == right &&
            !pairs_learn_merge_at(l, at, merged))
            return false;
    }
    l->pair[index].uses = 0;
    return push_pairs(l, known);
}

/*
 * Adds a merge and its symbol, and returns the symbol's id; -1 without memory. The symbol's text is
 * always new: no merge crossed the ends of its occurrences, so all of them were merged alike, and
 * no two different pairs make the same text.
 */
static int32_t pairs_learn_add_merge(sb_vocabulary *v, int32_t left, int32_t right)
{
    struct buffer text = {0};
    int64_t halves[2] = {left - SB_SPECIAL_SYMBOLS, right - SB_SPECIAL_SYMBOLS};
    int64_t added = -1, known = v->symbols.count;
    bool ok = true;
    for (int i = 0; ok && i < 2; i++)
        ok = buffer_add(&text, table_key(&v->symbols, halves[i]),
                        table_key_size(&v->symbols, halves[i]));
    if (ok && table_add(&v->merges, (int32_t[]){left, right}, 2 * sizeof(int32_t)) >= 0)
        added = table_add(&v->symbols, text.bytes, text.size);
    buffer_free(&text);
    assert(added < 0 || added == known);
    (void)known;
    return added < 0 ? -1 : (int32_t)added + SB_SPECIAL_SYMBOLS;
}

static bool learn_merges(struct learner *l, int64_t size)
{
    struct heap_item top;
    while (sb_vocabulary_size(l->vocabulary) < size && heap_take(&l->heap, &top)) {
        int32_t left = (int32_t)(top.second >> 32), right = (int32_t)(uint32_t)top.second;
        int64_t index = find_pair(l, left, right), uses = l->pair[index].uses;
        if (0 - (uint64_t)uses != top.first) { /* an outdated entry */
            if (uses > 1 && !heap_add(&l->heap, 0 - (uint64_t)uses, top.second))
                return false;
            continue;
        }
        int32_t merged = pairs_learn_add_merge(l->vocabulary, left, right);
        if (merged < 0 || !pairs_learn_merge_everywhere(l, index, left, right, merged))
            return false;
    }
    return true;
}

/* Links the characters of the words and counts their pairs. */
static bool pairs_learn_read_words(struct learner *l, const struct table *words)
{
    l->link = memory_new(words->keys.size * sizeof *l->link);
    if (!l->link)
        return false;
    for (int64_t word = 0; word < words->count; word++) {
        const char *text = table_key(words, word);
        struct unit unit;
        int64_t first = l->links;
        for (size_t at = 0;
             unit_next(SB_UNITS_CHARACTERS, text, table_key_size(words, word), &at, &unit);) {
            int32_t id = (int32_t)table_find(&l->vocabulary->symbols, unit.text, unit.size);
            int32_t here = (int32_t)l->links++;
            l->link[here] = (struct link){id < 0 ? SB_SYMBOL_UNKNOWN : id + SB_SPECIAL_SYMBOLS,
                                          here > first ? here - 1 : -1, -1, (int32_t)word};
            if (here > first)
                l->link[here - 1].next = here;
        }
        for (int64_t at = first; at + 1 < l->links; at++)
            if (!count_pair(l, (int32_t)at))
                return false;
    }
    return push_pairs(l, 0);
}

bool byte_pairs_learn(sb_vocabulary *vocabulary, const struct table *words, const int64_t *uses,
                      int64_t size)
{
    if (words->keys.size > (size_t)1 << 29) /* places are counted in 32 bits, three a character */
        return sb_fail("vocabulary_new: different words have %zu bytes; bpe takes at most 2^29",
                       words->keys.size);
    struct learner l = {.vocabulary = vocabulary, .word_uses = uses};
    bool ok = pairs_learn_read_words(&l, words) && learn_merges(&l, size);
    memory_free(l.link);
    table_free(&l.pairs);
    memory_free(l.pair);
    memory_free(l.place);
    heap_free(&l.heap);
    return ok || sb_fail("vocabulary_new: out of memory");
}
