/* Draws figures as SVG: lines with error bands over logarithmic axes. kjit-run and the Python
 * package use this code, so it needs only the C library. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A point with its error band; without a band, low and high are NaN. */
typedef struct plot_point {
  double x, y, low, high;
} plot_point;

typedef struct plot_line {
  const char *name;         /* name of the line in the legend */
  const plot_point *points; /* points in the order of x */
  size_t count;
} plot_line;

typedef enum plot_theme {
  PLOT_AUTO, /* dark if the viewer prefers dark colours, otherwise light */
  PLOT_LIGHT,
  PLOT_DARK
} plot_theme;

typedef struct plot_figure {
  const char *title, *x_name, *y_name;
  const char *unit; /* unit of y without a prefix: "s", "B/s" */
  plot_theme theme;
  const plot_line *lines;
  size_t line_count;
} plot_figure;

/* Returns whether the value can be shown on a logarithmic axis. */
bool plot_has_place(double value);
/* Writes the figure. It must have at least one point, and plot_has_place must hold for all x
 * and y. */
void plot_write(const plot_figure *figure, FILE *file);

#endif
