/* Shows times and compiled code of the steps, for --time, --info and --emit. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "measure.h"
#include "options.h"

void run_show_times(const run_steps *steps, const run_timing *timing);
bool run_show_info(tool_error *error, kjit_context *context, const run_steps *steps,
                   const kjit_device *device);
/* Checks the stages of --emit before the run. */
bool run_check_emits(tool_error *error, const run_options *options, kjit_device *device);
bool run_emit(tool_error *error, const run_options *options, kjit_context *context,
              kjit_module *module, const run_steps *steps);

#endif
