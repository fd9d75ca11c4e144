/* The batch that a training run saves when its loss is not finite. */
#include "models/data/batch_parts.h"
#include "models/text/buffer.h"
#include "program/run/kind.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include <string.h>

char *training_bad_batch(const struct training *t, int number)
{
    return number == 1 ? memory_format("%s.bad-batch.tsv", t->out)
                       : memory_format("%s.bad-batch.%d.tsv", t->out, number);
}

/* Earlier files are kept, as they may still be needed. */
static char *training_new_bad_batch(const struct training *t)
{
    char *path = training_bad_batch(t, 1);
    for (int number = 2; path && file_exists(path); number++) {
        memory_free(path);
        path = training_bad_batch(t, number);
    }
    return path;
}

bool bad_batch_add_text(struct buffer *buffer, const sb_vocabulary *vocabulary,
                        const sb_batch *batch, const char *ids, const char *lengths, int64_t item)
{
    sb_tensor *all = sb_batch_get(batch, ids);
    const int32_t *row =
        all ? (const int32_t *)sb_tensor_data(all) + item * sb_tensor_dim(all, 1) : NULL;
    char *text =
        row ? sb_vocabulary_decode(vocabulary, row,
                                   (int64_t)sb_tensor_get(sb_batch_get(batch, lengths), item))
            : NULL;
    const bool ok = text && buffer_add_text(buffer, text);
    sb_free(text);
    return ok;
}

/* The texts of a batch, which may lie on a device. */
static char *training_batch_text(const struct training *t, const sb_batch *batch)
{
    sb_batch host;
    struct buffer buffer = {0};
    bool ok = batch_copy(&host, batch, sb_device_cpu());
    for (int64_t i = 0; ok && i < batch->items; i++)
        ok = t->kind->add_item(&buffer, t, &host, i) && buffer_add_text(&buffer, "\n");
    char *text = ok ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    batch_release(&host);
    return text;
}

char *training_save_batch(const struct training *t)
{
    const sb_batch *batch = sb_trainer_batch(t->trainer);
    char *path = batch ? training_new_bad_batch(t) : NULL;
    char *text = path ? training_batch_text(t, batch) : NULL;
    bool ok = text && file_save("train", path, text, strlen(text));
    memory_free(text);
    if (ok)
        return path;
    memory_free(path);
    return NULL;
}
