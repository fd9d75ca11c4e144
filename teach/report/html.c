#include "teach/report/html.h"
#include "models/palette.h"
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void html_add(struct html *html, const char *text)
{
    buffer_add_text(&html->text, text);
}

void html_print(struct html *html, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    buffer_print_list(&html->text, format, values);
    va_end(values);
}

static void raise(struct html *html, int power)
{
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (power < 0)
        html_add(html, "⁻");
    if (abs(power) >= 10)
        html_add(html, digits[abs(power) / 10 % 10]);
    html_add(html, digits[abs(power) % 10]);
}

static const char DIGITS[] = "0123456789";

/* 1.5e-02 is 0.015, and 1.5e-05 is 1.5·10⁻⁵; `size` is that of 1.5. */
static void add_power(struct html *html, const char *text, int size, int power)
{
    if (power == 0)
        html_print(html, "%.*s", size, text);
    else if (power < 0 && power >= -3)
        html_print(html, "0.%.*s%c%.*s", -power - 1, "00", *text, size > 2 ? size - 2 : 0,
                   text + 2);
    else {
        html_print(html, size == 1 && *text == '1' ? "10" : "%.*s·10", size, text);
        raise(html, power);
    }
}

/* Adds the number at the beginning of a text; its size. */
static size_t add_number(struct html *html, const char *text)
{
    const size_t whole = strspn(text, DIGITS), point = text[whole] == '.',
                 size = whole + point + (point ? strspn(text + whole + 1, DIGITS) : 0),
                 power = text[size] == 'e' && (text[size + 1] == '-' || text[size + 1] == '+')
                             ? strspn(text + size + 2, DIGITS)
                             : 0;
    if (power > 0) {
        add_power(html, text, (int)size, atoi(text + size + 1));
        return size + 2 + power;
    }
    for (size_t i = 0; i < whole; i++)
        html_print(html, i > 0 && (whole - i) % 3 == 0 ? ",%c" : "%c", text[i]);
    html_print(html, "%.*s", (int)(size - whole), text + whole);
    return size;
}

static bool is_minus(char before, const char *text)
{
    return *text == '-' && strchr(" (>", before) &&
           (text[1] == ' ' || isdigit((unsigned char)text[1]));
}

SB_PRINTF(2, 0) static void say_list(struct html *html, const char *format, va_list values)
{
    char text[1024], before = ' ';
    bool tag = false;
    vsnprintf(text, sizeof text, format, values);
    for (const char *at = text; *at;) {
        const char *const start = at;
        if (!tag && isdigit((unsigned char)*at) && !isalnum((unsigned char)before) &&
            !strchr("#_.", before))
            at += add_number(html, at);
        else {
            tag = *at == '<' || (tag && *at != '>');
            html_print(html, is_minus(before, at) && !tag ? "−" : "%c", *at);
            at++;
        }
        before = at == start ? before : at[-1];
    }
}

void html_say(struct html *html, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say_list(html, format, values);
    va_end(values);
}

void html_text(struct html *html, const char *text)
{
    buffer_escape(&html->text, text, strlen(text), "&<>\"");
}

void html_code(struct html *html, const char *text)
{
    html_add(html, "<code>");
    html_text(html, text);
    html_add(html, "</code>");
}

void html_script(struct html *html, const char *script)
{
    html_add(html, "<script>\n");
    html_add(html, script);
    html_add(html, "</script>\n");
}

static const char style[] = {
#include "report.css.inc"
    0};

void html_begin(struct html *html, const char *title, const char *rules)
{
    html_add(html,
             SIGNATURE_PAGE "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    html_text(html, title);
    html_add(html, "</title>\n<style>\n" PALETTE_CSS(":root", PALETTE_PAGES));
    html_add(html, style);
    html_add(html, rules);
    html_add(html, "</style>\n</head>\n<body>\n<h1>");
    html_text(html, title);
    html_add(html, "</h1>\n");
}

static char *take(struct html *html)
{
    char *text = buffer_take(&html->text);
    return text ? text : sb_fail("out of memory");
}

char *html_end(struct html *html)
{
    html_add(html, "</body>\n</html>\n");
    return take(html);
}

void html_svg_begin(struct html *html, int64_t width, int64_t height, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    html_add(html, html->alone ? "<svg xmlns=\"http://www.w3.org/2000/svg\"" : "<svg");
    if (width > 0)
        html_print(html, " viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\"",
                   (long long)width, (long long)height, (long long)width, (long long)height);
    html_add(html, " role=\"img\"><title>");
    buffer_print_list(&html->text, format, values);
    html_add(html, "</title>\n");
    va_end(values);
    if (html->alone)
        html_print(html,
                   "<style>\n%ssvg{font:12px system-ui,sans-serif}.ground{fill:var(--ground)}"
                   "text{fill:var(--ink)}\n</style>\n<rect class=\"ground\" width=\"100%%\" "
                   "height=\"100%%\"/>\n",
                   PALETTE_CSS("svg", PALETTE_PICTURES));
}

void html_svg_text(struct html *html, int64_t x, int64_t y, const char *anchor, const char *format,
                   ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    html_print(html, "<text x=\"%lld\" y=\"%lld\" text-anchor=\"%s\">", (long long)x, (long long)y,
               anchor);
    html_text(html, text);
    html_add(html, "</text>");
}

void html_svg_square(struct html *html, int64_t x, int64_t y, int size, const char *colour,
                     double share)
{
    html_print(html,
               "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" fill=\"var(--%s)\" "
               "opacity=\"%.3f\"/>",
               (long long)x, (long long)y, size, size, colour, 0.6 * share);
}

void html_svg_frame(struct html *html, int left, int top, int64_t width, int64_t height)
{
    html_print(html, "<path fill=\"none\" stroke=\"var(--line)\" d=\"M%d %dh%lldv%lldh-%lldz\"/>\n",
               left, top, (long long)width, (long long)height, (long long)width);
}

char *html_svg_end(struct html *html)
{
    html_add(html, "</svg>\n");
    return take(html);
}

/* ---- tables ---- */

void html_table(struct html *html, const char *caption, const char *heads)
{
    html_add(html, "<div class=\"wide\"><table>\n");
    if (caption[0])
        html_print(html, "<caption>%s</caption>\n", caption);
    html_add(html, "<tr><th scope=\"col\">");
    for (; *heads; heads++)
        html_print(html, *heads == ';' ? "</th><th scope=\"col\">" : "%c", *heads);
    html_add(html, "</th>");
}

void html_table_end(struct html *html)
{
    html_add(html, "</tr>\n</table></div>\n");
}

void html_head(struct html *html, const char *scope, const char *text)
{
    html_print(html, "<th scope=\"%s\">", scope);
    html_text(html, text);
    html_add(html, "</th>");
}

void html_row(struct html *html, const char *head)
{
    html_add(html, "</tr>\n<tr>");
    if (head)
        html_head(html, "row", head);
}

void html_cell(struct html *html, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    html_add(html, "<td>");
    say_list(html, format, values);
    html_add(html, "</td>");
    va_end(values);
}

void html_cell_text(struct html *html, const char *text)
{
    html_add(html, "<td>");
    html_text(html, text);
    html_add(html, "</td>");
}

void html_cell_number(struct html *html, double x)
{
    if (isnan(x))
        html_add(html, "<td></td>");
    else
        html_cell(html, "%.*g", x == floor(x) ? 12 : 4, x);
}

void html_cell_shade(struct html *html, double shade, double x)
{
    html_say(html, "<td style=\"--a:%.2f\">%.3g</td>", shade, x);
}
