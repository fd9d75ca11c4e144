/* Cutting texts into units. */
#ifndef SOFTBACK_MODELS_TEXT_UNIT_H
#define SOFTBACK_MODELS_TEXT_UNIT_H

#include "models/text/units.h"
#include <stddef.h>

struct unit {
    const char *text;
    size_t size;
};

/* The unit at *at, which moves past it; false at the end of the text. Units are characters, bytes,
   words or ids; the text is UTF-8. */
bool unit_next(sb_units units, const char *text, size_t size, size_t *at, struct unit *unit);

/* The units of this name; false, without a message, when there are none. */
bool units_named(const char *name, sb_units *units);

/* Checks a caller's text and sets its size; fails, with `who` in the message, when it is NULL, not
   UTF-8, or longer than 1 GiB. */
bool text_check(const char *who, const char *text, size_t *size);

#endif
