/* The lines of a sweep's plot, as they come; plot/plot.h draws them. */
#ifndef RUN_PLOT_H
#define RUN_PLOT_H

#include <driver/error.h>
#include <plot/plot.h>

typedef struct run_line {
  char *name;         /* what the legend says; owned */
  plot_point *points; /* owned; in the order of x */
  size_t count;
} run_line;

/* What the values along y are, and so what their ticks say. */
typedef enum run_quantity { RUN_TIME /* s */, RUN_BANDWIDTH /* bytes a second */ } run_quantity;

typedef struct run_plot {
  char *title;        /* owned */
  const char *x_name; /* borrowed */
  run_quantity quantity;
  run_line *lines; /* owned */
  size_t line_count;
} run_plot;

/* Copies name; the line stays the plot's, and until the next one is added where it is. */
run_line *run_add_line(run_plot *plot, const char *name);
run_line *run_find_line(const run_plot *plot, const char *name); /* NULL: none */
/* A point at or below 0, or of no number, has no place on the axes: false. */
bool run_add_point(run_line *line, const plot_point *point);
void run_destroy_plot(run_plot *plot);
/* There has to be a point. */
void run_write_plot(const run_plot *plot, FILE *file);

#endif
