/* Lines of the standard input, each answered by one line of the standard output. */
#ifndef SOFTBACK_PROGRAM_COMMANDS_TRANSLATE_LINES_H
#define SOFTBACK_PROGRAM_COMMANDS_TRANSLATE_LINES_H

#include "models/translation.h"

/*
 * Lines are decoded in batches, and a batch is answered as soon as it is done. A line that cannot
 * be translated (not UTF-8, too long) is reported on standard error and answered by an empty line,
 * so that output line i answers input line i. False, with a message, when there was such a line, or
 * on a failure.
 */
bool translate_lines(const sb_seq2seq *model, const sb_decoding_options *options);

/* Prints an output as one line of standard output (program/screen/stream.h). */
void translate_print(const char *text);

#endif
