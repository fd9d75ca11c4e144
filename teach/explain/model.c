#include "teach/explain/model.h"
#include "autograd/node.h"
#include "models/text_model.h"
#include "ops/attention.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/failure.h"
#include "tensor/utf8.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool subject_begin(struct subject *s, const sb_model *model, const char *text, const char *target)
{
    *s = (struct subject){.model = *model};
    if (!model->kind->example || !model->kind->attentions)
        return sb_fail("the attention of a model of kind \"%s\" cannot be drawn",
                       model->kind->name);
    if (!model->kind->example(model->self, text, target, &s->example))
        return false;
    return !target || s->example.target ||
           sb_fail("--target is for encoder-decoders; leave it out for this model");
}

void subject_end(struct subject *s)
{
    example_free(&s->example);
    *s = (struct subject){0};
}

const sb_example_attention *subject_attention(const struct subject *s, const char *name)
{
    const sb_example *e = &s->example;
    if (name && e->attentions == 1)
        return sb_fail("--kind is for encoder-decoders; this model has one kind of attention, to "
                       "its own text");
    for (int i = 0; name && i < e->attentions; i++)
        if (strcmp(e->attention[i].name, name) == 0)
            return &e->attention[i];
    return name ? sb_fail("the model has no attention \"%s\"", name) : &e->attention[0];
}

double subject_weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j)
{
    const int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t n = 0; n < H; n++)
        if (h < 0 || n == h)
            sum += sb_tensor_get(w, (n * Lq + i) * Lk + j);
    return h < 0 ? sum / (double)H : sum;
}

struct subject_label subject_label(const sb_example_axis *axis, int64_t i)
{
    struct subject_label label;
    const int32_t id = axis->ids[i];
    snprintf(label.text, sizeof label.text, "%s",
             id == sb_vocabulary_special(axis->vocabulary, SB_SYMBOL_UNKNOWN)
                 ? "\uFFFD"
                 : sb_vocabulary_symbol(axis->vocabulary, id));
    for (char *at = label.text; *at; at++)
        if (*at == ' ' || *at == '\n' || *at == '\t')
            *at = *at == ' ' ? '_' : '?';
    utf8_disarm(label.text);
    return label;
}

/*
 * ---- one row of its attention ----
 *
 * With the numbers of its loss: s, a = softmax(s), g = do vᵀ, avg = sum of a g, ds = a (g - avg),
 * and the central difference for comparison.
 */

/* What the row is computed from, in float64. */
struct numbers_of_row {
    struct row row;
    double g[EXPLAIN_NUMBERS], a[EXPLAIN_NUMBERS]; /* a: as the model has it */
};

static bool check(const struct subject *subject, const sb_example_attention *at,
                  struct model_place *p)
{
    const int64_t heads = subject->example.heads, queries = at->queries.length,
                  keys = at->keys.length;
    p->layer = p->layer ? p->layer : at->layers;
    p->head = p->head ? p->head : 1;
    p->row = p->row ? p->row : 1;
    if (p->layer > at->layers)
        return sb_fail("--layer: there is no layer %lld with %s attention; the last one is %d",
                       (long long)p->layer, at->name, at->layers);
    if (p->head > heads)
        return sb_fail("--head: there is no head %lld; the last one is %lld", (long long)p->head,
                       (long long)heads);
    if (p->row > queries)
        return sb_fail("--row: there is no row %lld; the last one is %lld", (long long)p->row,
                       (long long)queries);
    if (keys > EXPLAIN_NUMBERS || keys < 2)
        return sb_fail("a row has %lld keys; from 2 to %d can be shown", (long long)keys,
                       EXPLAIN_NUMBERS);
    return true;
}

/* The attention's node, which has these weights. */
static sb_node *find_node(const sb_tensor *weights)
{
    for (sb_node *node = tape_open()->last; node; node = node->previous)
        if (node->operation && strcmp(node->operation->name, "attention") == 0 &&
            node->out[1] == weights)
            return node;
    return sb_fail("the tape has no attention with these weights");
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

/* s = scale q kᵀ + bias, for the keys that the row may attend to. */
static bool read_scores(const sb_node *node, const struct model_place *p,
                        const sb_example_attention *at, struct row *row)
{
    const struct attention *a = sb_node_options(node);
    const int64_t h = p->head - 1, i = p->row - 1, keys = at->keys.length;
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
        row->kept[j] = !at->causal || j <= i;
    }
    return true;
}

