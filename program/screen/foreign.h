/* What a terminal may show: text from elsewhere (data, models, arguments, paths), and colours. */
#ifndef SOFTBACK_PROGRAM_SCREEN_FOREIGN_H
#define SOFTBACK_PROGRAM_SCREEN_FOREIGN_H

#include <stdbool.h>

/*
 * The text with '?' in place of control characters (utf8_disarm): everything from elsewhere
 * is printed through this, or is part of a message of sb_error(), which is safe already. The result
 * is the text itself or a copy, valid until eight more calls.
 */
const char *foreign(const char *text);

/* The text as one line, for files and other programs too: characters that end lines, and other
   control characters but TAB, are written as \n, \r, \x1b or \u2028. The result is as of `foreign`.
 */
const char *foreign_line(const char *text);

/* Whether to write colours to a file descriptor: to a terminal that is not "dumb", unless NO_COLOR
   is set; with CLICOLOR_FORCE to anything. */
bool terminal_has_colour(int descriptor);

#endif
