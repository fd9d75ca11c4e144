/*
 * One row of a stored model's attention, with the numbers of its loss: s, a = softmax(s),
 * g = dO v', D = sum of a g, ds = a (g - D), and the central difference for comparison.
 */
#include "autograd/node.h"
#include "ops/attention.h"
#include "ops/ops.h"
#include "teach/explain/model.h"
#include "teach/explain/row.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

static const char *const kind_names[] = {"cross", "encoder", "decoder"};

/* What the row is computed from, in float64. */
struct numbers_of_row {
    struct row row;
    double g[EXPLAIN_NUMBERS], a[EXPLAIN_NUMBERS]; /* a: as the model has it */
};

static bool check(const struct subject *subject, struct model_place *p, int64_t *queries,
                  int64_t *keys)
{
    const int heads = (int)sb_seq2seq_options_of(subject->model)->transformer.heads;
    const int layers = subject_layers(subject, p->kind);
    *queries = subject_queries(subject, p->kind).length;
    *keys = subject_keys(subject, p->kind).length;
    p->layer = p->layer ? p->layer : layers;
    p->head = p->head ? p->head : 1;
    p->row = p->row ? p->row : 1;
    if (p->layer > layers)
        return sb_fail("--layer: there is no layer %lld with %s attention; the last one is %d",
                       (long long)p->layer, kind_names[p->kind], layers);
    if (p->head > heads)
        return sb_fail("--head: there is no head %lld; the last one is %d", (long long)p->head,
                       heads);
    if (p->row > *queries)
        return sb_fail("--row: there is no row %lld; the last one is %lld", (long long)p->row,
                       (long long)*queries);
    if (*keys > EXPLAIN_NUMBERS || *keys < 2)
        return sb_fail("a row has %lld keys; from 2 to %d can be shown", (long long)*keys,
                       EXPLAIN_NUMBERS);
    return true;
}

/* The attention's node: of the encoder's layers first, then each decoder layer's two. */
static sb_node *find_node(const struct subject *subject, const struct model_place *p)
{
    int64_t index = p->layer - 1, behind = 0;
    if (p->kind != ENCODER_ATTENTION)
        index =
            subject_layers(subject, ENCODER_ATTENTION) + 2 * index + (p->kind == CROSS_ATTENTION);
    for (sb_node *node = tape_open()->last; node; node = node->previous)
        behind += node->operation && strcmp(node->operation->name, "attention") == 0;
    for (sb_node *node = tape_open()->last; node; node = node->previous)
        if (node->operation && strcmp(node->operation->name, "attention") == 0 && --behind == index)
            return node;
    return sb_fail("the tape has no attention number %lld", (long long)index);
}

/* Rows first .. first + count - 1 of head h in x (1, L, H, D), as (count, D) of float64. */
static sb_tensor *head_rows(const sb_tensor *x, int64_t h, int64_t first, int64_t count)
{
    const int64_t H = sb_tensor_dim(x, 2), D = sb_tensor_dim(x, 3);
    sb_tensor *rows = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(count, D)));
    for (int64_t l = 0; rows && l < count; l++)
        for (int64_t d = 0; d < D; d++)
            sb_tensor_set(rows, l * D + d, sb_tensor_get(x, ((first + l) * H + h) * D + d));
    return rows;
}

/* s = scale q k' + bias, for the keys that the row may attend to. */
static bool read_scores(const sb_node *node, const struct model_place *p, int64_t keys,
                        struct row *row)
{
    const struct attention *a = sb_node_options(node);
    const int64_t h = p->head - 1, i = p->row - 1;
    sb_tensor *q = head_rows(node->in[0], h, i, 1);
    sb_tensor *k = head_rows(node->in[1], h / (a->H / a->G), 0, keys);
    sb_tensor *s = sb_scale(sb_matmul_nt(q, k), a->scale);
    double values[EXPLAIN_NUMBERS];
    if (!s || !sb_tensor_read(s, values))
        return false;
    *row = row_of((int)keys, values);
    const bool biased = strstr(node->operation->inputs, "bias") != NULL;
    for (int64_t j = 0; j < keys; j++) {
        if (biased)
            row->s[j] +=
                sb_tensor_get(node->in[3], h * a->bias[1] + i * a->bias[2] + j * a->bias[3]);
        row->kept[j] = p->kind != DECODER_ATTENTION || j <= i;
    }
    return true;
}

/* g = dO v' */
static bool read_upstream(const sb_tensor *dy, sb_tensor *v, const struct model_place *p,
                          double g[])
{
    sb_tensor *products = sb_matmul_nt(head_rows(dy, p->head - 1, p->row - 1, 1), v);
    return products && sb_tensor_read(products, g);
}

