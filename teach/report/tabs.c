#include "teach/report/tabs.h"

static const char script[] = {
#include "tabs.inc"
    0};

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
    html_script(html, script);
}