/* The row's numbers, from a node whose loss this is. */
static bool read_row(sb_node *node, sb_tensor *loss, const struct model_place *p,
                     const sb_example_attention *at, struct numbers_of_row *n)
{
    sb_tape inner;
    if (!node || !read_scores(node, p, at, &n->row))
        return false;
    const struct attention *a = sb_node_options(node);
    const int64_t keys = at->keys.length;
    for (int64_t j = 0; j < keys; j++)
        n->a[j] = sb_tensor_get(node->out[1], ((p->head - 1) * a->Lq + p->row - 1) * a->Lk + j);
    sb_tensor *v = head_rows(node->in[2], (p->head - 1) / (a->H / a->G), 0, keys);
    sb_tensor *y = sb_keep(node->out[0]);
    bool ok = v && sb_backward(loss);
    sb_tape_begin(&inner, SB_NO_RECORD);
    const sb_tensor *dy = ok ? sb_tensor_grad(y) : NULL; /* g = do vᵀ */
    sb_tensor *g = ok ? sb_matmul_nt(head_rows(dy, p->head - 1, p->row - 1, 1), v) : NULL;
    ok = g && sb_tensor_read(g, n->g);
    return sb_tape_end(&inner) && ok;
}

/* Forward and backward of the subject's text. */
static bool run(const struct subject *subject, const struct model_place *p,
                const sb_example_attention *at, struct numbers_of_row *n)
{
    const sb_model *model = &subject->model;
    sb_attentions found;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, NULL);
    bool ok = model->kind->attentions(model->self, subject->example.batch, &found);
    if (ok) {
        ok = read_row(find_node(found.map[at->first + p->layer - 1].weights), found.loss, p, at, n);
        sb_free(found.map);
    }
    ok = sb_tape_end(&tape) && ok;
    sb_parameters_clear(model->weights);
    return ok;
}

static void write_row(struct page *page, const sb_example_axis *keys,
                      const struct numbers_of_row *n)
{
    const struct row *row = &n->row;
    double a[EXPLAIN_NUMBERS] = {0}, ds[EXPLAIN_NUMBERS] = {0}, worst = 0, size = 0;
    page_need(page, row_forward(row, a) && row_backward(row, n->g, ds));
    const double average = row_dot(row->n, a, n->g);
    for (int j = 0; j < row->n; j++) {
        worst = fmax(worst, fabs(a[j] - n->a[j]));
        size = fmax(size, fabs(n->g[j]));
    }
    double unit[EXPLAIN_NUMBERS]; /* g in this unit: differences of tiny numbers are rounding */
    for (int j = 0; j < row->n; j++)
        unit[j] = size > 0 ? n->g[j] / size : 0;
    page_text(page,
              "a = softmax(s) equals the model's own forward pass within %.0e. g = do vᵀ is the "
              "gradient of each weight, avg = sum of a g = %.3g, and ds = a (g - avg).",
              worst < 1e-6 ? 1e-6 : worst, average);
    page_table(page, "row", "key | s .3 | a .4 | g ~3 | g - avg ~3 | ds ~3 | #4 | difference ~3");
    for (int j = 0; j < row->n; j++) {
        double difference = 0;
        const struct subject_label label = subject_label(keys, j);
        page_need(page, row_difference(row, unit, j, &difference));
        const struct page_cell s = row->kept[j] ? cell_of(row->s[j]) : cell_word("blocked");
        PAGE_ROW(page, cell_word(label.text), s, cell_of(a[j]), cell_of(n->g[j]),
                 cell_of(n->g[j] - average), cell_of(ds[j]), cell_of(size * difference));
    }
    if (size < 1e-4)
        page_text(page, "All gradients are small, since the model is nearly sure of this text. "
                        "--target with another text, or another --row, shows larger ones.");
    page_text(page, "The sum of ds is %.2g: what one key gains, the others lose.",
              fabs(row_sum(row->n, ds)) < 1e-12 ? 0 : row_sum(row->n, ds));
}

struct page *model_row_page(const struct subject *subject, const struct model_place *place)
{
    struct model_place p = *place;
    struct numbers_of_row n;
    const sb_example_attention *at = subject_attention(subject, p.attention);
    if (!at || !check(subject, at, &p) || !run(subject, &p, at, &n))
        return NULL;
    struct page *page = page_new("attention");
    if (!page)
        return NULL;
    page_title(page, "Row %lld of head %lld, %s attention, layer %lld", (long long)p.row,
               (long long)p.head, at->name, (long long)p.layer);
    const char *target = subject->example.target;
    page_text(page, "\"%s\" attends to %lld keys%s%s%s.",
              subject_label(&at->queries, p.row - 1).text, (long long)at->keys.length,
              target ? "; the target is \"" : "", target ? target : "", target ? "\"" : "");
    write_row(page, &at->keys, &n);
    return page;
}

/* ---- its tape ---- */

/* The comment of ops.h, without its stars. */
static void describe(struct drawing *d, const char *operation)
{
    const char *line = operation_comment(operation);
    while (line && strncmp(line, " */", 3) != 0) {
        const size_t size = strcspn(line, "\n"), skip = size < 3 ? size : 3;
        drawing_print_escaped(d, line + skip, size - skip);
        buffer_print(&d->text, "\n");
        line += size + 1;
    }
}

char *model_tape(const struct subject *subject, drawing_write *write)
{
    const sb_model *model = &subject->model;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *loss = model->kind->loss(model->self, subject->example.batch, SB_LOSS_MEAN);
    char *text = loss ? drawing_of_tape(loss, write, model->weights, describe) : NULL;
    sb_tape_end(&tape);
    return text;
}