/* The row's numbers, from forward and backward of the subject's pair. */
static bool run(const struct subject *subject, const struct model_place *p, int64_t keys,
                struct numbers_of_row *n)
{
    const sb_seq2seq *model = subject->model;
    const int encoder = subject_layers(subject, ENCODER_ATTENTION),
              decoder = subject_layers(subject, DECODER_ATTENTION);
    sb_tensor **all = memory_new((size_t)(encoder + 2 * decoder) * sizeof *all);
    sb_tape tape, inner;
    if (!all)
        return sb_fail("out of memory for the weights of %d layers", encoder + decoder);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, NULL);
    const sb_seq2seq_weights weights = {all, {all + encoder, all + encoder + decoder}};
    sb_tensor *logits = sb_seq2seq_logits(model, subject->batch, &weights);
    sb_tensor *loss =
        logits ? sb_cross_entropy(logits, sb_batch_get(subject->batch, "target_out"), NULL) : NULL;
    sb_node *node = loss ? find_node(subject, p) : NULL;
    bool ok = node && read_scores(node, p, keys, &n->row);
    if (ok) {
        const struct attention *a = sb_node_options(node);
        const sb_tensor *w = node->out[1];
        for (int64_t j = 0; j < keys; j++)
            n->a[j] = sb_tensor_get(w, ((p->head - 1) * a->Lq + p->row - 1) * a->Lk + j);
        sb_tensor *v = head_rows(node->in[2], (p->head - 1) / (a->H / a->G), 0, keys);
        sb_tensor *y = sb_keep(node->out[0]);
        ok = v && sb_backward(loss);
        sb_tape_begin(&inner, SB_NO_RECORD);
        ok = ok && read_upstream(sb_tensor_grad(y), v, p, n->g);
        ok = sb_tape_end(&inner) && ok;
    }
    ok = sb_tape_end(&tape) && ok;
    sb_parameters_clear(sb_seq2seq_parameters(model));
    memory_free(all);
    return ok;
}

static void write_row(struct page *page, const struct subject_axis *keys,
                      const struct numbers_of_row *n)
{
    static const struct page_column columns[] = {
        {"key", PAGE_WORD, 0},       {"s", PAGE_NUMBER, 3},        {"a", PAGE_NUMBER, 4},
        {"g = dO v", PAGE_SHORT, 3}, {"g - D", PAGE_SHORT, 3},     {"ds", PAGE_SHORT, 3},
        {"", PAGE_BAR, 4},           {"difference", PAGE_SHORT, 3}};
    const struct row *row = &n->row;
    double a[EXPLAIN_NUMBERS] = {0}, ds[EXPLAIN_NUMBERS] = {0}, worst = 0, size = 0;
    page_need(page, row_forward(row, a) && row_backward(row, n->g, ds));
    const double D = row_dot(row->n, a, n->g);
    for (int j = 0; j < row->n; j++) {
        worst = fmax(worst, fabs(a[j] - n->a[j]));
        size = fmax(size, fabs(n->g[j]));
    }
    double unit[EXPLAIN_NUMBERS]; /* g in this unit: differences of tiny numbers are rounding */
    for (int j = 0; j < row->n; j++)
        unit[j] = size > 0 ? n->g[j] / size : 0;
    page_text(
        page,
        "a = softmax(s) equals the model's own forward pass within %.0e. g is the gradient of each "
        "weight, D = sum of a g = %.3g, and ds = a (g - D).",
        worst < 1e-6 ? 1e-6 : worst, D);
    page_table(page, "row", 8, columns);
    for (int j = 0; j < row->n; j++) {
        double difference = 0;
        const struct subject_label label = subject_label(keys, j);
        page_need(page, row_difference(row, unit, j, &difference));
        const struct page_cell s = row->kept[j] ? cell_of(row->s[j]) : cell_word("blocked");
        page_row(page, (struct page_cell[]){cell_word(label.text), s, cell_of(a[j]),
                                            cell_of(n->g[j]), cell_of(n->g[j] - D), cell_of(ds[j]),
                                            cell_of(ds[j]), cell_of(size * difference)});
    }
    page_text(page, "The sum of ds is %.1e: what one key gains, the others lose.",
              fabs(row_sum(row->n, ds)) < 1e-12 ? 0 : row_sum(row->n, ds));
}

struct page *model_row_page(const struct subject *subject, const struct model_place *place)
{
    struct model_place p = *place;
    struct numbers_of_row n;
    int64_t queries, keys;
    if (!check(subject, &p, &queries, &keys) || !run(subject, &p, keys, &n))
        return NULL;
    struct page *page = page_new("attention");
    if (!page)
        return NULL;
    const struct subject_axis from = subject_queries(subject, p.kind),
                              to = subject_keys(subject, p.kind);
    page_title(page, "Row %lld of head %lld, %s attention, layer %lld", (long long)p.row,
               (long long)p.head, kind_names[p.kind], (long long)p.layer);
    page_text(page, "\"%s\" attends to %lld keys; the target is \"%s\".",
              subject_label(&from, p.row - 1).text, (long long)keys, subject->target);
    write_row(page, &to, &n);
    return page;
}
