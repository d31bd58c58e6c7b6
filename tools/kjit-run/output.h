/* Handles the options whose output follows the run: --print, --save, --image, --check. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include "options.h"
#include <driver/argument.h>
#include <driver/compare.h>
#include <driver/image.h>

typedef struct run_output {
  run_output_kind kind;
  char *label; /* for example "r[:10]" */
  tool_array array;
  const char *path;       /* path for RUN_SAVE and RUN_IMAGE; borrowed */
  tool_argument expected; /* for RUN_CHECK */
} run_output;

typedef struct run_outputs {
  run_output *items;
  size_t count;
  tool_arguments expected; /* arguments that own the memory of expected arrays */
  tool_tolerance tolerance;
  tool_image_range range;
} run_outputs;

/* Finds the arrays and reads the expected values. Called before the run, so that a wrong name or a
 * missing file is reported before the work is done. */
bool run_prepare_outputs(tool_error *error, const run_options *options,
                         const tool_arguments *arguments, run_outputs *outputs);
/* Writes all outputs and performs the checks. *failed_checks receives the number of failed
 * checks. */
bool run_write_outputs(tool_error *error, const run_outputs *outputs, size_t *failed_checks);
void run_destroy_outputs(run_outputs *outputs);

#endif
