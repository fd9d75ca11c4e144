#include "teach/report/maps.h"
#include "autograd/tape.h"
#include "teach/report/steps.h"
#include "tensor/memory.h"
#include <math.h>

enum { CELL = 9, MOST_SYMBOLS = 64, MOST_NUMBERS = 20000 };

static const char *const kind_titles[] = {"Cross-attention", "The encoder's self-attention",
                                          "The decoder's self-attention"};
static const char *const kind_texts[] = {
    "Rows: the symbols written. Columns: the symbols of the text that they attend to.",
    "Rows: the symbols of the text. Columns: the symbols that they attend to.",
    "Rows: the symbols written. Columns: the symbols before them that they attend to."};

/* Maps of one kind. */
struct atlas {
    const char *title, *text;
    struct subject_axis from, to;
    bool causal;
    int64_t layers;
    sb_tensor *const *weights;
};

double maps_weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j)
{
    const int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t n = 0; n < H; n++)
        if (h < 0 || n == h)
            sum += sb_tensor_get(w, (n * Lq + i) * Lk + j);
    return h < 0 ? sum / (double)H : sum;
}

/* The mean over rows of entropy / ln n, where n is the number of keys that a row may attend to;
   rows with one key are left out. */
static double evenness(const sb_tensor *w, int64_t h, bool causal)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < Lq; i++) {
        const int64_t n = causal ? i + 1 : Lk;
        double entropy = 0;
        for (int64_t j = 0; j < n; j++) {
            const double a = maps_weight(w, h, i, j);
            entropy -= a > 0 ? a * log(a) : 0;
        }
        sum += n > 1 ? entropy / log((double)n) : 0;
        rows += n > 1;
    }
    return rows > 0 ? sum / (double)rows : 0;
}

/* The cells whose weight is of this tenth, from 0 to 9, as one path; without the first half tenth.
 */
static void cells(struct html *html, const sb_tensor *w, int64_t h, int tenth)
{
    bool any = false;
    for (int64_t i = 0; i < sb_tensor_dim(w, 2); i++)
        for (int64_t j = 0; j < sb_tensor_dim(w, 3); j++) {
            const double a = maps_weight(w, h, i, j);
            if (a < 0.05 || (int)fmin(10 * a, 9) != tenth)
                continue;
            if (!any)
                html_print(html, "<path opacity=\"%.2f\" d=\"", 0.05 + 0.1 * tenth);
            any = true;
            html_print(html, "M%lld %lldh%dv%dh-%dz", (long long)j * CELL, (long long)i * CELL,
                       CELL, CELL, CELL);
        }
    html_add(html, any ? "\"/>" : "");
}

static void map(struct html *html, const struct atlas *a, int64_t layer, int64_t h)
{
    const sb_tensor *w = a->weights[layer];
    const long long width = (long long)sb_tensor_dim(w, 3) * CELL,
                    height = (long long)sb_tensor_dim(w, 2) * CELL;
    html_add(html, "<figure>");
    html_svg_begin(html, width, height, "%s, layer %lld, head %lld", a->title, (long long)layer + 1,
                   (long long)h + 1);
    html_print(html,
               "<g fill=\"var(--blue)\"><path fill=\"none\" stroke=\"var(--line)\" "
               "d=\"M0 0H%lldV%lldH0z\"/>",
               width, height);
    for (int tenth = 0; tenth < 10; tenth++)
        cells(html, w, h, tenth);
    html_print(
        html,
        "</g></svg><figcaption>layer %lld, head %lld<br>evenness %.2f</figcaption></figure>\n",
        (long long)layer + 1, (long long)h + 1, evenness(w, h, a->causal));
}

/* A table with a row for each symbol that attends: the weights of head h, or the mean over all for
   h < 0, in per cent. */
static void numbers(struct html *html, const struct subject_axis *from,
                    const struct subject_axis *to, const sb_tensor *w, int64_t h)
{
    html_add(html, "<tr><td></td>");
    for (int64_t j = 0; j < to->length; j++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, subject_label(to, j).text);
        html_add(html, "</th>");
    }
    for (int64_t i = 0; i < from->length; i++) {
        html_add(html, "</tr>\n<tr><th scope=\"row\">");
        html_text(html, subject_label(from, i).text);
        html_add(html, "</th>");
        for (int64_t j = 0; j < to->length; j++) {
            const double a = 100 * maps_weight(w, h, i, j);
            html_print(html, a < 0.5 ? "<td></td>" : "<td>%.0f</td>", a);
        }
    }
    html_add(html, "</tr>\n</table></div>\n");
}

/* Long texts get the mean over the heads of a layer, which keeps the page small. */
static void all_numbers(struct html *html, const struct atlas *a)
{
    const int64_t heads = sb_tensor_dim(a->weights[0], 1);
    const bool mean = a->layers * heads * a->from.length * a->to.length > MOST_NUMBERS;
    html_add(html, "<details><summary>The numbers, in per cent</summary>\n");
    for (int64_t layer = 0; layer < a->layers; layer++)
        for (int64_t h = mean ? -1 : 0; h < (mean ? 0 : heads); h++) {
            html_print(html, "<div class=\"wide\"><table>\n<caption>Layer %lld, ",
                       (long long)layer + 1);
            html_print(html, h < 0 ? "mean over its heads" : "head %lld", (long long)h + 1);
            html_add(html, "</caption>\n");
            numbers(html, &a->from, &a->to, a->weights[layer], h);
        }
    html_add(html, "</details>\n");
}

