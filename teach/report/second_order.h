/*
 * The exact check: backward of every parameter against derivatives by dual numbers, and products
 * with the Hessian, which must be symmetric and agree with differences of gradients.
 */
#ifndef SOFTBACK_TEACH_REPORT_SECOND_ORDER_H
#define SOFTBACK_TEACH_REPORT_SECOND_ORDER_H

#include "models/model_twin.h"
#include "teach/report/html.h"

/* Adds a table and what it says. The twin is in float64. */
bool second_order_add(struct html *html, struct model_twin *twin);

#endif
