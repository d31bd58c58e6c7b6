/* Code that both programs share: the initial field, and the same scheme as a plain loop, with which
 * the result is checked. */
#ifndef FIELD_H
#define FIELD_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct field_size {
  int64_t rows, cols;
  int iterations;
} field_size;

/* Returns the n-th argument, a number of at least 1, or the default if it is missing. Returns 0 for
 * an invalid argument. */
static inline int64_t field_number(int argc, char **argv, int n, int64_t other)
{
  if (n >= argc) return other;
  char *end;
  long long number = strtoll(argv[n], &end, 10);
  return *end || number < 1 || number > INT32_MAX ? 0 : number;
}

/* Returns whether the n-th argument is the name of a device or is missing. */
static inline int field_has_device(int argc, char **argv, int n)
{
  return n >= argc || strcmp(argv[n], "cpu") == 0 || strcmp(argv[n], "cuda") == 0;
}

/* Fills the field with a few round spots of different temperatures. */
static inline float field_start(const field_size *size, int64_t row, int64_t col)
{
  float heat = 0;
  for (int spot = 0; spot < 6; spot++) {
    double y = (double)size->rows * (0.15 + 0.14 * spot),
           x = (double)size->cols * (0.85 - 0.13 * spot),
           radius = 0.05 * (double)(size->rows + size->cols) / 2 * (1 + spot % 3);
    if (((double)row - y) * ((double)row - y) + ((double)col - x) * ((double)col - x) <
        radius * radius)
      heat = (float)(20 + 12 * spot);
  }
  return heat;
}

static inline float field_at(const float *field, const field_size *size, int64_t row, int64_t col)
{
  return row >= 0 && row < size->rows && col >= 0 && col < size->cols
           ? field[row * size->cols + col]
           : 0;
}

/* Returns the largest difference between a result and the result of the plain loop. Negative means
 * out of memory. */
static inline double field_error(const float *result, const field_size *size)
{
  size_t count = (size_t)(size->rows * size->cols);
  float *now = malloc(count * sizeof *now), *next = malloc(count * sizeof *next);
  double most = now && next ? 0 : -1;
  for (size_t i = 0; i < count && most >= 0; i++)
    now[i] = field_start(size, (int64_t)i / size->cols, (int64_t)i % size->cols);
  for (int step = 0; step < size->iterations && most >= 0; step++) {
    for (int64_t r = 0; r < size->rows; r++)
      for (int64_t c = 0; c < size->cols; c++) {
        float here = now[r * size->cols + c],
              around = field_at(now, size, r - 1, c) + field_at(now, size, r + 1, c) +
                       field_at(now, size, r, c - 1) + field_at(now, size, r, c + 1);
        next[r * size->cols + c] = here - 0.25f * (4 * here - around);
      }
    float *swap = now;
    now = next;
    next = swap;
  }
  for (size_t i = 0; i < count && most >= 0; i++) /* a NaN counts as the largest difference */
    if (!(fabs((double)result[i] - now[i]) <= most)) most = fabs((double)result[i] - now[i]);
  free(now);
  free(next);
  return most;
}

/* Maximum difference due to rounding, which depends on the order of additions. The hottest spot has
 * a temperature of 80. */
static const double field_tolerance = 1e-3;

/* Returns the number of rows in part `index` of `count`, and the first row. */
static inline int64_t field_share(const field_size *size, int index, int count, int64_t *first)
{
  int64_t each = size->rows / count, more = size->rows % count;
  *first = index * each + (index < more ? index : more);
  return each + (index < more);
}

#endif
