#include "teach/report/tabs.h"

/* The part that the address names is shown, otherwise the first; the slider over decoding steps is
   in the part on attention. */
static const char script[] =
    "<script>\n"
    "{\n"
    "    const bar = document.getElementById('tabs'), parts = "
    "[...document.querySelectorAll('.part')];\n"
    "    const show = (name) => {\n"
    "        for (const part of parts) part.hidden = part.dataset.name !== name;\n"
    "        for (const tab of bar.children)\n"
    "            tab.setAttribute('aria-pressed', tab.textContent === name);\n"
    "    };\n"
    "    for (const part of parts) {\n"
    "        const tab = document.createElement('button');\n"
    "        tab.textContent = part.dataset.name;\n"
    "        tab.addEventListener('click', () => show(tab.textContent));\n"
    "        bar.append(tab);\n"
    "    }\n"
    "    bar.hidden = false;\n"
    "    show(/^#step=/.test(location.hash) ? 'Attention' : parts[0].dataset.name);\n"
    "    addEventListener('beforeprint', () => parts.forEach((part) => (part.hidden = false)));\n"
    "}\n"
    "</script>\n";

static void part_begin(struct html *html, const char *name)
{
    html_print(html, "<section class=\"part\" data-name=\"%s\" aria-label=\"%s\">\n", name, name);
}

void tabs_begin(struct html *html, const char *name)
{
    html_add(html, "<nav id=\"tabs\" aria-label=\"Parts\" hidden></nav>\n");
    part_begin(html, name);
}

void tabs_next(struct html *html, const char *name)
{
    html_add(html, "</section>\n");
    part_begin(html, name);
}

void tabs_end(struct html *html)
{
    html_add(html, "</section>\n");
    html_add(html, script);
}
