#include "models/report/html.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void html_add(struct html *html, const char *text)
{
    html->failed |= !buffer_add_text(&html->text, text);
}

void html_print(struct html *html, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    html_add(html, text);
}

void html_text(struct html *html, const char *text)
{
    for (; *text; text++)
        if (strchr("&<>\"", *text))
            html_print(html, "&#%d;", *text);
        else
            html->failed |= !buffer_add(&html->text, text, 1);
}

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--blue:#1f77b4;--orange:#d95f02;--line:#8888}\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "background:Canvas;color:CanvasText}\n"
    "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}\n"
    "svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:CanvasText}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.1rem .7rem;text-align:right;border-bottom:1px solid var(--line)}\n"
    "summary{cursor:pointer}.maps{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0}"
    "figcaption{font-size:.85rem}\n"
    ".wide{overflow-x:auto}pre{overflow-x:auto}\n"
    "</style>\n";

void html_begin(struct html *html, const char *title)
{
    html_add(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    html_text(html, title);
    html_add(html, "</title>\n");
    html_add(html, style);
    html_add(html, "</head>\n<body>\n<h1>");
    html_text(html, title);
    html_add(html, "</h1>\n");
}

char *html_end(struct html *html)
{
    html_add(html, "</body>\n</html>\n");
    char *text = html->failed ? NULL : buffer_take(&html->text);
    buffer_free(&html->text);
    return text ? text : sb_fail("out of memory");
}

void html_data_begin(struct html *html, int columns, const char *const names[])
{
    html_add(html, "<details><summary>The numbers</summary>\n<div class=\"wide\"><table>\n<tr>");
    for (int i = 0; i < columns; i++) {
        html_add(html, "<th scope=\"col\">");
        html_text(html, names[i]);
        html_add(html, "</th>");
    }
    html_add(html, "</tr>\n");
}

void html_data_row(struct html *html, int columns, const double cells[])
{
    html_add(html, "<tr>");
    for (int i = 0; i < columns; i++)
        if (isnan(cells[i]))
            html_add(html, "<td></td>");
        else
            html_print(html, "<td>%.4g</td>", cells[i]);
    html_add(html, "</tr>\n");
}

void html_data_end(struct html *html)
{
    html_add(html, "</table></div></details>\n");
}
