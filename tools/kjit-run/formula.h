/* --formula: `c = a * where(b > 0, b, 1)`, computed for each element of arrays with one shape. */
#ifndef RUN_FORMULA_H
#define RUN_FORMULA_H

#include "step.h"
#include <kjit/formula.h>

/* Parses the formula to a step and adds its result as the last argument. If an earlier argument has
 * the same name, the name refers to the result from then on. */
bool run_scan_formula(const run_maker *m, const char *text, run_step *step);
/* Queues the formula on the device's default stream. */
bool run_run_formula(tool_error *error, kjit_context *context, run_step *step);
void run_destroy_formula(struct run_formula *formula); /* formula may be NULL */

#endif
