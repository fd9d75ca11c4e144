/* Text from elsewhere (data, models, arguments, paths), for a terminal. */
#ifndef SOFTBACK_PROGRAM_SCREEN_FOREIGN_H
#define SOFTBACK_PROGRAM_SCREEN_FOREIGN_H

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

#endif
