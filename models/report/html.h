/* A page of HTML that is made piece by piece. What fails for lack of memory is seen at its end. */
#ifndef SOFTBACK_MODELS_REPORT_HTML_H
#define SOFTBACK_MODELS_REPORT_HTML_H

#include "models/buffer.h"
#include "tensor/error.h"
#include <stdint.h>

struct html {
    struct buffer text;
    bool failed;
};

/* Adds text that is HTML already. */
void html_add(struct html *html, const char *text);
void html_print(struct html *html, const char *format, ...) SB_PRINTF(2, 3);
/* Adds any text. */
void html_text(struct html *html, const char *text);

/* From <!DOCTYPE html> to the heading; light and dark. */
void html_begin(struct html *html, const char *title);
/* The page as a text for memory_free; NULL, with a message, without memory. */
char *html_end(struct html *html);

/* A table behind a picture, folded away: its numbers. Rows of cells follow. */
void html_data_begin(struct html *html, int columns, const char *const names[]);
void html_data_row(struct html *html, int columns, const double cells[]); /* NaN: empty */
void html_data_end(struct html *html);

#endif
