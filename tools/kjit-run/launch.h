/* Parses the text of --launch and binds the kernel's operands. */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "step.h"

bool run_scan_launch(const run_maker *m, const char *text, run_step *step);
/* Makes a launch of the module's only kernel. */
bool run_make_only_launch(const run_maker *m, run_step *step);
/* Scans `(a, 2.5f32, f)` after the opening parenthesis. */
bool run_scan_operands(const run_maker *m, tool_scanner *scanner, run_step *step);

#endif
