#include "teach/report/steps.h"

/* Cells show whole per cents, which also set their shade, by --share in the page's style; the
   largest of a row is bold. The step is in the address, so that a link keeps it. */
static const char script[] =
    "<script>\n"
    "{\n"
    "    const box = document.getElementById('steps'), slider = document.getElementById('step');\n"
    "    const said = [...box.querySelectorAll('.said span')];\n"
    "    const rows = [...box.querySelectorAll('tr[data-weights]')].map(row => ({\n"
    "        weights: row.dataset.weights.split(' '), cells: [...row.querySelectorAll('td')]}));\n"
    "    const show = () => {\n"
    "        const step = slider.value - 1;\n"
    "        for (const {weights, cells} of rows) {\n"
    "            const now = cells.map((cell, j) => Number(weights[step * cells.length + j]));\n"
    "            cells.forEach((cell, j) => {\n"
    "                cell.textContent = now[j] || '';\n"
    "                cell.style.setProperty('--share', now[j] + '%');\n"
    "                cell.classList.toggle('most', now[j] === Math.max(...now));\n"
    "            });\n"
    "        }\n"
    "        said.forEach((symbol, i) => {\n"
    "            symbol.className = i < step ? '' : i === step ? 'now' : 'later';\n"
    "        });\n"
    "        const text = `${step + 1} of ${said.length}: it writes ${said[step].textContent}`;\n"
    "        box.querySelector('output').textContent = text;\n"
    "        slider.setAttribute('aria-valuetext', text);\n"
    "    };\n"
    "    slider.addEventListener('input', () => {\n"
    "        history.replaceState(null, '', '#step=' + slider.value);\n"
    "        show();\n"
    "    });\n"
    "    slider.value = (/^#step=(\\d+)$/.exec(location.hash) || [0, 1])[1];\n"
    "    show();\n"
    "    box.hidden = false;\n"
    "}\n"
    "</script>\n";

static void head(struct html *html, const sb_tensor *w, int64_t layer, int64_t h)
{
    const int64_t Lq = sb_tensor_dim(w, 2), Lk = sb_tensor_dim(w, 3);
    html_add(html, "<tr data-weights=\"");
    for (int64_t n = 0; n < Lq * Lk; n++)
        html_print(html, "%s%.0f", n > 0 ? " " : "", 100 * sb_tensor_get(w, h * Lq * Lk + n));
    html_print(html, "\"><th scope=\"row\">layer %lld, head %lld</th>", (long long)layer + 1,
               (long long)h + 1);
    for (int64_t j = 0; j < Lk; j++)
        html_add(html, "<td></td>");
    html_add(html, "</tr>\n");
}

static void table(struct html *html, const struct subject *s, sb_tensor *const cross[])
{
    const struct subject_axis keys = subject_keys(s, CROSS_ATTENTION);
    html_add(
        html,
        "<div class=\"wide\"><table>\n<caption>Attention weights of each head at this step, in "
        "per cent; the largest of a row is bold.</caption>\n<tr><th scope=\"col\">the "
        "text</th>");
    for (int64_t j = 0; j < keys.length; j++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, subject_label(&keys, j).text);
        html_add(html, "</th>");
    }
    html_add(html, "</tr>\n");
    for (int64_t layer = 0; layer < subject_layers(s, CROSS_ATTENTION); layer++)
        for (int64_t h = 0; h < sb_tensor_dim(cross[layer], 1); h++)
            head(html, cross[layer], layer, h);
    html_add(html, "</table></div>\n");
}

void steps_add(struct html *html, const struct subject *s, sb_tensor *const cross[])
{
    const struct subject_axis said = subject_queries(s, CROSS_ATTENTION);
    html_print(html,
               "<section id=\"steps\" hidden>\n<h2>One step at a time</h2>\n"
               "<p><label for=\"step\">Step</label>\n<input type=\"range\" id=\"step\" min=\"1\" "
               "max=\"%lld\" value=\"1\">\n<output for=\"step\">1 of %lld</output></p>\n<p "
               "class=\"said\">",
               (long long)said.length, (long long)said.length);
    for (int64_t i = 0; i < said.length; i++) {
        html_add(html, "<span>");
        html_text(html, subject_label(&said, i).text);
        html_add(html, "</span>");
    }
    html_add(html, "</p>\n");
    table(html, s, cross);
    html_add(html, "</section>\n");
    html_add(html, script);
}
