/* A page of HTML, or a picture alone, made piece by piece. A lack of memory shows when it ends. */
#ifndef SOFTBACK_TEACH_REPORT_HTML_H
#define SOFTBACK_TEACH_REPORT_HTML_H

#include "models/text/buffer.h"
#include "tensor/error.h"
#include <stdint.h>

struct html {
    struct buffer text;
    bool failed;
    bool alone; /* pictures are files of their own, and not parts of a page */
};

/* Adds text that is HTML already. */
void html_add(struct html *html, const char *text);
void html_print(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
/* The same, with numbers as a reader writes them: 42,000; 1.5·10⁻⁵; 0.01 for 1e-02; − for a minus.
 */
void html_say(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
/* Adds any text. */
void html_text(struct html *html, const char *text);

/* Adds the head of a column or a row, as its scope says. */
void html_head(struct html *html, const char *scope, const char *text);

/* Adds a script. */
void html_script(struct html *html, const char *script);

/* From <!DOCTYPE html> to the heading; light and dark. `rules` of style are added to its own. */
void html_begin(struct html *html, const char *title, const char *rules);
/* The page as a text for memory_free; NULL, with a message, without memory. */
char *html_end(struct html *html);

/* A picture of this size, up to and with its title; "</svg>" ends it. One alone has its own colours
   and ground, light and dark. */
void html_svg_begin(struct html *html, int64_t width, int64_t height, const char *format, ...)
    SB_PRINTF(4, 5);
/* A picture alone as a text for memory_free; NULL, with a message, without memory. */
char *html_svg_end(struct html *html);

/* A cell of a table with a number, shaded by the theme's blue from 0 to 1. */
void html_shade(struct html *html, double shade, double x);

/* A table below a picture, folded: its numbers. Rows of cells follow. */
void html_data_begin(struct html *html, int columns, const char *const names[]);
void html_data_row(struct html *html, int columns, const double cells[]); /* NaN: empty */
void html_data_end(struct html *html);

#endif
