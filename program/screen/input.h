/* The lines of the standard input. */
#ifndef SOFTBACK_PROGRAM_SCREEN_INPUT_H
#define SOFTBACK_PROGRAM_SCREEN_INPUT_H

#include "models/text/lines.h"

#define INPUT "standard input"

bool input_begin(struct lines *lines);

/* Says on standard error why a command cannot answer a line. */
void input_refuse(const char *command, int64_t number, const char *reason);

#endif
