/* --time, --info, --emit: what was compiled for the launches. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "measure.h"
#include "options.h"

void run_show_times(const run_launches *launches, const run_timing *timing);
void run_show_info(const run_launches *launches);
/* Finds a wrong stage before the run. */
bool run_check_emits(tool_error *error, const run_options *options, kjit_device *device);
bool run_emit(tool_error *error, const run_options *options, kjit_context *context,
              kjit_module *module, const run_launches *launches);

#endif
