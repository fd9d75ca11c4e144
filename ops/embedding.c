#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/indexing.h"
#include "ops/ops.h"
#include "tensor/dual.h"

KERNEL_ROWS(embedding);

/* Backward checks again: the caller may have changed the ids since forward. */
static bool embedding_ids_fit(const struct embedding_kernels *k, int64_t V, const sb_tensor *ids)
{
    return check_ids_fit("embedding", ids, k->first_bad(tensor_size(ids), V, ids->data), V);
}

static bool embedding_backward(sb_node *node)
{
    const sb_tensor *table = node->in[0], *ids = node->in[1], *dy = sb_node_dy(node, 0);
    const int64_t *padding = sb_node_options(node);
    sb_tensor *dtable = sb_node_dx(node, 0);
    const struct embedding_kernels *k = kernel_row(&embedding_rows, table);
    return k && embedding_ids_fit(k, table->dim[0], ids) &&
           k->backward(tensor_size(ids), table->dim[0], table->dim[1], *padding, ids->data,
                       dy->data, dtable->data);
}

static const sb_operation embedding = {"embedding", "table ids", embedding_backward, false, true};

enum { NO_PADDING = -1 };

/* Clears the tangents of the row of padding: they stop where gradients do. */
static void embedding_stop_tangents(const sb_tensor *ids, int64_t padding, sb_tensor *y)
{
    const int32_t *id = ids->data;
    const int64_t C = y->dim[y->rank - 1];
    sb_dual *row = y->data;
    for (int64_t i = 0; i < tensor_size(ids); i++, row += C)
        for (int64_t c = 0; id[i] == padding && c < C; c++)
            row[c] = sb_dual_value(row[c]);
}

static sb_tensor *embedding_look_up(sb_tensor *table, sb_tensor *ids, int64_t padding)
{
    sb_node *node = call_begin(&embedding, &embedding_rows, 2, (sb_tensor *[]){table, ids}, 1,
                               &padding, sizeof padding);
    if (!node || !check_real("embedding", "table", table) || !check_ids("embedding", "ids", ids))
        return NULL;
    if (table->rank != 2)
        return sb_fail("embedding: table is %s, not (V, C)", tensor_shape(table).text);
    if (ids->rank == SB_MAX_RANK)
        return sb_fail("embedding: ids are %s: the result would have more than %d axes",
                       tensor_shape(ids).text, SB_MAX_RANK);
    table = node->in[0];
    const struct embedding_kernels *k = kernel_row(&embedding_rows, table);
    if (!k || !embedding_ids_fit(k, table->dim[0], ids))
        return NULL;
    int64_t dim[SB_MAX_RANK], C = table->dim[1];
    for (int axis = 0; axis < ids->rank; axis++)
        dim[axis] = ids->dim[axis];
    dim[ids->rank] = C;
    sb_tensor *y = sb_node_output(node, table->dtype, ids->rank + 1, dim);
    const int64_t V = table->dim[0];
    const bool ok = y && k->forward(tensor_size(ids), V, C, table->data, ids->data, y->data);
    if (ok && table->dtype == SB_DUAL)
        embedding_stop_tangents(ids, padding, y);
    return call_end(node, ok);
}

sb_tensor *sb_embedding(sb_tensor *table, sb_tensor *ids)
{
    return embedding_look_up(table, ids, NO_PADDING);
}

sb_tensor *sb_embedding_padded(sb_tensor *table, sb_tensor *ids, int64_t padding_id)
{
    if (table && table->rank == 2 && (padding_id < 0 || padding_id >= table->dim[0]))
        return sb_fail("embedding_padded: padding_id is %lld; it must be in 0..%lld, a row of the "
                       "table %s",
                       (long long)padding_id, (long long)table->dim[0] - 1,
                       tensor_shape(table).text);
    return embedding_look_up(table, ids, padding_id);
}

EXAMPLE(example_embedding, sb_embedding(x[0], x[1]))
/* The id of padding does not occur: differences would find the gradient that it is to lack. */
EXAMPLE(example_padded, sb_embedding_padded(x[0], x[1], 6))

OPERATION(embedding,
          {"embedding",
           example_embedding,
           {"1x1 i1:.", "7x2 i7:5", "5x7 i5:2x3", "3x64 i3:2x1x2", "2x65 i2:7"}},
          {"embedding_padded", example_padded, {"7x2 i6:5", "7x65 i6:2x3"}});
