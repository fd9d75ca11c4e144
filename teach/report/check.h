/*
 * Backward against central differences: the loss of one text, by elements of every parameter.
 *
 * Backward runs in float32, as in training. The differences are those of a float64 copy of the
 * model: in float32 the loss itself is rounded too much, which the table shows in its last column.
 * That copy is also checked exactly, to the second order.
 */
#ifndef SOFTBACK_TEACH_REPORT_CHECK_H
#define SOFTBACK_TEACH_REPORT_CHECK_H

#include "teach/explain/model.h"
#include "teach/report/html.h"

/* An element of a parameter, and how large gradients are around it. */
struct checked {
    double backward, difference;
    double largest_here, largest; /* of the parameter's gradient, and of all */
};

enum check_word { CHECK_AGREES, CHECK_ZERO, CHECK_ROUNDING, CHECK_DIFFERS, CHECK_WORDS };

/* The difference of the two, relative to the largest gradient of the parameter. */
double check_error(const struct checked *c);
enum check_word check_word(const struct checked *c);

/* Checks the element of each parameter with the largest gradient, and two fixed ones. */
bool check_add(struct html *html, const struct subject *subject);

#endif
