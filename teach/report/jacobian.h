/* The Jacobian of a row of softmax, as a picture alone. */
#ifndef SOFTBACK_TEACH_REPORT_JACOBIAN_H
#define SOFTBACK_TEACH_REPORT_JACOBIAN_H

#include "teach/explain/row.h"

/* A text for memory_free; NULL, with a message, when it cannot be made. */
char *jacobian_svg(const struct row *row);

#endif
