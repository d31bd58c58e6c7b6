/* Implements --sweep, which runs the steps for several sizes and devices and writes a table and a
 * plot. */
#ifndef RUN_SWEEP_H
#define RUN_SWEEP_H

#include "plot.h"
#include "step.h"

/* Result of one step for one size on one device. */
typedef struct run_row {
  char *device, *device_name, *step; /* owned */
  int64_t size;
  uint64_t repetitions, bytes;
  double median_ns, least_ns; /* times of one launch or call */
  double lower_ns, upper_ns;  /* lower and upper quartile */
} run_row;

/* The parts of a run that a sweep needs. */
typedef struct run_sweeper {
  tool_error *error;
  kjit_context *context;
  kjit_module *module; /* NULL if the run has none */
  const run_options *options;
} run_sweeper;

/* Checks the text of --sweep, such as "n=2^10:2^28", and the options that depend on it. */
bool run_check_sweep(tool_error *error, const run_options *options);
/* Measures, and writes the rows and the plot. */
bool run_make_sweep(const run_sweeper *s);

/* ---- sweep_rows.c: the table as CSV ---- */

/* Returns whether the table has a column with this name. */
bool run_is_column(const char *name);
void run_write_head(const char *size_name, FILE *file);
void run_write_row(const run_row *row, FILE *file);
void run_destroy_row(run_row *row);
/* Adds curves to the plot: from "FILE.csv", the table of another sweep, or from "FILE.csv:X:Y" or
 * "FILE.csv:X:Y:NAME", two columns of any table. */
bool run_add_beside(tool_error *error, const char *text, const char *size_name, run_plot *plot);

#endif
