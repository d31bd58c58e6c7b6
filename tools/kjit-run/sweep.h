/* --sweep: the steps of a run over sizes and devices, as rows of a table and as a plot. */
#ifndef RUN_SWEEP_H
#define RUN_SWEEP_H

#include "plot.h"
#include "step.h"

/* One step, at one size, on one device. */
typedef struct run_row {
  char *device, *device_name, *step; /* owned */
  int64_t size;
  uint64_t repetitions, bytes;
  double median_ns, least_ns; /* of one launch, or call */
  double lower_ns, upper_ns;  /* the quartiles */
} run_row;

/* What a sweep needs of a run. */
typedef struct run_sweeper {
  tool_error *error;
  kjit_context *context;
  kjit_module *module; /* NULL: none */
  const run_options *options;
} run_sweeper;

/* Whether the text of --sweep is one, "n=2^10:2^28", and what goes with it. */
bool run_check_sweep(tool_error *error, const run_options *options);
/* Measures, and writes the rows and the plot. */
bool run_make_sweep(const run_sweeper *s);

/* ---- sweep_rows.c: the table as CSV ---- */

/* Whether a column of the table has the name. */
bool run_is_column(const char *name);
void run_write_head(const char *size_name, FILE *file);
void run_write_row(const run_row *row, FILE *file);
void run_destroy_row(run_row *row);
/* "FILE.csv", rows of another sweep, or "FILE.csv:X:Y" and ":NAME", two columns of any table: adds
 * lines. */
bool run_add_beside(tool_error *error, const char *text, const char *size_name, run_plot *plot);

#endif
