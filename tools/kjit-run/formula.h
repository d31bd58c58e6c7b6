/* --formula: `c = a * where(b > 0, b, 1)`, computed for each element of arrays with one shape. */
#ifndef RUN_FORMULA_H
#define RUN_FORMULA_H

#include "step.h"
#include <kjit/formula.h>

/* Makes the formula a step, and its result the last argument. An earlier argument with the result's
 * name has no name from then on. */
bool run_scan_formula(const run_maker *m, const char *text, run_step *step);
/* Queues the formula on the device's default stream. */
bool run_run_formula(tool_error *error, kjit_context *context, run_step *step);
void run_destroy_formula(struct run_formula *formula); /* NULL is fine */

#endif
