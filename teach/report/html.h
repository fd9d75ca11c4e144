/* A page of HTML, or a picture alone, made piece by piece. A lack of memory shows when it ends. */
#ifndef SOFTBACK_TEACH_REPORT_HTML_H
#define SOFTBACK_TEACH_REPORT_HTML_H

#include "tensor/buffer.h"
#include "tensor/error.h"
#include <stdint.h>

/* The first bytes of pages and figures: softback overwrites no other file with one. */
#define SIGNATURE_PAGE "<!DOCTYPE html>\n<!-- softback report -->\n"
#define SIGNATURE_FIGURE "<!-- softback figure -->\n"

struct html {
    struct buffer text;
    bool alone; /* pictures are files of their own, and not parts of a page */
};

/* Adds text that is HTML already. */
void html_add(struct html *html, const char *text);
void html_print(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
/* Adds a text with the numbers and minus signs of print: 42,000; 1.5·10⁻⁵; 0.01 for 1e-02. */
void html_say(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
/* Adds any text. */
void html_text(struct html *html, const char *text);
void html_code(struct html *html, const char *text);

/* Adds a script. */
void html_script(struct html *html, const char *script);

/* From <!DOCTYPE html> to the heading; light and dark. `rules` of style are added to its own. */
void html_begin(struct html *html, const char *title, const char *rules);
/* The page as a text for memory_free; NULL, with a message, without memory. */
char *html_end(struct html *html);

/* A picture of this size, up to and with its title; "</svg>" ends it. The page's style sizes one of
   width 0. One alone has its own colours and ground, light and dark. */
void html_svg_begin(struct html *html, int64_t width, int64_t height, const char *format, ...)
    SB_PRINTF(4, 5);
/* Parts of a picture: any text; a square, its colour at a share of its strength, so that a text is
   legible on it; and a frame. */
void html_svg_text(struct html *html, int64_t x, int64_t y, const char *anchor, const char *format,
                   ...) SB_PRINTF(5, 6);
void html_svg_square(struct html *html, int64_t x, int64_t y, int size, const char *colour,
                     double share);
void html_svg_frame(struct html *html, int left, int top, int64_t width, int64_t height);
/* A picture alone as a text for memory_free; NULL, with a message, without memory. */
char *html_svg_end(struct html *html);

/* A table with a caption ("": none) and the heads of its columns, divided by ";", and then its
   rows. html_head adds another column. */
void html_table(struct html *html, const char *caption, const char *heads);
void html_table_end(struct html *html);
/* Begins a row, with a head or none (NULL). */
void html_row(struct html *html, const char *head);
/* Adds the head of a column or a row, as its scope says. */
void html_head(struct html *html, const char *scope, const char *text);

/* Cells, as html_say, of any text, and of a number: up to four digits of one that is not whole, and
   nothing for NaN. */
void html_cell(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
void html_cell_text(struct html *html, const char *text);
void html_cell_number(struct html *html, double x);
/* A number, shaded by the theme's blue from 0 to 1. */
void html_cell_shade(struct html *html, double shade, double x);

#endif
