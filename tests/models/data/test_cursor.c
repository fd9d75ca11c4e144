/* Each source of batches, through the functions that a trainer calls. */
#include "models/data/labelled.h"
#include "models/data/windows.h"
#include "tensor/hash.h"
#include "tests/support/tiny.h"

enum { SOURCES = 4, ITEMS = 40 };

/* A built-in task, pairs, labelled texts, windows. */
struct sources {
    sb_data *task, *data;
    sb_labelled *labelled;
    sb_windows *windows;
    sb_source at[SOURCES];
};

static void sources_open(struct sources *s)
{
    const sb_data_options options = {.seed = 5, .batch_pairs = 4, .batch_symbols = 64};
    const sb_windows_options cuts = {.seed = 5, .length = 6, .batch_windows = 4};
    const char *const names[] = {"a", "b", "c"};
    sb_vocabulary *vocabulary = KEPT(tiny_vocabulary());
    sb_labels *labels = KEPT(sb_labels_new(names, 3));
    sb_pairs *pairs = KEPT(sb_pairs_new());
    sb_documents *documents = KEPT(sb_documents_new());
    for (int i = 0; i < ITEMS; i++) {
        const char *text = tiny_text((uint64_t)i, 20);
        cr_assert(sb_pairs_add(pairs, text, names[i % 3]));
        cr_assert(!*text ||
                  sb_documents_add(documents, "text", text, strlen(text), SB_DOCUMENTS_FILES));
    }
    s->task = sb_data_task("sort", 5);
    s->data = sb_data_new(pairs, vocabulary, vocabulary, &options);
    s->labelled = sb_labelled_new(pairs, vocabulary, labels, &options);
    s->windows = sb_windows_new(documents, vocabulary, &cuts);
    cr_assert(s->task && s->data && s->labelled && s->windows, "%s", sb_error());
    s->at[0] = sb_data_as_source(s->task);
    s->at[1] = sb_data_as_source(s->data);
    s->at[2] = sb_labelled_as_source(s->labelled);
    s->at[3] = sb_windows_as_source(s->windows);
}

static void sources_close(struct sources *s)
{
    sb_data_free(s->task);
    sb_data_free(s->data);
    sb_labelled_free(s->labelled);
    sb_windows_free(s->windows);
}

/* States of training contain them, and a resumed run compares them. */
CPU_TEST(cursor, hashes_of_data_never_change)
{
    static const uint64_t stored[SOURCES] = {0x6b44881254af27d2, 0x2188846de35115db,
                                             0x1b81de5e7950fda5, 0x776a43a4225d7cba};
    struct sources s;
    sources_open(&s);
    for (int i = 0; i < SOURCES; i++)
        cr_expect(s.at[i].hash(s.at[i].object) == stored[i], "source %d: %llx", i,
                  (unsigned long long)s.at[i].hash(s.at[i].object));
    sources_close(&s);
}

static uint64_t batch_hash(const sb_source *source)
{
    const sb_batch *batch = source->next(source->object);
    uint64_t hash = HASH_START;
    cr_assert(batch, "%s", sb_error());
    for (int p = 0; p < batch->parts; p++)
        hash = hash_add(hash, test_data(batch->part[p].t),
                        4 * (size_t)sb_tensor_size(batch->part[p].t));
    return hash;
}

static bool go_to_epoch_1(void *source_)
{
    const sb_source *source = source_;
    const bool there = source->seek(source->object, (sb_data_position){1, 2});
    return there && source->seek(source->object, (sb_data_position){0, 3});
}

TEST(cursor, a_failed_seek_leaves_the_next_batch_as_it_was)
{
    struct sources s;
    sources_open(&s);
    for (int i = 1; i < SOURCES; i++) {
        const sb_source *source = &s.at[i];
        cr_assert(source->seek(source->object, (sb_data_position){0, 3}));
        const uint64_t before = batch_hash(source);
        cr_assert(source->seek(source->object, (sb_data_position){0, 3}));
        cr_expect(test_each_allocation_fails(go_to_epoch_1, (void *)(uintptr_t)source) > 4);
        cr_expect(!source->seek(source->object, (sb_data_position){2, 1000}));
        const sb_data_position place = source->tell(source->object);
        cr_expect(place.epoch == 0 && place.batch == 3);
        cr_expect(batch_hash(source) == before, "source %d", i);
    }
    sources_close(&s);
}
