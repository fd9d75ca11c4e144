#include "nn/flat.h"
#include "tensor/memory.h"
#include <string.h>

/* Whether a flat buffer has elements of parameter i. */
static bool has_place(const sb_parameters *set, const sb_tensor *flat, int64_t i)
{
    return !parameters_is_frozen(set, i) || tensor_size(flat) == sb_parameters_size(set);
}

int64_t parts_size(const sb_parameters *set, const sb_tensor *flat, int64_t first, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = first; i < first + count; i++) {
        const struct part part = parameters_part(set, i);
        n += has_place(set, flat, i) ? part.rows * part.of : 0;
    }
    return n;
}

/* The address of parameter i in a flat buffer, and its size in bytes. */
static char *place(const sb_parameters *set, const sb_tensor *flat, int64_t i, size_t *bytes)
{
    const int64_t offset = parameters_offset(set, flat, i);
    *bytes = (size_t)(parameters_offset(set, flat, i + 1) - offset) * sb_dtype_bytes(flat->dtype);
    return tensor_element(flat, offset);
}

/* Broadcasts bytes of rank `root`, in chunks that fit MPI's counts. */
static bool broadcast(sb_communicator *c, int root, char *data, size_t bytes)
{
    const size_t most = (size_t)1 << 28;
    bool ok = true;
    for (size_t at = 0, n; ok && at < bytes; at += n) {
        n = bytes - at < most ? bytes - at : most;
        ok = sb_communicator_broadcast(c, root, data + at, n);
    }
    return ok;
}

/* Copies the rows of a part into the unsharded tensor, where its columns begin at `first`, or
   back. */
static void copy_rows(const struct part *part, int64_t first, size_t width, char *whole, char *rows,
                      bool back)
{
    const size_t bytes = (size_t)part->here * width;
    for (int64_t row = 0; row < part->rows; row++, rows += bytes) {
        char *at = whole + (size_t)(row * part->of + first) * width;
        memcpy(back ? rows : at, back ? at : rows, bytes);
    }
}

/* Collects the parts of parameter i from all ranks. */
static bool join_parts(const sb_parameters *set, const sb_tensor *flat, int64_t i, char *whole)
{
    sb_communicator *c = parameters_ranks(set);
    const struct part part = parameters_part(set, i);
    size_t bytes;
    const char *own = place(set, flat, i, &bytes);
    char *rows = memory_new(bytes + 1);
    bool ok = rows || sb_fail("parameters: out of memory for the parts of ranks");
    for (int r = 0; ok && r < sb_communicator_size(c); r++) {
        ok = (r != sb_communicator_rank(c) || flat->device->download(rows, own, bytes)) &&
             broadcast(c, r, rows, bytes);
        if (ok)
            copy_rows(&part, part.here * r, sb_dtype_bytes(flat->dtype), whole, rows, false);
    }
    memory_free(rows);
    return ok;
}

static bool take_part(const sb_parameters *set, const sb_tensor *flat, int64_t i, char *whole)
{
    const struct part part = parameters_part(set, i);
    size_t bytes;
    char *own = place(set, flat, i, &bytes), *rows = memory_new(bytes + 1);
    if (!rows)
        return sb_fail("parameters: out of memory for the part of a rank");
    copy_rows(&part, part.first, sb_dtype_bytes(flat->dtype), whole, rows, true);
    const bool ok = flat->device->upload(own, rows, bytes);
    memory_free(rows);
    return ok;
}

/* Copies the parameters into the unsharded tensor from `at` on, or (take) out of it. */
static bool parts_copy(const sb_parameters *set, const sb_tensor *flat, int64_t first,
                       int64_t count, char *at, bool take)
{
    const sb_device *device = flat->device;
    bool ok = true;
    for (int64_t i = first; ok && i < first + count; i++) {
        size_t bytes;
        char *own = place(set, flat, i, &bytes);
        if (!has_place(set, flat, i))
            continue;
        if (parameters_is_cut(set, i))
            ok = (take ? take_part : join_parts)(set, flat, i, at);
        else
            ok = take ? device->upload(own, at, bytes) : device->download(at, own, bytes);
        at += (size_t)parts_size(set, flat, i, 1) * sb_dtype_bytes(flat->dtype);
    }
    return ok;
}

sb_tensor *parts_join(const sb_parameters *set, const sb_tensor *flat, int64_t first, int64_t count)
{
    const int64_t n = parts_size(set, flat, first, count);
    sb_tensor *whole = tensor_new("parameters", sb_device_cpu(), flat->dtype, 1, &n);
    if (whole && parts_copy(set, flat, first, count, whole->data, false))
        return whole;
    sb_tensor_release(whole);
    return NULL;
}

bool parts_take(const sb_parameters *set, sb_tensor *flat, int64_t first, int64_t count,
                const sb_tensor *whole)
{
    return parts_copy(set, flat, first, count, whole->data, true);
}
