/* --launch: its text, and the operands of its kernel. */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "step.h"

bool run_scan_launch(const run_maker *m, const char *text, run_step *step);
/* The module's only kernel. */
bool run_make_only_launch(const run_maker *m, run_step *step);
/* `(a, 2.5f32, f)`, behind the parenthesis. */
bool run_scan_operands(const run_maker *m, tool_scanner *scanner, run_step *step);

#endif
