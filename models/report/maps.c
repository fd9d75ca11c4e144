#include "models/report/maps.h"
#include "autograd/tape.h"
#include "tensor/memory.h"
#include <math.h>

enum { CELL = 9, STEP = 46, RISE = 130, MOST_SYMBOLS = 64 };

static const char *const kind_titles[] = {"Cross-attention", "The encoder's self-attention",
                                          "The decoder's self-attention"};
static const char *const kind_texts[] = {
    "Rows: what is written. Columns: the symbols of the text that it looks at.",
    "Rows: the symbols of the text. Columns: those that they look at.",
    "Rows: what is written. Columns: what was written before, which it looks at."};

/* The weight of head h, or the mean over all for h < 0, in w (1, H, Lq, Lk). */
static double weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j)
{
    const int64_t H = sb_tensor_dim(w, 1), Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    for (int64_t n = 0; n < H; n++)
        if (h < 0 || n == h)
            sum += sb_get(w, (n * Lq + i) * Lk + j);
    return h < 0 ? sum / (double)H : sum;
}

/* The mean over rows of entropy / ln n, n being the keys that a row may see; rows with one are left
   out. */
static double evenness(const sb_tensor *w, int64_t h, bool causal)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    double sum = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < Lq; i++) {
        const int64_t n = causal ? i + 1 : Lk;
        double entropy = 0;
        for (int64_t j = 0; j < n; j++) {
            const double a = weight(w, h, i, j);
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
            const double a = weight(w, h, i, j);
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

static void map(struct html *html, const sb_tensor *w, int64_t layer, int64_t h, bool causal)
{
    const long long width = (long long)sb_tensor_dim(w, 3) * CELL,
                    height = (long long)sb_tensor_dim(w, 2) * CELL;
    html_print(html,
               "<figure><svg viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" role=\"img\" "
               "fill=\"var(--blue)\"><title>layer %lld, head %lld</title><path fill=\"none\" "
               "stroke=\"var(--line)\" d=\"M0 0H%lldV%lldH0z\"/>",
               width, height, width, height, (long long)layer + 1, (long long)h + 1, width, height);
    for (int tenth = 0; tenth < 10; tenth++)
        cells(html, w, h, tenth);
    html_print(html,
               "</svg><figcaption>layer %lld, head %lld<br>evenness %.2f</figcaption></figure>\n",
               (long long)layer + 1, (long long)h + 1, evenness(w, h, causal));
}

static void maps(struct html *html, const struct subject *s, enum attention_kind kind,
                 sb_tensor *const weights[])
{
    html_print(html,
               "<h2>%s</h2>\n<p>%s The darker, the more. Evenness is the entropy of a row "
               "over that of equal weights: 1 looks everywhere alike, 0 at one symbol.</p>\n"
               "<div class=\"maps\">\n",
               kind_titles[kind], kind_texts[kind]);
    for (int64_t layer = 0; layer < subject_layers(s, kind); layer++)
        for (int64_t h = 0; h < sb_tensor_dim(weights[layer], 1); h++)
            map(html, weights[layer], layer, h, kind == DECODER_ATTENTION);
    html_add(html, "</div>\n");
}

static void symbols(struct html *html, const struct subject_axis *axis, int y)
{
    for (int64_t i = 0; i < axis->length; i++) {
        html_print(html, "<text x=\"%lld\" y=\"%d\" text-anchor=\"middle\">",
                   (long long)i * STEP + STEP / 2, y);
        html_text(html, subject_label(axis, i).text);
        html_add(html, "</text>");
    }
}

/* A table with a row for each symbol that is written. */
static void numbers(struct html *html, const struct subject_axis *from,
                    const struct subject_axis *to, const sb_tensor *w)
{
    html_add(html, "<details><summary>The numbers</summary>\n<div class=\"wide\"><table>\n"
                   "<tr><th></th>");
    for (int64_t j = 0; j < to->length; j++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, subject_label(to, j).text);
        html_add(html, "</th>");
    }
    for (int64_t i = 0; i < from->length; i++) {
        html_add(html, "</tr>\n<tr><th scope=\"row\">");
        html_text(html, subject_label(from, i).text);
        html_add(html, "</th>");
        for (int64_t j = 0; j < to->length; j++)
            html_print(html, "<td>%.2f</td>", weight(w, -1, i, j));
    }
    html_add(html, "</tr>\n</table></div></details>\n");
}

static void alignment(struct html *html, const struct subject *s, const sb_tensor *w)
{
    const struct subject_axis from = subject_queries(s, CROSS_ATTENTION),
                              to = subject_keys(s, CROSS_ATTENTION);
    const int64_t longest = from.length > to.length ? from.length : to.length;
    html_print(html,
               "<h2>Alignment</h2>\n<p>The text above, what is written below; lines are "
               "cross-attention of the last layer, mean over its heads, from 10 %%.</p>\n"
               "<div class=\"wide\"><svg viewBox=\"0 0 %lld %d\" width=\"%lld\" height=\"%d\" "
               "role=\"img\"><title>Alignment of the text with what is written</title>\n",
               (long long)longest * STEP, RISE, (long long)longest * STEP, RISE);
    symbols(html, &to, 14);
    symbols(html, &from, RISE - 6);
    for (int64_t i = 0; i < from.length; i++)
        for (int64_t j = 0; j < to.length; j++)
            if (weight(w, -1, i, j) >= 0.1)
                html_print(html,
                           "<path d=\"M%lld %dL%lld 22\" stroke=\"var(--blue)\" "
                           "stroke-width=\"%.1f\" opacity=\"%.2f\"/>\n",
                           (long long)i * STEP + STEP / 2, RISE - 24,
                           (long long)j * STEP + STEP / 2, 5 * weight(w, -1, i, j),
                           weight(w, -1, i, j));
    html_add(html, "</svg></div>\n");
    numbers(html, &from, &to, w);
}

bool maps_add(struct html *html, const struct subject *s)
{
    const int64_t source = s->pair.source_length, target = s->pair.target_length + 1;
    if (source < 1 || source > MOST_SYMBOLS || target > MOST_SYMBOLS)
        return sb_fail("the text has %lld symbols and what is written %lld; from 1 to %d "
                       "can be drawn",
                       (long long)source, (long long)target, MOST_SYMBOLS);
    const int encoder = subject_layers(s, ENCODER_ATTENTION),
              decoder = subject_layers(s, DECODER_ATTENTION);
    sb_tensor **all = memory_new((size_t)(encoder + 2 * decoder) * sizeof *all);
    if (!all)
        return sb_fail("out of memory for the weights of %d layers", encoder + decoder);
    sb_tensor **self = all + encoder, **cross = self + decoder;
    const sb_seq2seq_weights weights = {all, {self, cross}};
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const bool ok = sb_seq2seq_logits(s->checkpoint->model, s->batch, &weights) != NULL;
    if (ok) {
        alignment(html, s, cross[decoder - 1]);
        maps(html, s, CROSS_ATTENTION, cross);
        maps(html, s, ENCODER_ATTENTION, all);
        maps(html, s, DECODER_ATTENTION, self);
    }
    memory_free(all);
    return sb_tape_end(&tape) && ok;
}
