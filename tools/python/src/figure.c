/* Draws figures as SVG, with the same code as kjit-run (tools/plot). */
#define _GNU_SOURCE
#include "binding.h"

#include <locale.h>
#include <plot/plot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading Python objects ---- */

/* Reads a list of (x, y, low, high). Returns NULL with an exception. */
static plot_point *read_points(PyObject *list, size_t *count)
{
  Py_ssize_t size = PyList_Size(list);
  plot_point *points = size < 0 ? NULL : calloc((size_t)size + 1, sizeof *points);
  if (!points) return size < 0 ? NULL : (plot_point *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < size; i++) {
    plot_point *p = &points[i];
    PyObject *item = PyList_GetItem(list, i);
    int is_read = item && PyArg_ParseTuple(item, "dddd", &p->x, &p->y, &p->low, &p->high);
    if (is_read && plot_has_place(p->x) && plot_has_place(p->y)) continue;
    if (is_read) PyErr_SetString(PyExc_ValueError, "logarithmic axes need values above 0");
    free(points);
    return NULL;
  }
  *count = (size_t)size;
  return points;
}

static void free_lines(plot_line *lines, size_t count)
{
  for (size_t i = 0; i < count; i++) free((plot_point *)lines[i].points);
  free(lines);
}

/* Reads a list of (name, points). The list owns the names. */
static plot_line *read_lines(PyObject *list, size_t *count)
{
  Py_ssize_t size = PyList_Size(list);
  plot_line *lines = size < 0 ? NULL : calloc((size_t)size + 1, sizeof *lines);
  if (!lines) return size < 0 ? NULL : (plot_line *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject *points, *item = PyList_GetItem(list, i);
    int is_read = item && PyArg_ParseTuple(item, "sO", &lines[i].name, &points);
    if (is_read) lines[i].points = read_points(points, &lines[i].count);
    if (lines[i].points) continue;
    free_lines(lines, (size_t)size);
    return NULL;
  }
  *count = (size_t)size;
  return lines;
}

/* ---- drawing ---- */

/* Writes the SVG in the C locale, because numbers in SVG have decimal points. */
static PyObject *write_figure(const plot_figure *figure)
{
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  int is_complete = file && plain;
  if (is_complete) {
    locale_t before = uselocale(plain);
    plot_write(figure, file);
    uselocale(before);
  }
  if (plain) freelocale(plain);
  if (file && (ferror(file) | fclose(file))) is_complete = 0;
  PyObject *result =
    is_complete ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace") : PyErr_NoMemory();
  free(text);
  return result;
}

/* draw_figure(title, x_name, y_name, unit, theme, [(name, [(x, y, low, high), ...]), ...]) */
static PyObject *draw_figure(PyObject *self, PyObject *args)
{
  plot_figure figure = { 0 };
  int theme;
  PyObject *list;
  (void)self;
  if (!PyArg_ParseTuple(args, "ssssiO", &figure.title, &figure.x_name, &figure.y_name, &figure.unit,
                        &theme, &list))
    return NULL;
  figure.theme = (plot_theme)theme;
  plot_line *lines = read_lines(list, &figure.line_count);
  if (!lines) return NULL;
  figure.lines = lines;
  PyObject *text = write_figure(&figure);
  free_lines(lines, figure.line_count);
  return text;
}

static PyMethodDef functions[] = {
  { "draw_figure", draw_figure, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_figures(PyObject *module) { return PyModule_AddFunctions(module, functions); }