static void draw_atlas(struct html *html, const struct atlas *a)
{
    html_print(
        html,
        "<h2>%s</h2>\n<p>%s A stronger blue is a larger weight. Evenness is the entropy of a row "
        "divided by that of equal weights: 1 for equal weights, 0 for a single symbol.</p>\n"
        "<div class=\"maps\">\n",
        a->title, a->text);
    for (int64_t layer = 0; layer < a->layers; layer++)
        for (int64_t h = 0; h < sb_tensor_dim(a->weights[layer], 1); h++)
            map(html, a, layer, h);
    html_add(html, "</div>\n");
    all_numbers(html, a);
}

static void maps(struct html *html, const struct subject *s, enum attention_kind kind,
                 sb_tensor *const weights[])
{
    const struct atlas atlas = {.title = kind_titles[kind],
                                .text = kind_texts[kind],
                                .from = subject_queries(s, kind),
                                .to = subject_keys(s, kind),
                                .causal = kind == DECODER_ATTENTION,
                                .layers = subject_layers(s, kind),
                                .weights = weights};
    draw_atlas(html, &atlas);
}

static void alignment(struct html *html, const struct maps *m)
{
    const struct subject_axis from = subject_queries(m->subject, CROSS_ATTENTION),
                              to = subject_keys(m->subject, CROSS_ATTENTION);
    html_add(html,
             "<h2>Alignment</h2>\n<p>The text is above, what the model writes below; lines "
             "are cross-attention weights of the last layer from 10 %, mean over its heads.</p>\n"
             "<div class=\"wide\">");
    alignment_picture(html, m);
    html_add(html, "</svg></div>\n<details><summary>The numbers, in per cent</summary>\n"
                   "<div class=\"wide\"><table>\n");
    numbers(html, &from, &to,
            m->layer[CROSS_ATTENTION][subject_layers(m->subject, CROSS_ATTENTION) - 1], -1);
    html_add(html, "</details>\n");
}

static void draw_all(struct html *html, const struct maps *m)
{
    alignment(html, m);
    maps(html, m->subject, CROSS_ATTENTION, m->layer[CROSS_ATTENTION]);
    steps_add(html, m->subject, m->layer[CROSS_ATTENTION]);
    maps(html, m->subject, ENCODER_ATTENTION, m->layer[ENCODER_ATTENTION]);
    maps(html, m->subject, DECODER_ATTENTION, m->layer[DECODER_ATTENTION]);
}

bool maps_add(struct html *html, const struct subject *subject)
{
    return maps_of(html, subject, draw_all);
}

bool maps_of(struct html *html, const struct subject *s, maps_draw *draw)
{
    const int64_t source = s->pair.source_length, target = s->pair.target_length + 1;
    if (source < 1 || source > MOST_SYMBOLS || target > MOST_SYMBOLS)
        return sb_fail("the text has %lld symbols and its target %lld; from 1 to %d can be drawn; "
                       "give a shorter --input or --target",
                       (long long)source, (long long)target, MOST_SYMBOLS);
    const int encoder = subject_layers(s, ENCODER_ATTENTION),
              decoder = subject_layers(s, DECODER_ATTENTION);
    sb_tensor **all = memory_new((size_t)(encoder + 2 * decoder) * sizeof *all);
    if (!all)
        return sb_fail("out of memory for the weights of %d layers", encoder + decoder);
    const struct maps m = {s,
                           {[ENCODER_ATTENTION] = all,
                            [DECODER_ATTENTION] = all + encoder,
                            [CROSS_ATTENTION] = all + encoder + decoder}};
    const sb_seq2seq_weights weights = {all,
                                        {m.layer[DECODER_ATTENTION], m.layer[CROSS_ATTENTION]}};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = sb_seq2seq_logits(s->model, s->batch, &weights) != NULL;
    if (ok)
        draw(html, &m);
    memory_free(all);
    return sb_tape_end(&tape) && ok;
}

static bool draw_text(struct html *html, const struct text_subject *s, const sb_attentions *found)
{
    sb_tensor **weights = memory_new((size_t)found->maps * sizeof *weights);
    if (!weights)
        return sb_fail("out of memory for the weights of %d layers", found->maps);
    for (int i = 0; i < found->maps; i++)
        weights[i] = found->map[i].weights;
    const struct atlas atlas = {
        .title = "Attention",
        .text = s->causal ? "Rows: the symbols of the text. Columns: itself and the symbols before "
                            "it that each attends to."
                          : kind_texts[ENCODER_ATTENTION],
        .from = s->axis,
        .to = s->axis,
        .causal = s->causal,
        .layers = found->maps,
        .weights = weights};
    draw_atlas(html, &atlas);
    memory_free(weights);
    return true;
}

bool maps_add_text(struct html *html, const struct text_subject *s)
{
    const sb_model *model = &s->checkpoint->subject;
    sb_attentions found;
    if (s->axis.length > MOST_SYMBOLS)
        return sb_fail("the text has %lld symbols; up to %d can be drawn; give a shorter --input",
                       (long long)s->axis.length, MOST_SYMBOLS);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    bool ok = model->kind->attentions(model->self, s->batch, &found);
    if (ok) {
        ok = draw_text(html, s, &found);
        sb_free(found.map);
    }
    return sb_tape_end(&tape) && ok;
}
