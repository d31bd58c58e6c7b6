/* The curves of a sweep's plot, in the order in which they were added; plot/plot.h draws them. */
#ifndef RUN_PLOT_H
#define RUN_PLOT_H

#include <driver/error.h>
#include <plot/plot.h>

typedef struct run_line {
  char *name;         /* text in the legend; owned */
  plot_point *points; /* points in ascending order of x; owned */
  size_t count;
} run_line;

/* The quantity of the y axis, which determines its labels. */
typedef enum run_quantity {
  RUN_TIME /* seconds */,
  RUN_BANDWIDTH /* bytes per second */
} run_quantity;

typedef struct run_plot {
  char *title;        /* owned */
  const char *x_name; /* borrowed */
  run_quantity quantity;
  run_line *lines; /* owned */
  size_t line_count;
} run_plot;

/* Adds a curve with a copy of the name. The plot owns it, and the pointer is valid until the next
 * curve is added. */
run_line *run_add_line(run_plot *plot, const char *name);
/* Returns the curve with this name, or NULL. */
run_line *run_find_line(const run_plot *plot, const char *name);
/* Adds a point. Returns false if a coordinate is not positive or not finite, because the axes are
 * logarithmic. */
bool run_add_point(run_line *line, const plot_point *point);
void run_destroy_plot(run_plot *plot);
/* Writes the plot, which must have at least one point. */
void run_write_plot(const run_plot *plot, FILE *file);

#endif
