#include "plot.h"

#include <stdlib.h>
#include <string.h>

run_line *run_find_line(const run_plot *plot, const char *name)
{
  for (size_t i = 0; i < plot->line_count; i++)
    if (!strcmp(plot->lines[i].name, name)) return &plot->lines[i];
  return NULL;
}

run_line *run_add_line(run_plot *plot, const char *name)
{
  run_line *lines = tool_allocate((plot->line_count + 1) * sizeof *lines);
  if (plot->line_count) memcpy(lines, plot->lines, plot->line_count * sizeof *lines);
  free(plot->lines);
  plot->lines = lines;
  run_line *line = &lines[plot->line_count++];
  line->name = tool_copy_text(name, strlen(name));
  return line;
}

/* Inserts the point at its position in the order of x. */
bool run_add_point(run_line *line, const plot_point *point)
{
  if (!plot_has_place(point->x) || !plot_has_place(point->y)) return false;
  plot_point *points = tool_allocate((line->count + 1) * sizeof *points);
  size_t place = line->count;
  while (place && line->points[place - 1].x > point->x) place--;
  if (place) memcpy(points, line->points, place * sizeof *points);
  points[place] = *point;
  if (line->count > place)
    memcpy(points + place + 1, line->points + place, (line->count - place) * sizeof *points);
  free(line->points);
  line->points = points;
  line->count++;
  return true;
}

void run_destroy_plot(run_plot *plot)
{
  for (size_t i = 0; i < plot->line_count; i++) {
    free(plot->lines[i].name);
    free(plot->lines[i].points);
  }
  free(plot->lines);
  free(plot->title);
}

void run_write_plot(const run_plot *plot, FILE *file)
{
  bool is_time = plot->quantity == RUN_TIME;
  plot_line *lines = tool_allocate(plot->line_count * sizeof *lines);
  for (size_t i = 0; i < plot->line_count; i++)
    lines[i] = (plot_line){ plot->lines[i].name, plot->lines[i].points, plot->lines[i].count };
  const plot_figure figure = { .title = plot->title,
                               .x_name = plot->x_name,
                               .y_name = is_time ? "time" : "bandwidth",
                               .unit = is_time ? "s" : "B/s",
                               .lines = lines,
                               .line_count = plot->line_count };
  plot_write(&figure, file);
  free(lines);
}
